"""A program that is not trusted, run by bubblewrap: no network, and of this machine only what it is shown.

It sees the system's programs, the Python that runs here and the folders that it is given, by their own paths; nothing
else of the disk is there, nor any other process. docs/how-to/pull-requests.md says what that does not protect.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sys")
_SETTINGS = (
    "alternatives", "ca-certificates", "fonts", "group", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "machine-id", "nsswitch.conf", "OpenCL", "os-release", "passwd", "ssl/certs", "vulkan",
)  # fmt: skip
"""Of /etc: the rest may hold keys, which root could read there."""
_DEVICES = ("dri", "kfd", "nvidia*")
_ALONE = ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-cgroup-try")
_BOUND = ("--cap-drop", "ALL", "--die-with-parent")
_PROBE_S = 20.0
_SIGNALLED = 128
"""bubblewrap ends with this and the signal's number where a signal ended its program, as shells do."""


@dataclass(frozen=True)
class Sandbox:
    """What the program may read beside the system, and what it may change. What is not there is left out."""

    visible: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()

    def wrap(self, argv: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs `argv` in it."""
        shown = [*_list_system(), *_show(_list_python()), *_show(self.visible)]
        temporary = ["--tmpfs", "/tmp", "--tmpfs", "/var/tmp"]  # noqa: S108 - empty ones of its own
        own = [word for path in _spell(self.writable) for word in ("--bind-try", path, path)]
        places = [*temporary, *shown, "--proc", "/proc", "--dev", "/dev", *_list_devices(), *own]
        return ["bwrap", *_ALONE, *_BOUND, *places, "--chdir", str(cwd), "--", *argv]

    def remove_links_out(self) -> None:
        """Remove each link below the writable folders that leads out of its folder.

        Outside the sandbox it may lead to a file that the program could not read itself.
        """
        for folder in self.writable:
            for root, folders, files in os.walk(folder):
                for path in (Path(root, name) for name in (*folders, *files)):
                    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
                        path.unlink()


def split_code(code: int, *, is_sandboxed: bool) -> tuple[int | None, int | None]:
    """Exit status and signal of a program that ended with `code`, as subprocess tells it; one of them is None."""
    if code < 0:
        return None, -code
    return (None, code - _SIGNALLED) if is_sandboxed and code > _SIGNALLED else (code, None)


@functools.cache
def find_obstacle() -> str:
    """Why there can be no sandbox on this machine, with the remedy; empty where there can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (Debian, Ubuntu: apt install bubblewrap)"
    argv = Sandbox().wrap(["true"], Path("/"))
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=_PROBE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap could not be started ({error})"
    said = done.stderr.strip().rpartition("\n")[2][:200]
    if done.returncode == 0:
        return ""
    return f"bubblewrap is not allowed to create a sandbox here ({said}); it needs user namespaces"


def _list_system() -> Iterator[str]:
    """The system's folders; links to one another, as /bin to usr/bin, stay links."""
    for path in map(Path, _SYSTEM):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in _SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


def _list_python() -> Iterator[Path]:
    """Where the running Python lies: its environment, and what that was made from."""
    for folder in (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix):
        yield Path(folder)
    yield Path(os.path.realpath(sys.executable)).parent


def _list_devices() -> Iterator[str]:
    for pattern in _DEVICES:
        for path in sorted(Path("/dev").glob(pattern)):
            yield from ("--dev-bind-try", str(path), str(path))


def _show(paths: Iterable[Path]) -> Iterator[str]:
    for path in _spell(paths):
        yield from ("--ro-bind-try", path, path)


def _spell(paths: Iterable[Path]) -> list[str]:
    """The paths that are not the system's, as they are called and as they really are, outer ones first."""
    spelled = {os.path.abspath(path) for path in paths} | {os.path.realpath(path) for path in paths}
    return sorted(path for path in spelled if not f"{path}/".startswith(("//", "/usr/", "/proc/", "/sys/", "/dev/")))


@dataclass(frozen=True)
class Guest:
    """How a TVM whose code is not trusted is built and run: in a sandbox where `is_sealed`, with `visible` in it."""

    is_sealed: bool
    visible: tuple[Path, ...] = ()

    def make_sandbox(self, visible: Iterable[Path], writable: Iterable[Path]) -> Sandbox | None:
        """A sandbox with these folders; None where it runs without one."""
        return Sandbox((*self.visible, *visible), tuple(writable)) if self.is_sealed else None
