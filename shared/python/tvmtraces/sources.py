"""Recognize inputs: raw databases, sealed runs, RocPD databases, others' JSON; refuse anything else."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from tvmdash.errors import DashboardError
from tvmtraces.batches import Batch, WantedRows
from tvmtraces.readers.packed import (
    INDEX,
    find_archive,
    is_night_archive,
    is_package,
    list_databases,
    list_packaged,
)
from tvmtraces.readers.raw_reader import is_raw, raw_source
from tvmtraces.readers.rocpd_reader import is_rocpd, rocpd_source
from tvmtraces.readers.sqlite_input import is_sqlite, list_tables, open_database
from tvmtraces.sealed import CATALOGUE, SealedSource, sealed_source

_PATH_BYTES = 4000
"""The system opens no path of 4,096 bytes; the names of a run's files come behind this."""


class Source(Protocol):
    """One input. `read` gives the rows that do not lie in Parquet."""

    @property
    def path(self) -> Path: ...

    @property
    def kind(self) -> str: ...

    @property
    def guids(self) -> tuple[str, ...]: ...

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        """Yield the wanted batches."""

    def counts(self) -> dict[str, int]:
        """Count, independently of `read`, the rows that the tables must get from it, where possible."""


FindKind = Callable[[Path], Callable[[Path], Source] | None]
_JSON_KINDS: list[FindKind] = []
"""Filled by `add_json_kinds`: this package knows nothing of homes."""


def find(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Source]:
    """Find the sources that `paths` name: files, folders (all that lies in them), glob patterns.

    DashboardError for what is missing, given twice, broken, or of a newer format.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not given:
        raise DashboardError("No traces given. Give files, folders or patterns.")
    sources: list[Source] = []
    named: dict[tuple[int, int, str], Path] = {}
    for path in (expanded for pattern in given for expanded in _expand(os.fspath(pattern))):
        if not path.exists() and find_archive(path) is None:
            raise DashboardError(f"{path}: no such file or folder.")
        if path.suffix == ".parquet":
            _note(named, path)
            if any(source.path == path.parent for source in sources):
                continue
        for location in _list_locations(path):
            _note(named, location)
            sources.append(_open_source(location))
    _refuse_same_process(sources)
    return sources


def _note(named: dict[tuple[int, int, str], Path], location: Path) -> None:
    archive = find_archive(location)
    status = (archive or location).stat()
    member = str(location.relative_to(archive)) if archive else ""
    # by inode: links and other spellings of a path are one file
    first = named.setdefault((status.st_dev, status.st_ino, member), location)
    if first is not location:
        also = "" if first == location else f" (also as {first})"
        raise DashboardError(f"{location}: given twice{also}. Give it once.")


def _expand(given: str) -> Sequence[Path]:
    if Path(given).exists() or not glob.has_magic(given):
        return [Path(given)]
    matches = sorted(glob.glob(given, recursive=True))
    if not matches:
        raise DashboardError(f"{given}: no file matches. Check the pattern.")
    return [Path(path) for path in matches]


def _list_locations(path: Path) -> Iterator[Path]:
    """Yield the files, and the folders of sealed runs, that `path` stands for."""
    if path.name == CATALOGUE or path.suffix == ".parquet" or (path.name == INDEX and is_package(path.parent)):
        path = path.parent
    if path.is_file() and path.suffix == ".zip":
        databases = list_databases(path)
        if not databases:
            raise DashboardError(
                f"{path}: contains no database. What the night could seal is in {path.stem} in the same folder."
            )
        yield from databases
        return
    if not path.is_dir():
        yield path
        return
    locations = list(_list_inside(path))
    if not locations:
        raise DashboardError(
            f"{path}: no traces in this folder (raw_*.db, raw_*.zip, *.db of rocprofv3, {CATALOGUE}, data_*.json)."
        )
    yield from locations


def _list_inside(folder: Path) -> Iterator[Path]:
    """Yield a folder's traces, in order of names.

    Hidden folders are unfinished work; what subsystems left beside the experiments' results is made of those; links
    are not followed.
    """
    waiting = [(folder, True)]
    while waiting:  # a folder may lie deeper than a function may call itself
        path, is_folder = waiting.pop()
        if is_folder and is_package(path) and not (path / CATALOGUE).is_file():
            yield from list_packaged(path)
        elif is_folder and not (path / CATALOGUE).is_file():
            waiting += reversed(list(_list_entries(path)))
        elif not is_folder and is_night_archive(path):
            yield from list_databases(path)
        elif is_folder or path.name.endswith(".db") or _json_kind(path):
            yield path


def _list_entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    with os.scandir(folder) as entries:
        ordered = sorted(entries, key=lambda entry: entry.name)
    made = "subsystem" if any(entry.name == "experiments" for entry in ordered) else None
    for entry in ordered:
        is_seen = not entry.name.startswith(".") and entry.name != made and len(os.fsencode(entry.path)) < _PATH_BYTES
        if is_seen and (entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)):
            yield Path(entry.path), entry.is_dir(follow_symlinks=False)


def add_json_kinds(find_kind: FindKind) -> None:
    """Register a kind of JSON input: `find_kind` returns, by a path, the function that opens it, or None."""
    _JSON_KINDS.append(find_kind)


def _json_kind(path: Path) -> Callable[[Path], Source] | None:
    return next((kind for find_kind in _JSON_KINDS if (kind := find_kind(path)) is not None), None)


def _open_source(path: Path) -> Source:
    if path.is_dir():
        return sealed_source(path)
    if find_archive(path) is not None:
        return _open_database(path)
    if not path.is_file():
        raise DashboardError(f"{path}: not a regular file.")
    kind = _json_kind(path)
    if kind is not None:
        return kind(path)
    try:
        if not is_sqlite(path):
            raise DashboardError(f"{path}: neither a database nor a sealed run. Leave it out.")
    except OSError as error:
        raise DashboardError(f"{path}: cannot be read: {error.strerror}.") from error
    return _open_database(path)


def _open_database(path: Path) -> Source:
    with open_database(path) as database:
        tables = list_tables(database)
        if is_raw(tables):
            return raw_source(path, database)
        if is_rocpd(tables):
            return rocpd_source(path, database, tables)
        if "_born" in tables:
            raise DashboardError(f"{path}: a home's index, no traces. Ask it with: results HOME --sql SQL.")
    raise DashboardError(f"{path}: neither a raw database of this dashboard nor one of rocprofv3. Leave it out.")


def _refuse_same_process(sources: Sequence[Source]) -> None:
    """Refuse measurements under two names, which would count twice; parts of one split are different measurements."""
    known: dict[str, dict[str, Path]] = {}
    for source in sources:
        part = source.catalogue.part if isinstance(source, SealedSource) else ""
        for guid in source.guids:
            others = known.setdefault(guid, {})
            if any(not _side_by_side(part, other) for other in others):
                first = next(iter(others.values()))
                raise DashboardError(
                    f"{source.path}: contains process {guid}, which is also in {first}. Give only one of them."
                )
            others[part] = source.path


def _side_by_side(part: str, other: str) -> bool:
    """Return True where two parts (`2/3`, or nothing for a whole) are different ones of one split."""
    return part != other and part.partition("/")[2] == other.partition("/")[2] != ""


def sealed_of(sources: Iterable[Source]) -> list[SealedSource]:
    """Return the sealed runs among the sources."""
    return [source for source in sources if isinstance(source, SealedSource)]
