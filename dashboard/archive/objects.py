"""A store of contents, each filed under its SHA-256, to which the archives' manifests refer."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tvmdash import common
from tvmdash.common.files.sync import sync_folder
from tvmdash.errors import DashboardError

_CHUNK_BYTES = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


class UnreadableSourceError(Exception):
    """The file to be stored cannot be read; the store itself is well."""


@dataclass(frozen=True)
class Stored:
    """Content that the store holds. `new_bytes` were written for it: 0 where it was there before."""

    sha256: str
    size_bytes: int
    new_bytes: int


class Objects:
    """The folder `objects`: `ab/<sha256>`, zlib-compressed, each written beside, read back and renamed in."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._new: list[Path] = []
        self._touched: set[Path] = set()

    @functools.cached_property
    def _present(self) -> set[str]:
        return {name for _, names in self._list_contents() for name in names}

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._present

    def prepare(self) -> None:
        """Make the folder, and remove what a killed process left half-written in it."""
        self._folder.mkdir(parents=True, exist_ok=True)
        common.remove_unfinished(self._folder)

    def add(self, source: BinaryIO) -> Stored:
        """Store what `source` holds, in pieces, proved by reading it back. Durable after `settle`."""
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=self._folder)
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as file:
                sha256, size_bytes = _compress(source, file)
                file.flush()
                # A content that is there but damaged is written again.
                if self._is_sound(sha256, size_bytes):
                    return Stored(sha256, size_bytes, 0)
                os.fsync(file.fileno())
                # Out of the page cache, so that what is read back comes from the disk.
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            for _ in _check_content(temporary, sha256, size_bytes):
                pass
            return Stored(sha256, size_bytes, self._rename_in(temporary, sha256))
        finally:
            temporary.unlink(missing_ok=True)

    def _rename_in(self, temporary: Path, sha256: str) -> int:
        new_bytes = temporary.stat().st_size
        path = self.path_of(sha256)
        path.parent.mkdir(exist_ok=True)
        os.replace(temporary, path)
        self._touched.add(path.parent)
        if sha256 not in self:
            self._new.append(path)
            self._present.add(sha256)
        return new_bytes

    def _is_sound(self, sha256: str, size_bytes: int) -> bool:
        if sha256 not in self:
            return False
        try:
            self.check(sha256, size_bytes)
        except DashboardError:
            return False
        return True

    def settle(self) -> None:
        """Return when all that was added would survive a power cut."""
        for folder in self._touched:
            sync_folder(folder)
        if self._touched:
            sync_folder(self._folder)
            sync_folder(self._folder.parent)

    def give_up(self) -> None:
        """Remove what was added since this object was made, to leave a full disk no fuller."""
        for path in self._new:
            with contextlib.suppress(OSError):
                path.unlink()

    def content(self, sha256: str, size_bytes: int) -> Iterator[bytes]:
        """Yield the content in pieces of at most 1 MiB; DashboardError as soon as it is not as it should be."""
        return _check_content(self.path_of(sha256), sha256, size_bytes)

    def check(self, sha256: str, size_bytes: int) -> None:
        """Read the content; DashboardError where it is missing, damaged or of another size."""
        for _ in self.content(sha256, size_bytes):
            pass

    def find_faults(self, wanted: Iterable[tuple[str, int]]) -> dict[str, str]:
        """Check contents, given as hash and size in bytes; return the faults of those missing or damaged, by hash."""
        faults = {}
        for sha256, size_bytes in wanted:
            try:
                self.check(sha256, size_bytes)
            except DashboardError as error:
                faults[sha256] = str(error)
        return faults

    def keep_only(self, wanted: Collection[str]) -> None:
        for folder, names in self._list_contents():
            for name in names:
                if name not in wanted:
                    (folder / name).unlink(missing_ok=True)

    def path_of(self, sha256: str) -> Path:
        if not _SHA256.fullmatch(sha256):
            raise DashboardError(f"{self._folder}: {sha256!r} is not a SHA-256 in lower-case hexadecimal digits.")
        return self._folder / sha256[:2] / sha256

    def _list_contents(self) -> Iterator[tuple[Path, list[str]]]:
        """Yield each folder of contents with the hashes in it."""
        if not self._folder.is_dir():
            return
        for folder in self._folder.iterdir():
            if len(folder.name) == 2 and folder.is_dir():
                yield folder, [name for name in os.listdir(folder) if _SHA256.fullmatch(name)]


def _compress(source: BinaryIO, destination: BinaryIO) -> tuple[str, int]:
    digest, size_bytes, engine = hashlib.sha256(), 0, zlib.compressobj()
    while piece := _read(source):
        digest.update(piece)
        size_bytes += len(piece)
        destination.write(engine.compress(piece))
    destination.write(engine.flush())
    return digest.hexdigest(), size_bytes


def _read(source: BinaryIO) -> bytes:
    try:
        return source.read(_CHUNK_BYTES)
    except OSError as error:
        raise UnreadableSourceError(f"cannot be read: {error.strerror}") from error


def _check_content(path: Path, sha256: str, size_bytes: int) -> Iterator[bytes]:
    digest, seen_bytes = hashlib.sha256(), 0
    try:
        with open_regular(path) as file:
            for piece in _decompress(file):
                digest.update(piece)
                seen_bytes += len(piece)
                if seen_bytes > size_bytes:
                    break
                yield piece
    except FileNotFoundError:
        raise _make_broken_error(path, "is missing") from None
    except zlib.error as error:
        raise _make_broken_error(path, f"is damaged ({error})") from error
    except OSError as error:
        raise _make_broken_error(path, f"cannot be read ({error.strerror})") from error
    if seen_bytes != size_bytes:
        raise _make_broken_error(path, f"does not have the expected size of {size_bytes} bytes")
    if digest.hexdigest() != sha256:
        raise _make_broken_error(path, "does not match the hash in its name")


def open_regular(path: Path) -> BinaryIO:
    """Open the file without ever waiting for it; OSError where that fails, or where it is a pipe or no file."""
    # A FIFO put in a file's place would block open(2) for ever.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))  # noqa: SIM115 - returned
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return file


def _decompress(file: BinaryIO) -> Iterator[bytes]:
    engine = zlib.decompressobj()
    while not engine.eof:
        raw = engine.unconsumed_tail or file.read(_CHUNK_BYTES)
        piece = engine.decompress(raw, _CHUNK_BYTES)
        if not raw and not piece and not engine.eof:
            raise zlib.error("cut short")
        yield piece
    if engine.unused_data or file.read(1):
        raise zlib.error("has trailing data")


def _make_broken_error(path: Path, problem: str) -> DashboardError:
    return DashboardError(
        f"{path}: this stored file {problem}. Delete it if it exists; the next archive stores the content again if "
        "the home still has it."
    )
