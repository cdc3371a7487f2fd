"""Files of strangers: found without following a link, read within limits, never changed."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.files import trees

MAX_FILE_BYTES = 64 << 20
MAX_ARCHIVE_BYTES = 4 << 30
MAX_MEMBERS = 100_000
_ARCHIVES = (".tar.gz", ".tgz", ".tar")


@dataclass(frozen=True)
class File:
    """One file of the source. `name` is its path below the source, or in an archive; `shown` says it to people.

    `path` is where it lies, where it lies in a folder.
    """

    shown: str
    name: PurePosixPath
    content: bytes
    path: Path | None = None

    @property
    def digest(self) -> str:
        """What names these bytes."""
        return hashlib.sha256(self.content).hexdigest()

    def near(self, relative: str) -> File | None:
        """The regular file at a path relative to this one's folder, where there is one to be read."""
        if self.path is None:
            return None
        files = list(_list_path(self.path.parent / relative, self.name.parent / relative, relative))
        return files[0] if files and isinstance(files[0], File) else None

    def json(self) -> Any:
        """The JSON value in it, with null for NaN and Infinity, which Python's writers leave where a tool has none."""
        try:
            value = json.loads(self.content.decode("utf-8"), parse_constant=lambda _: None, parse_float=_parse_finite)
            text = json.dumps(value)
        except (ValueError, RecursionError) as error:
            raise DashboardError(f"not JSON: {str(error)[:200]}") from error
        return common.parse_json(text.encode(), "as read")


def _parse_finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read, and why."""

    shown: str
    why: str


def list_files(source: Path) -> Iterator[File | Unreadable]:
    """The regular files of a file, a folder or an archive, one at a time in order of their names.

    DashboardError where there is no such source. Links are not followed; what is in an archive is not unpacked.
    """
    if not source.exists():
        raise DashboardError(f"{source}: no such file or folder. Give the path of the source.")
    if source.is_file():
        yield from _list_path(source, PurePosixPath(source.name), str(source))
        return
    tree, name = trees.walk(source), os.path.basename(os.path.realpath(source))
    yield from (Unreadable(problem.path, problem.text) for problem in tree.problems)
    for entry in tree.entries:
        if not os.path.isdir(source / entry.path):  # a link to a folder is passed over
            yield from _list_path(source / entry.path, PurePosixPath(name, entry.path), entry.path)


def _list_path(path: Path, name: PurePosixPath, shown: str) -> Iterator[File | Unreadable]:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            yield Unreadable(shown, "is a symbolic link or not a regular file")
        elif path.name.endswith(_ARCHIVES):
            yield from _list_archive(path, shown)
        elif status.st_size > MAX_FILE_BYTES:
            yield Unreadable(shown, f"has more than {MAX_FILE_BYTES} bytes")
        else:
            yield File(shown, name, path.read_bytes(), path)
    except OSError as error:
        yield Unreadable(shown, f"cannot be read: {error.strerror}")


def _list_archive(path: Path, shown: str) -> Iterator[File | Unreadable]:
    """The members of a tar; one that is broken gives what lies before the break."""
    total = 0
    try:
        with tarfile.open(path, "r|*") as archive:
            for count, member in enumerate(archive, start=1):
                total += member.size
                where = f"{shown}: {member.name}"
                if count > MAX_MEMBERS or total > MAX_ARCHIVE_BYTES:
                    yield Unreadable(shown, f"contains more than {MAX_MEMBERS} files or {MAX_ARCHIVE_BYTES} bytes")
                    return
                if not member.isreg():
                    continue
                if member.size > MAX_FILE_BYTES:
                    yield Unreadable(where, f"has more than {MAX_FILE_BYTES} bytes")
                    continue
                content = archive.extractfile(member) or io.BytesIO()
                yield File(where, PurePosixPath(member.name), content.read(MAX_FILE_BYTES))
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError) as error:
        yield Unreadable(shown, f"is not a complete archive: {error}")
