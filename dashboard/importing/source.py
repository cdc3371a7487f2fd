"""Files of strangers: found without following a link, read within limits, never changed."""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
import io
import lzma
import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError

MAX_FILE_BYTES = 64 << 20
MAX_ARCHIVE_BYTES = 4 << 30
MAX_MEMBERS = 100_000
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2")
_OPENERS: Mapping[str, Callable[[IO[bytes]], io.BufferedIOBase]] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".xz": lzma.LZMAFile,
    ".bz2": bz2.BZ2File,
}
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
           OverflowError, NotImplementedError, RuntimeError)  # fmt: skip
"""Errors of Python's archive readers on one that is cut off, damaged, encrypted or malicious."""


@dataclass(frozen=True)
class File:
    """One file of the source, decompressed. `name` is its path below the source, or in an archive.

    shown: the same for people; container: the folder or the archive that it lies in.
    """

    shown: str
    name: PurePosixPath
    content: bytes
    container: Path | None = None

    @functools.cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def near(self, relative: str) -> File | None:
        """Open the file at a path relative to this one's folder; None where there is none to be read."""
        if self.container is None:
            return None
        if self.container.is_dir():
            path = self.container / relative
            files = list(_list_path(path, self.name.parent / relative, relative)) if path.exists() else []
            return files[0] if files and isinstance(files[0], File) else None
        wanted = posixpath.normpath(self.name.parent / relative)
        return _find_members(self.container, posixpath.basename(relative)).get(wanted)

    def json(self) -> Any:
        """Parse the JSON, with null for NaN and Infinity, which Python's writers leave where a tool has none."""
        return common.parse_json(self.content, "", has_gaps=True)


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read, and why."""

    shown: str
    why: str


def list_files(source: Path, name: str = "") -> Iterator[File | Unreadable]:
    """Yield the regular files of a file, a folder or an archive, one at a time in order of their names.

    A single file may have another `name` than its own. DashboardError where there is no such source. Links are not
    followed; what is in an archive is not unpacked.
    """
    if not source.exists():
        raise DashboardError(f"{source}: no such file or folder. Give the path of the source.")
    if source.is_file():
        yield from _list_path(source, PurePosixPath(name or source.name), str(source))
        return
    tree, folder = trees.walk(source), os.path.basename(os.path.realpath(source))
    yield from (Unreadable(problem.path, problem.text) for problem in tree.problems)
    for entry in tree.entries:
        if not os.path.isdir(source / entry.path):  # a link to a folder is passed over
            yield from _list_path(source / entry.path, PurePosixPath(folder, entry.path), entry.path)


def _is_archive(name: str) -> bool:
    return name.lower().endswith((*_TARS, ".zip"))


def _list_path(path: Path, name: PurePosixPath, shown: str) -> Iterator[File | Unreadable]:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            yield Unreadable(shown, "is a symbolic link or not a regular file")
        elif _is_archive(name.name):
            yield from _list_archive(path, shown)
        elif status.st_size > MAX_FILE_BYTES:
            yield Unreadable(shown, f"has more than {MAX_FILE_BYTES} bytes")
        else:
            with path.open("rb") as file:
                yield _open_content(shown, name, file, path.parent)
    except OSError as error:
        yield Unreadable(shown, f"cannot be read: {error.strerror}")


def _open_content(shown: str, name: PurePosixPath, raw: IO[bytes], container: Path | None) -> File | Unreadable:
    """Read the file without the compression that its name says."""
    opener = _OPENERS.get(name.suffix.lower())
    try:
        content = (opener(raw) if opener else raw).read(MAX_FILE_BYTES + 1)
    except _BROKEN as error:
        if not opener:
            raise
        return Unreadable(shown, f"cannot be decompressed: {error}")
    if len(content) > MAX_FILE_BYTES:
        return Unreadable(shown, f"has more than {MAX_FILE_BYTES} bytes")
    return File(shown, name.with_suffix("") if opener else name, content, container)


def _list_archive(path: Path, shown: str) -> Iterator[File | Unreadable]:
    """Yield the members of an archive; one that is broken gives what lies before the break."""
    total = 0
    try:
        for count, (name, size, open_member) in enumerate(_list_members(path), start=1):
            total += size
            where = f"{shown}: {name}"
            if count > MAX_MEMBERS or total > MAX_ARCHIVE_BYTES:
                yield Unreadable(shown, f"contains more than {MAX_MEMBERS} files or {MAX_ARCHIVE_BYTES} bytes")
                return
            if open_member is None:
                continue
            if size > MAX_FILE_BYTES:
                yield Unreadable(where, f"has more than {MAX_FILE_BYTES} bytes")
            elif _is_archive(name):
                yield Unreadable(where, "is an archive within an archive. Unpack the outer one")
            else:
                yield _open_content(where, PurePosixPath(name), open_member(), path)
    except _BROKEN as error:
        yield Unreadable(shown, f"is not a complete archive: {error}")


_Member = tuple[str, int, Callable[[], IO[bytes]] | None]
"""Its name, its size, and what opens it; None of a folder, a link or a device."""


def _list_members(path: Path) -> Iterator[_Member]:
    if path.name.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                is_file = not entry.is_dir() and not stat.S_ISLNK(entry.external_attr >> 16)
                yield entry.filename, entry.file_size, functools.partial(archive.open, entry) if is_file else None
        return
    # As a stream: of a damaged archive all before the break can be read.
    with tarfile.open(path, "r|*") as stream:
        for member in stream:
            opened = functools.partial(_extract, stream, member) if member.isreg() else None
            yield member.name, member.size, opened


def _extract(stream: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    return stream.extractfile(member) or io.BytesIO()


@functools.lru_cache(maxsize=2)
def _find_members(archive: Path, name: str) -> Mapping[str, File]:
    """Find the members of that name, by their paths; an archive is read once more for them."""
    found = {}
    for file in _list_archive(archive, str(archive)):
        if isinstance(file, File) and file.name.name == name:
            found[posixpath.normpath(file.name)] = file
    return found
