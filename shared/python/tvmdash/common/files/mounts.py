"""Types of mounted file systems."""

from __future__ import annotations

import os
import re
from pathlib import Path

NETWORK_TYPES = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "lustre", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "afs",
     "beegfs", "gpfs", "orangefs")
)  # fmt: skip
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")


def find_network_type(path: Path) -> str:
    """Return the type, as `nfs4`, of a network file system that holds `path`; empty where it is on a local one."""
    try:
        where = path.resolve()
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return ""
    found = (-1, "")
    for line in lines:
        before, _, after = line.partition(b" - ")
        # The field has octal escapes for blanks and backslashes (man 5 proc_pid_mountinfo).
        point = Path(os.fsdecode(_ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), before.split(b" ")[4])))
        if where.is_relative_to(point) and len(point.parts) >= found[0]:
            found = (
                len(point.parts),
                os.fsdecode(after.split(b" ")[0]),
            )  # of two on one point the later is seen
    return found[1] if found[1] in NETWORK_TYPES else ""
