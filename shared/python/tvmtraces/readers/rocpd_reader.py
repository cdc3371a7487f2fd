"""RocPD databases as rocprofv3 writes them, schema versions 3 and 4, as batches of the tables.

Tables carry their writer's uuid as a suffix; several sets may lie in one file. Only tables are read: the views that lie
beside them are a stranger's code. Where RocPD's views drop a row because something it refers to is missing (a region's
name, a thread), the row is kept with NULL in that place, and `missing` says so. https://github.com/ROCm/rocm-systems
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmtraces.batches import NULL_INT, Batch, Column, WantedRows, WrongValue
from tvmtraces.readers.rocpd_queries import DURATION, QUERIES, list_read_columns
from tvmtraces.readers.rocpd_rows import ROW, JoinedTables, Tables
from tvmtraces.readers.sqlite_input import list_tables, open_database, quote_name, read_rows
from tvmtraces.tables import INT, TABLES

SCHEMA_VERSION = 4
_METADATA = re.compile(r"rocpd_metadata(.*)", re.DOTALL)


@dataclass(frozen=True)
class _Set:
    """The tables of one process in a file: their common suffix, its guid."""

    suffix: str
    guid: str
    version: int


@dataclass(frozen=True)
class RocpdSource:
    """One RocPD database."""

    path: Path
    sets: tuple[_Set, ...]
    kind: str = "rocpd"

    @property
    def is_version_3(self) -> bool:
        """Return True where AMD's views of schema 3 fit its tables."""
        return all(table_set.version == 3 for table_set in self.sets)

    @property
    def guids(self) -> tuple[str, ...]:
        """Return the processes in it."""
        return tuple(table_set.guid for table_set in self.sets)

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
        """Yield the wanted batches."""
        with open_database(self.path) as database:
            try:
                present = list_tables(database)
                for table_set in self.sets:
                    tables = Tables(database, present, table_set.suffix)
                    for table in sorted(wanted.tables.keys() & QUERIES.keys()):
                        yield from _read(tables, table, table_set.guid, wanted)
            except WrongValue:
                raise
            except (ValueError, IndexError, KeyError) as error:
                raise DashboardError(f"{self.path}: not a RocPD database: {error}. Leave it out.") from error

    def counts(self) -> dict[str, int]:
        """Count the rows that the tables must get from here, by SQLite alone."""
        counts: dict[str, int] = {}
        with open_database(self.path) as database:
            present = list_tables(database)
            for table_set in self.sets:
                tables = Tables(database, present, table_set.suffix)
                for table, query in QUERIES.items():
                    if not TABLES[table].describes:
                        counts[table] = counts.get(table, 0) + tables.count(query.table)
        return counts

    def left_out(self) -> dict[str, int]:
        """Count the rows in tables that are not read, and the values in columns that are not."""
        counts: dict[str, int] = {}
        with open_database(self.path) as database:
            present = list_tables(database)
            for table_set in self.sets:
                tables = Tables(database, present, table_set.suffix)
                known = list_read_columns(tables.adapt, tables.find_referred)
                for name, columns in present.items():
                    if not name.startswith("rocpd_") or not name.endswith(table_set.suffix):
                        continue
                    table = name.removeprefix("rocpd_").removesuffix(table_set.suffix)
                    if table not in known:
                        _add(database, counts, f"rows of rocpd_{table}", f"count(*) FROM {quote_name(name)}")
                        continue
                    for column in sorted(set(columns) - known[table]):
                        value = quote_name(column)
                        of_rows = f"count(*) FROM {quote_name(name)} WHERE {value} NOT IN ('', '{{}}', '[]', 0)"
                        _add(database, counts, f"values of rocpd_{table}.{column}", of_rows)
        return counts


def _add(database: sqlite3.Connection, counts: dict[str, int], words: str, query: str) -> None:
    count = int(database.execute(f"SELECT {query}").fetchone()[0])
    if count:
        counts[words] = counts.get(words, 0) + count


def is_rocpd(tables: Mapping[str, Sequence[str]]) -> bool:
    """Return True where a database with these tables is of rocprofv3."""
    return any(_METADATA.fullmatch(name) for name in tables)


def rocpd_source(path: Path, database: sqlite3.Connection, tables: Mapping[str, Sequence[str]]) -> RocpdSource:
    """Return the opened RocPD database at `path`; DashboardError for another schema, or mixed processes."""
    sets = []
    for name in sorted(tables):
        match = _METADATA.fullmatch(name)
        if match:
            query = f"SELECT tag, value FROM {quote_name(name)}"  # noqa: S608 - quoted
            facts = {str(row["tag"]): str(row["value"]) for row in read_rows(database, query)}
            version = _check_version(path, facts.get("schema_version", ""))
            sets.append(_Set(match[1], _guid(path, database, match[1], facts), version))
    return RocpdSource(path, tuple(sets))


def _check_version(path: Path, version: str) -> int:
    major = version.partition(".")[0]
    if not major.isdecimal():
        raise DashboardError(f"{path}: RocPD schema version {version!r:.40} is unknown. Leave it out.")
    if int(major) > SCHEMA_VERSION:
        raise DashboardError(
            f"{path}: RocPD schema version {version!r:.40} is newer than {SCHEMA_VERSION}, the newest supported "
            f"version. Have the profiler write version {SCHEMA_VERSION}, or update the dashboard."
        )
    return int(major)


def _guid(path: Path, database: sqlite3.Connection, suffix: str, facts: Mapping[str, str]) -> str:
    query = f"SELECT DISTINCT guid FROM {quote_name('rocpd_info_process' + suffix)}"  # noqa: S608 - quoted
    guids = [str(row["guid"]) for row in read_rows(database, query)]
    if len(guids) > 1:
        raise DashboardError(
            f"{path}: one set of tables holds {len(guids)} processes. Give the files it was made from."
        )
    guid = guids[0] if guids else facts.get("guid", "")
    if not guid:
        raise DashboardError(f"{path}: says of no process, in table rocpd_metadata{suffix}. Leave it out.")
    return guid


def _read(tables: Tables, table: str, guid: str, wanted: WantedRows) -> Iterator[Batch]:
    """Yield the rows of one of our tables, some at a time; nothing where the database lacks theirs."""
    query, spec = tables.adapt(QUERIES[table]), TABLES[table]
    if not tables.has(query.table):
        return
    asked = {name: path for name, path in query.paths.items() if name in wanted.tables[table]}
    timed = [query.paths[name] for name in (spec.start,) if name]
    timed += ["end"] if DURATION in query.paths.values() else []
    links = {f"{path}.{ROW}": int(bit) for bit, path in query.joined.items() if "missing" in wanted.tables[table]}
    paths = {path: spec.columns[name] for name, path in asked.items() if path != DURATION}
    for count, columns in JoinedTables(tables, query.table).read(
        paths | dict.fromkeys([*timed, *links], INT), timed, wanted
    ):
        found = {name: _subtract(columns) if path == DURATION else columns[path] for name, path in asked.items()}
        if links:
            lost = {link: True if columns[link] is None else columns[link] == NULL_INT for link in links}
            found["missing"] = sum(lost[link] * bit for link, bit in links.items())
        yield Batch(table, count, {"guid": guid, **found})


def _subtract(columns: Mapping[str, Column]) -> Column:
    """Return the duration of each row, NULL for a call that had not ended, whose end a profiler writes as 0."""
    import numpy

    start, end = columns["start"], columns["end"]
    if start is None or end is None:
        return None
    return numpy.where((start == NULL_INT) | (end == NULL_INT) | (end < start), NULL_INT, end - start)
