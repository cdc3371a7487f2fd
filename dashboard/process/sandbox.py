"""A program that is not trusted, run by bubblewrap: no network, and of this machine only what it is shown.

It sees the system's programs, the Python that runs here and the folders that it is given, by their own paths; nothing
else of the disk is there, nor any other process. docs/how-to/pull-requests.md says what that does not protect.

A program of root's could change the kernel's settings from in there, whatever rights it lacks: they belong to user 0.
Where the dashboard runs as root, the program is therefore another user's, who gets its folders while it runs.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from dashboard.process import escape, orphans, watchdog
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sys")
_SETTINGS = (
    "alternatives", "ca-certificates", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "machine-id", "nsswitch.conf", "OpenCL", "os-release", "passwd", "ssl/certs", "vulkan",
)  # fmt: skip
"""The names in /etc that are shown: the rest may hold keys, which root could read there."""
_DEVICES = ("dri", "kfd", "nvidia*")
_ALONE = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_BOUND = ("--cap-drop", "ALL", "--die-with-parent", "--new-session")
_KERNEL = ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
"""bubblewrap 0.8 leaves /proc/sys writable: it asks access(2), which says of that folder that nobody may write."""
_FOR_ROOT = ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
"""With a user namespace of its own there would be no other user to become: bubblewrap maps one."""
NOBODY = 65533
"""The user as whom a program of root's runs in there. No system gives anybody this number; every container has it."""
MOST_PROCESSES = 4096
"""Threads count. The largest that was seen, a build of TVM on 128 processors, had 700."""
MOST_FILE_BYTES = 32 << 30
"""The largest file of TVM's build with debug information is 4 GB."""
_LIMITS = (
    *("choom", "-n", "1000", "--"),  # where memory is short, the kernel ends this program before any of the night's
    *("prlimit", f"--nproc={MOST_PROCESSES}", f"--fsize={MOST_FILE_BYTES}", "--core=0", "--"),
)
_PROBE_S = 20.0
_SIGNALLED = 128
"""bubblewrap ends with this and the signal's number where a signal ended its program, as shells do."""


@dataclass(frozen=True)
class Sandbox:
    """Folders that a program may read beside the system's, and folders it may change; missing ones are left out."""

    visible: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    def wrap(self, argv: Sequence[str], cwd: Path) -> list[str]:
        """Return the command line that runs `argv` in it."""
        python, visible, writable = _spell(_list_python()), _spell(self.visible), _spell(self.writable)
        temporary = ["--dir", "/var", *_make_temporary("/tmp"), *_make_temporary("/var/tmp")]  # noqa: S108 - its own
        parents = _list_parents([*_SYSTEM, "/etc/passwd", *python, *visible, *writable])
        shown = [*temporary, *parents, *_list_system(), *_show(python), *_show(visible)]
        own = [word for path in writable for word in ("--bind-try", path, path)]
        places = [*shown, *_KERNEL, "--dev", "/dev", *_make_temporary("/dev/shm"), *_list_devices(), *own]  # noqa: S108
        user = _FOR_ROOT if _is_root() else ("--unshare-user",)
        return [
            "bwrap",
            *_ALONE,
            *_BOUND,
            *user,
            *places,
            "--chdir",
            str(cwd),
            "--",
            *_LIMITS,
            *_become_nobody(),
            *argv,
        ]

    @contextlib.contextmanager
    def lend(self) -> Iterator[None]:
        """Give the folders; DashboardError where the sandbox does not hold, or root shows what others cannot read."""
        if obstacle := find_obstacle():
            raise DashboardError(f"There can be no sandbox: {obstacle}.")
        self._refuse_unreadable()
        with self.give_folders():
            yield

    @contextlib.contextmanager
    def give_folders(self) -> Iterator[None]:
        """While a program runs in it: the folders are that program's; afterwards this user's, without doors."""
        _change_owner(self.writable, NOBODY, NOBODY)
        try:
            yield
        finally:
            _change_owner(self.writable, os.getuid(), os.getgid())
            self.remove_doors()

    def _refuse_unreadable(self) -> None:
        """Refuse to show a program, which is another user's, what only root can read."""
        for path in self.visible if _is_root() else ():
            with contextlib.suppress(FileNotFoundError):
                mode = path.stat().st_mode
                needed = stat.S_IROTH | stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
                if mode & needed != needed:
                    raise DashboardError(
                        f"{path}: mode {stat.S_IMODE(mode):03o}, but a sandbox of root's is uid {NOBODY}'s. Run: "
                        f"chmod -R o+rX {path}; or run nights as a user of their own."
                    )

    def remove_doors(self) -> None:
        """Remove each link in the writable folders that leads out of what is shown, and setuid and setgid bits.

        Outside the sandbox a link may lead to a file that the program could not read itself, and a program with such
        a bit would give others this user's rights.
        """
        for folder in self.writable:
            trees.remove_doors(folder, within=(*self.visible, *self.writable))


def split_code(code: int, *, is_sandboxed: bool) -> tuple[int | None, int | None]:
    """Exit status and signal of a program that ended with `code`, as subprocess tells it; one of them is None."""
    if code < 0:
        return None, -code
    return (None, code - _SIGNALLED) if is_sandboxed and code > _SIGNALLED else (code, None)


class Hole(StrEnum):
    """Forbidden actions that the self-test found possible inside a sandbox."""

    FILE = "read a file that it is not shown"
    FOLDER = "write to a folder of the system"
    KERNEL = "change settings of the kernel"
    NETWORK = "connect to a server on this machine"
    PROCESS = "see other processes"
    ROOT = "act as root of the machine"
    PRIVILEGE = "use or gain privileges"
    LIMIT = "start any number of processes or fill any file"


