"""Sealing: traces become an immutable folder of Parquet with a catalogue, checked against what they were made from.

Retention drops the measurements of sealed runs by age and by size, oldest first; records are never dropped.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError
from tvmtraces.connection import Progress, Traces
from tvmtraces.filters import Filters
from tvmtraces.readers.packed import count_bytes
from tvmtraces.readers.reach import BOUNDED
from tvmtraces.readers.rocpd_reader import RocpdSource
from tvmtraces.sealed import (
    CATALOGUE,
    Catalogue,
    SealedFile,
    SealedSource,
    SealedTable,
    name_part,
    sealed_source,
    table_of,
)
from tvmtraces.sources import Source, find
from tvmtraces.tables import SEAL_VERSION, TABLES, is_held

_OPTIONS = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 5000"
_CHUNK_BYTES = 1 << 20
_COMMON = (None, 0, 1, "{}")
"""Values that a column that holds them throughout has in the catalogue instead of in a file."""
_OF_A_ROW = frozenset({"guid", "name"})
"""Texts of large tables that are stored even where they are all the same: runs would be alike in nothing."""


def seal(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    destination: Path,
    *,
    filters: Filters | None = None,
    progress: Progress | None = None,
) -> SealedSource:
    """Make the sealed run `destination` of all the traces in `paths`, which may be whatever `connect` takes.

    It is written beside, checked and renamed: every row of it is compared with what was read, and without `filters` the
    number of rows with what SQLite counts in the sources. DashboardError where they differ or `destination` exists;
    then nothing is left behind. The sources are not touched.
    """
    # before any reading, which takes long
    if destination.exists():
        raise DashboardError(f"{destination}: exists already. A sealed run is never changed; choose another place.")
    sources = find(paths)
    target = destination.absolute()
    with common.folder_beside(target) as folder:
        _fill(folder, target.name, sources, filters, progress)
    return sealed_source(destination)


def _fill(
    folder: Path, name: str, sources: Sequence[Source], filters: Filters | None, progress: Progress | None
) -> None:
    with Traces(sources, filters or Filters(), progress, writable=folder) as traces:
        run = _SealedRun(folder, traces)
        for table in traces.stream(run.files):
            run.write(table)
        if filters is None:
            _check_counts(sources, run.tables)
        catalogue = _make_catalogue(traces, name, sources, run)
    common.write_json(folder / CATALOGUE, catalogue.to_json())


class _SealedRun:
    """A sealed run in the making: the files of its tables so far."""

    def __init__(self, folder: Path, traces: Traces) -> None:
        self._folder, self._traces = folder, traces
        self.tables: dict[str, SealedTable] = {}
        self._parts: dict[str, int] = {}
        self.bounds_ns: list[int] = []

    def write(self, table: str) -> None:
        """Write the rows that the connection shows of a table now, read them back, and compare every row."""
        traces, number = self._traces, self._parts.get(table, 0)
        constants = {name: value for name, value in traces.constants(table).items() if _is_left_out(table, name, value)}
        columns = [name for name in TABLES[table].columns if name not in constants]
        source = f"base_{table}"
        rows, of_source = _sum(traces, columns, source)
        if not rows:
            return
        file = self._folder / f"{name_part(table, number)}.parquet"
        traces.write_table(table, columns, file, _OPTIONS)
        actual = _sum(traces, columns, f"read_parquet('{_escape(file)}')")
        if actual != (rows, of_source):
            raise DashboardError(
                f"{file}: {actual[0]} rows were written and read back, not the same as the {rows} of the source. "
                "The source is untouched; the disk or its memory is in doubt."
            )
        self._note_bounds(table)
        self._parts[table] = number + 1
        self.tables[file.stem] = SealedTable(rows, file.stat().st_size, _compute_digest(file), constants)

    def files(self, table: str) -> list[SealedFile]:
        """Return the files of a table so far."""
        return [
            SealedFile(self._folder / f"{name}.parquet", SEAL_VERSION, sealed.left_out)
            for name, sealed in self.tables.items()
            if table_of(name) == table
        ]

    def _note_bounds(self, table: str) -> None:
        spec = TABLES[table]
        if table in BOUNDED:
            end = f'"{spec.start}"' + (f' + coalesce("{spec.duration}", 0)' if spec.duration else "")
            query = f'SELECT min("{spec.start}"), max({end}) FROM base_{table}'  # noqa: S608 - our own names
            self.bounds_ns += [bound for bound in self._traces.ask_loaded(query)[0] if bound is not None]


def _is_left_out(table: str, column: str, value: int | str | None) -> bool:
    return value in _COMMON or (isinstance(value, str) and not is_held(table) and column not in _OF_A_ROW)


def _escape(file: Path) -> str:
    import glob

    return glob.escape(str(file)).replace("'", "''")


def _sum(traces: Traces, columns: Sequence[str], source: str) -> tuple[int, int]:
    """Return the number of rows and the sum of a hash over each whole row."""
    listed = ", ".join(f'"{name}"' for name in columns) or "0"
    query = f"SELECT count(*), sum(CAST(hash({listed}) >> 12 AS BIGINT)) FROM {source}"  # noqa: S608 - our own names
    rows, total = traces.ask_loaded(query)[0]
    return int(rows), int(total or 0)


def _check_counts(sources: Sequence[Source], tables: Mapping[str, SealedTable]) -> None:
    """Check our own reading: as many rows were sealed as SQLite counts in the sources."""
    counted, sealed_rows = Counter[str](), Counter[str]()
    for source in sources:
        counted.update(source.counts())
    for name, sealed in tables.items():
        sealed_rows[table_of(name)] += sealed.rows
    for table, rows in counted.items():
        if sealed_rows[table] != rows:
            raise DashboardError(
                f"{table}: {sealed_rows[table]} rows would be sealed, the sources have {rows}. Keep the sources."
            )


def _compute_digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _make_catalogue(traces: Traces, name: str, sources: Sequence[Source], run: _SealedRun) -> Catalogue:
    def known(column: str, *places: str) -> tuple[str, ...]:
        parts = " UNION ".join(f"SELECT {column} AS v FROM {relation}" for relation in places)  # noqa: S608 - our own names
        query = f"SELECT DISTINCT v FROM ({parts}) WHERE v IS NOT NULL ORDER BY v"  # noqa: S608 - our own names
        return tuple(str(row[0]) for row in traces.execute(query))

    return Catalogue(
        version=SEAL_VERSION,
        name=name,
        sealed=common.stamp_of(common.utc_now()),
        guids=known("guid", "base_process"),
        nights=known("night", "base_process", "base_record", "base_night"),
        experiments=known("experiment", "base_process", "base_record"),
        hosts=known("hostname", "base_process"),
        start_ns=min(run.bounds_ns, default=None),
        end_ns=max(run.bounds_ns, default=None),
        source_bytes=sum(_count_bytes(source) for source in sources),
        sources=tuple(source.path.name for source in sources),
        part="",
        tables=run.tables,
        left_out=_add_left_out(sources),
    )


def _add_left_out(sources: Sequence[Source]) -> dict[str, int]:
    """Add what is left out of the sources and what was left out when they were sealed."""
    counted = Counter[str]()
    for source in sources:
        if isinstance(source, RocpdSource):
            counted.update(source.left_out())
        elif isinstance(source, SealedSource):
            counted.update(source.catalogue.left_out)
    return dict(sorted(counted.items()))


def _count_bytes(source: Source) -> int:
    if isinstance(source, SealedSource):
        return source.catalogue.size_bytes
    return count_bytes(source.path)


def verify(folder: Path) -> SealedSource:
    """Compare every byte of the sealed run in `folder` with its catalogue; DashboardError where it is broken."""
    source = sealed_source(folder)
    for table, sealed in source.catalogue.tables.items():
        if _compute_digest(folder / f"{table}.parquet") != sealed.sha256:
            raise DashboardError(
                f"{folder / table}.parquet: differs from its catalogue. Restore it or leave the run out."
            )
    return source


def keep_only(source: SealedSource, kept: Iterable[str]) -> None:
    """Replace a sealed run by one with these of its tables."""
    tables = {name: table for name, table in source.catalogue.tables.items() if table_of(name) in frozenset(kept)}
    with common.folder_beside(source.path.absolute()) as folder:
        for name in tables:
            os.link(source.path / f"{name}.parquet", folder / f"{name}.parquet")
        common.write_json(folder / CATALOGUE, replace(source.catalogue, tables=tables).to_json())


KEPT_FOR_EVER = ("record", "night", "stage")
"""Tables that are small and say what was measured; retention leaves them."""


def prune(folder: Path, *, keep_days: float | None = None, max_bytes: int | None = None) -> list[Path]:
    """Drop the raw measurements of the oldest sealed runs directly in `folder`; return the runs that lost them.

    A run goes when it was sealed more than `keep_days` days ago, or while all of them together have more than
    `max_bytes`. What a run knows of `KEPT_FOR_EVER` stays, as a smaller run of the same name.
    """
    runs = sorted((sealed_source(path.parent) for path in folder.glob(f"*/{CATALOGUE}")), key=_find_age)
    full = [run for run in runs if run.catalogue.table_names - set(KEPT_FOR_EVER)]
    gone = _find_too_old(full, keep_days)
    rest = [run for run in full if run not in gone]
    size = sum(run.catalogue.size_bytes for run in runs if run not in gone)
    while rest and max_bytes is not None and size > max_bytes:
        size -= rest[0].catalogue.size_bytes
        gone.append(rest.pop(0))
    for run in gone:
        if run.catalogue.table_names & set(KEPT_FOR_EVER):
            keep_only(run, KEPT_FOR_EVER)
        else:
            trees.remove(run.path)
    return [run.path for run in gone]


def _find_age(run: SealedSource) -> tuple[str, str]:
    return run.catalogue.sealed, run.catalogue.name


def _find_too_old(runs: Sequence[SealedSource], keep_days: float | None) -> list[SealedSource]:
    if keep_days is None:
        return []
    oldest = common.utc_now() - datetime.timedelta(days=keep_days)
    return [run for run in runs if common.parse_stamp(run.catalogue.sealed) < oldest]
