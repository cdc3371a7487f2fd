"""A disk that remembers in which order it was written and flushed, so that its power can be cut afterwards.

One file below a FUSE mount is the disk: a loop device makes it a block device, and any filesystem of this kernel goes
on it. Each write and each flush is kept in a log. What a cut leaves is made from the log: everything up to the last
flush before the cut, and of the writes since then any that the disk liked, as a drive with a cache does. The kernel's
own dm-log-writes works the same way; this needs no module. Run as a program, this file serves the disk.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_HEAD = struct.Struct("<cQI")
_WRITE, _FLUSH = b"W", b"F"
_DISK = "disk"
_DEADLINE_S = 20.0
NEEDED = ("fusermount3", "losetup", "mount")
MOUNT = {"ext4": "noauto_da_alloc", "xfs": "noatime", "btrfs": "noatime,nodiscard"}
"""Options by filesystem. ext4 by default saves programs that forget to fsync before a rename; here it does not."""


@dataclass(frozen=True)
class Written:
    """A piece of the log: where a write went; no content for a flush."""

    offset: int
    content: bytes


@dataclass(frozen=True)
class LoggedDisk:
    """A filesystem on such a disk. `mounted` is its root while it is mounted."""

    folder: Path
    filesystem: str

    @property
    def log(self) -> Path:
        """Each write and flush since the filesystem was made."""
        return self.folder / "log"

    @property
    def mounted(self) -> Path:
        return self.folder / "mounted"

    def position(self) -> int:
        """How far the log goes now: what was written before is before this place."""
        return self.log.stat().st_size

    def places_after(self, position: int) -> list[int]:
        """Each place of the log between two writes, from that one on."""
        places = []
        with self.log.open("rb") as log:
            log.seek(position)
            while head := log.read(_HEAD.size):
                log.seek(_HEAD.unpack(head)[2], os.SEEK_CUR)
                places.append(log.tell())
        return places

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Mounted while the block lasts; what was written and never flushed is lost at its end but for the log."""
        served = self.folder / "served"
        served.mkdir()
        shutil.copyfile(self.folder / "image", self.folder / "live")
        argv = [sys.executable, "-m", "tests.slow.logged_disk", str(self.folder / "live"), str(self.log), str(served)]
        with subprocess.Popen(argv) as server:
            try:
                _wait_for(served / _DISK)
                with _mounted(served / _DISK, self.mounted, self.filesystem):
                    yield
            finally:
                subprocess.run(["fusermount3", "-u", "-z", str(served)], check=False)
                server.kill()

    @contextlib.contextmanager
    def after_cut(self, image: Path) -> Iterator[Path]:
        """The filesystem as it comes up again from `image`, at the same path as before."""
        with _mounted(image, self.mounted, self.filesystem):
            yield self.mounted


class Cuts:
    """What cuts of the power at rising places of the log leave, as images of the disk."""

    def __init__(self, disk: LoggedDisk, rng: random.Random) -> None:
        self._image, self._rng = disk.folder / "flushed", rng
        shutil.copyfile(disk.folder / "image", self._image)
        self._log = disk.log.open("rb")
        self._volatile: list[Written] = []
        self._fd = os.open(self._image, os.O_RDWR)

    def cut_at(self, position: int, image: Path) -> int:
        """Write to `image` what a cut at that place of the log leaves; how many writes the disk had not flushed."""
        while self._log.tell() < position:
            kind, offset, size = _HEAD.unpack(self._log.read(_HEAD.size))
            self._volatile.append(Written(offset, self._log.read(size)))
            if kind == _FLUSH:
                self._settle(self._fd, self._volatile)
                self._volatile.clear()
        shutil.copyfile(self._image, image)
        share = self._rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        kept = [written for written in self._volatile if self._rng.random() < share]
        descriptor = os.open(image, os.O_RDWR)
        self._settle(descriptor, kept)
        os.close(descriptor)
        return len(self._volatile)

    @staticmethod
    def _settle(descriptor: int, written: Sequence[Written]) -> None:
        for piece in written:
            os.pwrite(descriptor, piece.content, piece.offset)

    def close(self) -> None:
        self._log.close()
        os.close(self._fd)
        self._image.unlink()


def make_disk(folder: Path, filesystem: str, size_mb: int) -> LoggedDisk:
    """A new empty filesystem; the test is skipped where this machine cannot have one."""
    missing = [program for program in (*NEEDED, f"mkfs.{filesystem}") if shutil.which(program) is None]
    if missing or os.getuid() != 0 or not os.access("/dev/fuse", os.W_OK):
        lacks = f"{', '.join(missing)} (apt install fuse3 e2fsprogs xfsprogs btrfs-progs)" if missing else "root"
        pytest.skip(f"no disk whose power can be cut: it needs {lacks or '/dev/fuse'}.")
    disk = LoggedDisk(folder, filesystem)
    disk.mounted.mkdir(parents=True)
    image = folder / "image"
    with image.open("wb") as file:
        file.truncate(size_mb << 20)
    subprocess.run([f"mkfs.{filesystem}", "-q", str(image)], check=True)
    disk.log.touch()
    return disk


@contextlib.contextmanager
def _mounted(image: Path, place: Path, filesystem: str) -> Iterator[None]:
    shown = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True)
    device = shown.stdout.strip()
    try:
        _retry(["mount", "-t", filesystem, "-o", MOUNT[filesystem], device, str(place)])
        try:
            yield
        finally:
            _retry(["umount", str(place)])
    finally:
        subprocess.run(["losetup", "-d", device], check=True)


def _retry(argv: list[str]) -> None:
    """A filesystem stays busy while a process of a night is there, and known while another's namespace has it."""
    end = time.monotonic() + _DEADLINE_S
    while (done := subprocess.run(argv, check=False, capture_output=True, text=True)).returncode != 0:
        assert time.monotonic() < end, f"{' '.join(argv)}: {done.stderr}"
        time.sleep(0.1)


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _DEADLINE_S
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.01)


def _serve(image: str, log: str, place: str) -> None:  # noqa: C901 - the calls of a filesystem
    import mfusepy

    class Disk(mfusepy.Operations):  # type: ignore[misc]
        use_ns = True

        def __init__(self) -> None:
            self._image = os.open(image, os.O_RDWR)
            self._log = Path(log).open("ab", buffering=0)  # noqa: SIM115 - as long as the disk is there

        def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
            if path == "/":
                return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
            if path == f"/{_DISK}":
                return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": os.fstat(self._image).st_size}
            raise mfusepy.FuseOSError(errno.ENOENT)

        def readdir(self, path: str, fh: int) -> list[str]:
            return [".", "..", _DISK]

        def open(self, path: str, flags: int) -> int:
            return 1

        def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
            return os.pread(self._image, size, offset)

        def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
            self._log.write(_HEAD.pack(_WRITE, offset, len(data)) + data)
            return os.pwrite(self._image, data, offset)

        def fsync(self, path: str, datasync: int, fh: int) -> int:
            self._log.write(_HEAD.pack(_FLUSH, 0, 0))
            return 0

        def flush(self, path: str, fh: int) -> int:
            return 0

    mfusepy.FUSE(Disk(), place, foreground=True, nothreads=True)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
