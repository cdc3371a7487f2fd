"""What strangers may leave in a folder: shapes of files that have stopped a night once, or might.

Run as a program (`strange_trees.py FOLDER SHAPE...`) it is what a stage of a test calls; what this user may not make is
left out.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path

SPARSE_BYTES = 20 << 30


def go_down(folder: Path, levels: int, name: str = "d") -> None:
    """Folders in folders, by steps: the path may be longer than the system takes."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    with os.fdopen(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
        file.write(b"content")
    os.close(here)


def _make_chain(folder: Path) -> None:
    (folder / "chain").mkdir()
    for number in range(1200):
        (folder / "chain" / str(number)).symlink_to(str(number + 1))


def _make_sparse(folder: Path) -> None:
    with (folder / "sparse.db").open("wb") as file:
        file.truncate(SPARSE_BYTES)


def _bind(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)  # the address of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{descriptor}/socket")
    os.close(descriptor)


def _lock(folder: Path, mode: int) -> None:
    (folder / "locked").mkdir()
    (folder / "locked" / "inner").mkdir()
    (folder / "locked" / "inner" / "file").touch(mode=mode)
    (folder / "locked").chmod(mode)


def _name_oddly(folder: Path) -> None:
    for name in (b"\xff\xfe", b"-rf", b"\x1b[31m", b"a\r\nb", "\u202egnp.exe".encode(), b" ", b"x" * 255):
        place = os.path.join(os.fsencode(folder), b"odd")
        os.makedirs(place, exist_ok=True)
        os.mkdir(os.path.join(place, name))
        os.close(os.open(os.path.join(place, name, name), os.O_WRONLY | os.O_CREAT))


def _link(name: str, target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).symlink_to(target)


SHAPES: dict[str, Callable[[Path], None]] = {
    "deep": lambda folder: go_down(folder, 1100),
    "long": lambda folder: go_down(folder, 60, "long" * 25),
    "loop": _link("loop", "loop"),
    "chain": _make_chain,
    "up": _link("up", ".."),
    "out": _link("out.svg", "/etc/passwd"),
    "endless": _link("endless", "/dev/zero"),
    "nowhere": _link("nowhere", "/nowhere/at/all"),
    "sparse": _make_sparse,
    "pipe": lambda folder: os.mkfifo(folder / "pipe.svg"),
    "socket": _bind,
    "device": lambda folder: os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5)),
    "locked": lambda folder: _lock(folder, 0),
    "read-only": lambda folder: _lock(folder, 0o500),
    "odd names": _name_oddly,
}
INSTEAD: dict[str, Callable[[Path], None]] = {
    "pipe instead": os.mkfifo,
    "loop instead": lambda path: path.symlink_to(path.name),
    "device instead": lambda path: path.symlink_to("/dev/zero"),
    "folder instead": lambda path: path.mkdir(),
    "deep instead": lambda path: (path.mkdir(), go_down(path, 1100))[1],  # type: ignore[func-returns-value]
}
"""What lies where the file is expected that the stage should have left."""


def plant(folder: Path, shape: str) -> None:
    """Make the shape in the folder, unless it is there from an earlier night or this user may not."""
    if shape in INSTEAD:
        (folder / "status.json").unlink(missing_ok=True)
        INSTEAD[shape](folder / "status.json")
        return
    with contextlib.suppress(OSError):
        SHAPES[shape](folder)


if __name__ == "__main__":
    for asked in sys.argv[2:]:
        plant(Path(sys.argv[1]), asked)
