"""What kind of file system a path lies on."""

from __future__ import annotations

from pathlib import Path

NETWORK_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "afs",
     "beegfs", "gpfs", "orangefs")
)  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")


def find_network_type(path: Path) -> str:
    """The type, as `nfs4`, of a file system that other machines reach as well; empty where `path` is on a local one."""
    try:
        where = path.resolve()
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    found = (-1, "")
    for line in lines:
        before, _, after = line.partition(" - ")
        # The field has octal escapes for blanks and backslashes (man 5 proc_pid_mountinfo).
        point = Path(before.split(" ")[4].encode("latin-1", "ignore").decode("unicode_escape"))
        if where.is_relative_to(point) and len(point.parts) >= found[0]:
            found = (len(point.parts), after.split(" ")[0])  # of two mounts on one point the later one is seen
    return found[1] if found[1] in NETWORK_TYPES else ""
