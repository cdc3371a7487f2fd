"""Sealing: traces become an immutable folder of Parquet with a catalogue, checked against what they were made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.traces.connection import Connection
from tvmdash.traces.filters import Filters
from tvmdash.traces.reading import Progress
from tvmdash.traces.sealed import CATALOGUE, Catalogue, SealedSource, SealedTable, sealed_source
from tvmdash.traces.sources import Source, find
from tvmdash.traces.tables import SEAL_VERSION, TABLES

_OPTIONS = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 5000"
_CHUNK_BYTES = 1 << 20


def seal(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    destination: Path,
    *,
    filters: Filters | None = None,
    part: str = "",
    progress: Progress | None = None,
) -> SealedSource:
    """Make the sealed run `destination` of all the traces in `paths`, which may be whatever `connect` takes.

    It is written beside, checked and renamed: every row of it is compared with what was read, and without `filters` the
    number of rows with what SQLite counts in the sources. DashboardError where they differ or `destination` exists;
    then nothing is left behind. The sources are not touched.
    """
    if destination.exists():
        raise DashboardError(f"{destination}: exists already. A sealed run is never changed; choose another place.")
    sources = find(paths)
    target = destination.absolute()
    with common.folder_beside(target) as folder:
        _fill(folder, target.name, sources, filters, part, progress)
    return sealed_source(destination)


def _fill(
    folder: Path, name: str, sources: Sequence[Source], filters: Filters | None, part: str, progress: Progress | None
) -> None:
    tables: dict[str, SealedTable] = {}
    with Connection(sources, filters or Filters(), progress, writable=folder) as traces:
        traces.load_all()
        for number, table in enumerate(TABLES, start=1):
            rows = _write(traces, table, folder)
            if rows:
                file = folder / f"{table}.parquet"
                tables[table] = SealedTable(rows, file.stat().st_size, _compute_digest(file))
            if progress is not None:
                progress("sealing", number, len(TABLES))
        if filters is None:
            _check_counts(sources, tables)
        catalogue = _make_catalogue(traces, name, sources, part, tables)
    common.write_json(folder / CATALOGUE, catalogue.to_json())
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _write(traces: Connection, table: str, folder: Path) -> int:
    """Write one table and read it back; its rows."""
    source = f"base_{table}"
    expected = traces.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0]  # noqa: S608 - our own names
    if not expected:
        return 0
    file = folder / f"{table}.parquet"
    traces.write_table(table, file, _OPTIONS)
    of_source, actual = (_sum(traces, table, relation) for relation in (source, f"read_parquet('{_escape(file)}')"))
    if of_source != actual:
        raise DashboardError(
            f"{file}: {actual[0]} rows were written and read back, not the same as the {of_source[0]} of the source. "
            "The source is untouched; the disk or its memory is in doubt."
        )
    with file.open("rb") as written:
        os.fsync(written.fileno())
    return int(expected)


def _escape(file: Path) -> str:
    import glob

    return glob.escape(str(file)).replace("'", "''")


def _sum(traces: Connection, table: str, source: str) -> tuple[int, int]:
    """The number of rows and the sum of a hash over each whole row."""
    columns = ", ".join(f'"{name}"' for name in TABLES[table].columns)
    query = f"SELECT count(*), sum(CAST(hash({columns}) AS HUGEINT)) FROM {source}"  # noqa: S608 - our own names
    rows, total = traces.execute(query).fetchall()[0]
    return int(rows), int(total or 0)


def _check_counts(sources: Sequence[Source], tables: dict[str, SealedTable]) -> None:
    """What SQLite counts in the sources is what was sealed: this checks our own reading."""
    counted: dict[str, int] = {}
    for source in sources:
        for table, rows in source.counts().items():
            counted[table] = counted.get(table, 0) + rows
    for table, rows in counted.items():
        sealed_rows = tables[table].rows if table in tables else 0
        if sealed_rows != rows:
            raise DashboardError(
                f"{table}: {sealed_rows} rows would be sealed, the sources have {rows}. Keep the sources."
            )


def _compute_digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _make_catalogue(
    traces: Connection, name: str, sources: Sequence[Source], part: str, tables: dict[str, SealedTable]
) -> Catalogue:
    def known(column: str, *places: str) -> tuple[str, ...]:
        parts = " UNION ".join(f"SELECT {column} AS v FROM {relation}" for relation in places)  # noqa: S608 - our own names
        query = f"SELECT DISTINCT v FROM ({parts}) WHERE v IS NOT NULL ORDER BY v"  # noqa: S608 - our own names
        return tuple(str(row[0]) for row in traces.execute(query))

    start, end = traces.known_bounds_ns()
    return Catalogue(
        version=SEAL_VERSION,
        name=name,
        sealed=common.stamp_of(common.utc_now()),
        guids=known("guid", "base_process"),
        nights=known("night", "base_process", "base_record", "base_night"),
        experiments=known("experiment", "base_process", "base_record"),
        hosts=known("hostname", "base_process"),
        start_ns=start,
        end_ns=end,
        source_bytes=sum(_count_bytes(source) for source in sources),
        sources=tuple(source.path.name for source in sources),
        part=part,
        tables=tables,
    )


def _count_bytes(source: Source) -> int:
    if isinstance(source, SealedSource):
        return source.catalogue.size_bytes
    return sum(path.stat().st_size for path in source.path.parent.glob(source.path.name + "*") if path.is_file())


def verify(folder: Path) -> SealedSource:
    """The sealed run in `folder`, every byte compared with its catalogue; DashboardError where it is broken."""
    source = sealed_source(folder)
    for table, sealed in source.catalogue.tables.items():
        if _compute_digest(folder / f"{table}.parquet") != sealed.sha256:
            raise DashboardError(
                f"{folder / table}.parquet: differs from its catalogue. Restore it or leave the run out."
            )
    return source


def keep_only(source: SealedSource, kept: Iterable[str]) -> None:
    """Replace a sealed run by one with these of its tables."""
    tables = {name: table for name, table in source.catalogue.tables.items() if name in frozenset(kept)}
    with common.folder_beside(source.path.absolute()) as folder:
        for name in tables:
            os.link(source.path / f"{name}.parquet", folder / f"{name}.parquet")
        common.write_json(folder / CATALOGUE, replace(source.catalogue, tables=tables).to_json())