@dataclass(frozen=True)
class SelfTest:
    """The result of trying to get out; `obstacle`: why there is no sandbox at all, with the remedy."""

    holes: tuple[Hole, ...] = ()
    obstacle: str = ""


@functools.cache
def run_self_test() -> SelfTest:
    """Try from inside, once in a process, whether a sandbox holds on this machine."""
    if shutil.which("bwrap") is None:
        return SelfTest(obstacle="bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)")
    with tempfile.TemporaryDirectory(prefix="dashboard-sandbox-") as folder, contextlib.ExitStack() as stack:
        own, hidden = Path(folder, "own"), Path(folder, "hidden")
        own.mkdir()
        hidden.touch()
        tested = Sandbox(writable=(own,))
        try:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            words = [str(server.getsockname()[1]), str(hidden), str(own), str(MOST_PROCESSES), str(MOST_FILE_BYTES)]
            argv = [sys.executable, "-I", "-c", Path(escape.__file__).read_text(encoding="utf-8"), *words]
            stack.enter_context(tested.give_folders())
            done = _run_tool(tested.wrap(argv, own), _PROBE_S)
            is_root = done.returncode == 0 and (own / "written").stat().st_uid == 0
        except (OSError, subprocess.TimeoutExpired, DashboardError) as error:
            return SelfTest(obstacle=f"bubblewrap could not be started ({error})")
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2][:200]
        return SelfTest(
            obstacle=f"bubblewrap is not allowed to create a sandbox here ({last}); it needs user namespaces, or root"
        )
    return SelfTest((*((Hole.ROOT,) if is_root else ()), *(Hole[name] for name in json.loads(done.stdout))))


def find_obstacle() -> str:
    """Describe why nothing can be run in a sandbox on this machine, with the remedy; empty where it can."""
    tested = run_self_test()
    if tested.holes:
        return f"the sandbox failed its self-test: a program in it can {', and '.join(tested.holes)}"
    return tested.obstacle


def _run_tool(argv: Sequence[str], timeout_s: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program of the dashboard's own; no stage that ends meanwhile takes it for an orphan."""
    mark = f"sandbox/{os.getpid()}-{time.monotonic_ns()}"
    environment, pipe = {**os.environ, watchdog.MARK: mark}, subprocess.PIPE
    process = orphans.start(
        lambda: subprocess.Popen(argv, env=environment, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe), mark
    )
    try:
        output, errors = (text.decode(errors="replace") for text in process.communicate(timeout=timeout_s))
    finally:
        process.kill()
        process.wait()
        orphans.forget(process.pid)
    return subprocess.CompletedProcess(argv, process.returncode, output, errors)


def _is_root() -> bool:
    return os.getuid() == 0


def _become_nobody() -> list[str]:
    """Begin a command of root's: it keeps no group but those of the devices that it is shown."""
    if not _is_root():
        return []
    groups = sorted({os.stat(path).st_gid for path in _find_devices()} - {0})
    kept = ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    return ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), *kept, "--inh-caps=-all", "--"]


def _change_owner(folders: Iterable[Path], uid: int, gid: int) -> None:
    """Give all below these folders to a user, where this is root; no link is followed. DashboardError if it fails."""
    there = [str(folder) for folder in folders if folder.is_dir()] if _is_root() else []
    if there:
        done = _run_tool(["chown", "-hRP", f"{uid}:{gid}", "--", *there])
        if done.returncode:
            raise DashboardError(f"{there[0]}: the owner could not be changed: {done.stderr.strip()[:300]}")


def _list_system() -> Iterator[str]:
    """Bind the system's folders; links to one another, as /bin to usr/bin, stay links."""
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in _SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _list_python() -> Iterator[Path]:
    """Yield the folders of the running Python: its environment, and what that was made from."""
    for folder in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix):
        yield Path(folder)
    yield Path(os.path.realpath(sys.executable)).parent


def _find_devices() -> list[Path]:
    return [path for pattern in _DEVICES for path in sorted(Path("/dev").glob(pattern))]


def _list_devices() -> Iterator[str]:
    for path in _find_devices():
        yield from ("--dev-bind-try", str(path), str(path))


def _make_temporary(folder: str) -> tuple[str, ...]:
    """Mount an empty folder, to which each user may write."""
    return ("--perms", "1777", "--tmpfs", folder)


def _list_parents(paths: Iterable[str]) -> Iterator[str]:
    """Make the folders above these: bubblewrap would make them for its own user alone."""
    for parent in sorted({str(parent) for path in paths for parent in Path(path).parents} - {"/"}):
        yield from ("--dir", parent)


def _show(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        yield from ("--ro-bind-try", path, path)


def _spell(paths: Iterable[Path]) -> list[str]:
    """List the paths outside the system, as they are called and as they really are, outer ones first."""
    spelled = {os.path.abspath(path) for path in paths} | {os.path.realpath(path) for path in paths}
    return sorted(path for path in spelled if not f"{path}/".startswith(("//", "/usr/", "/proc/", "/sys/", "/dev/")))


@dataclass(frozen=True)
class Guest:
    """The manner of building and running an untrusted TVM: sandboxed where `is_sealed`, and shown `visible`."""

    is_sealed: bool
    visible: tuple[Path, ...] = ()

    def make_sandbox(self, visible: Iterable[Path], writable: Iterable[Path]) -> Sandbox | None:
        """Make a sandbox with these folders; None where it runs without one."""
        return Sandbox((*self.visible, *visible), tuple(writable)) if self.is_sealed else None
