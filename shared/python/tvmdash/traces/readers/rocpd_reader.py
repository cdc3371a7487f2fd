"""RocPD databases as rocprofv3 writes them, schema version 3, as batches of the tables.

Tables carry the process's uuid as a suffix; several sets may lie in one file. Only tables are read: the views that lie
beside them are a stranger's code. Where RocPD's views drop a row because something it refers to is missing (a region's
name, a thread), the row is kept here with NULL in that place. https://github.com/ROCm/rocm-systems
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import Batch, Column, Texts, Wanted, WrongValue, batch_of_rows, texts
from tvmdash.traces.readers.rocpd_joins import Joined, Tables
from tvmdash.traces.readers.rocpd_queries import QUERIES, Query
from tvmdash.traces.readers.sqlite_input import list_tables, open_database, quote_name, read_rows, real_column
from tvmdash.traces.tables import INT, REAL, TABLES

SCHEMA_VERSION = 3
_METADATA = re.compile(r"rocpd_metadata(.*)", re.DOTALL)
_SMALL = frozenset({"process", "node", "agent", "thread"})


@dataclass(frozen=True)
class _Set:
    """The tables of one process in a file: their common suffix, its guid."""

    suffix: str
    guid: str


@dataclass(frozen=True)
class RocpdSource:
    """One RocPD database."""

    path: Path
    sets: tuple[_Set, ...]
    kind: str = "rocpd"

    @property
    def guids(self) -> tuple[str, ...]:
        """The processes in it."""
        return tuple(table_set.guid for table_set in self.sets)

    def read(self, wanted: Wanted) -> Iterator[Batch]:
        """The batches of what is wanted."""
        with open_database(self.path) as database:
            try:
                present = list_tables(database)
                for table_set in self.sets:
                    reading = _Reading(Tables(database, present, table_set.suffix), table_set.guid, wanted)
                    for table in sorted(wanted.tables.keys() & QUERIES.keys()):
                        yield from reading.batches(table, QUERIES[table])
            except WrongValue:
                raise
            except (ValueError, IndexError, KeyError) as error:
                raise DashboardError(f"{self.path}: not a RocPD database: {error}. Leave it out.") from error

    def counts(self) -> dict[str, int]:
        """How many rows the tables must get from here, counted by SQLite alone."""
        counts: dict[str, int] = {}
        with open_database(self.path) as database:
            present = list_tables(database)
            for table_set in self.sets:
                reading = _Reading(Tables(database, present, table_set.suffix), table_set.guid, Wanted({}))
                for table, query in QUERIES.items():
                    if table not in _SMALL:
                        counts[table] = counts.get(table, 0) + reading.count(query)
        return counts


def is_rocpd(tables: Mapping[str, Sequence[str]]) -> bool:
    """Whether a database with these tables is of rocprofv3."""
    return any(_METADATA.fullmatch(name) for name in tables)


def rocpd_source(path: Path, database: sqlite3.Connection, tables: Mapping[str, Sequence[str]]) -> RocpdSource:
    """The opened RocPD database at `path`; DashboardError where its schema is another or its processes are mixed."""
    sets = []
    for name in sorted(tables):
        match = _METADATA.fullmatch(name)
        if match:
            query = f"SELECT tag, value FROM {quote_name(name)}"  # noqa: S608 - quoted
            facts = {str(row["tag"]): str(row["value"]) for row in read_rows(database, query)}
            _check_version(path, facts.get("schema_version", ""))
            sets.append(_Set(match[1], _guid(path, database, match[1], facts)))
    return RocpdSource(path, tuple(sets))


def _check_version(path: Path, version: str) -> None:
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > SCHEMA_VERSION:
        problem = f"newer than {SCHEMA_VERSION}. Update the dashboard" if major.isdecimal() else "unknown. Leave it out"
        raise DashboardError(f"{path}: RocPD schema version {version!r:.40} is {problem}.")


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


class _Reading:
    """One set of tables of an opened database."""

    def __init__(self, tables: Tables, guid: str, wanted: Wanted) -> None:
        self.tables, self.guid, self.wanted = tables, guid, wanted

    def batches(self, table: str, query: Query) -> Iterator[Batch]:
        """The rows of one of our tables, or nothing where the database lacks theirs."""
        if not self.tables.has(query.table):
            return
        if table in _SMALL:
            chosen = ", ".join(f"{self.tables.existing(e)} AS {quote_name(name)}" for name, e in query.columns.items())
            source = self._source(query, (join[1] for join in query.joins))
            rows = read_rows(self.tables.database, f"SELECT {chosen} FROM {source} ORDER BY {query.alias}.id")  # noqa: S608
            yield batch_of_rows(table, [{**row, "guid": self.guid} for row in rows])
        else:
            yield self._large(table, query)

    def _large(self, table: str, query: Query) -> Batch:
        """Numbers at once; texts through the numbers of rocpd_string and its like."""
        types, where = TABLES[table].columns, " AND ".join(self._conditions(table, query))
        asked = {name: e for name, e in query.columns.items() if name in self.wanted.tables[table]}
        numbers = {name: e for name, e in asked.items() if types[name] == INT or name in query.pools}
        least = query.columns[TABLES[table].start or "id"]
        joined = Joined(self.tables, query, list(numbers.values()) or [least], where)
        columns: dict[str, Column] = {"guid": self.guid}
        for name, expression in asked.items():
            if name in query.pools:
                columns[name] = self.tables.texts(joined.numbers(expression), *query.pools[name])
            elif name in numbers:
                columns[name] = joined.numbers(expression)
            else:
                columns[name] = self._slow(query, expression, where, real=types[name] == REAL)
                if _length(columns[name]) != joined.count:
                    raise ValueError(f"{query.table} refers to several rows where one should be")
        return Batch(table, joined.count, columns)

    def _conditions(self, table: str, query: Query) -> Iterator[str]:
        """What the rows must fit: that they are of our table, that they may touch the window."""
        if query.only_without is not None:
            yield f"{self.tables.existing(query.only_without)} IS NULL"
        spec, begin, end = TABLES[table], self.wanted.begin_ns, self.wanted.end_ns
        if spec.start is not None and begin is not None and end is not None:
            start = self.tables.existing(query.columns[spec.start])
            after = f" OR {start} + ({query.columns[spec.duration]}) >= {begin}" if spec.duration else ""
            yield f"{start} < {end} AND ({start} >= {begin}{after})"

    def _slow(self, query: Query, expression: str, where: str, *, real: bool) -> Column:
        """A column of reals, or of texts that are stored row by row."""
        alias = expression.partition(".")[0]
        source = self._source(query, [alias]) + (f" WHERE {where}" if where else "")
        chosen, ordered = self.tables.existing(expression), f"{source} ORDER BY {query.alias}._rowid_"
        if real:
            return real_column(self.tables.database, chosen, ordered)
        rows = self.tables.database.execute(f"SELECT CAST({chosen} AS TEXT) FROM {ordered}")  # noqa: S608 - quoted
        return texts([row[0] for row in rows])

    def _source(self, query: Query, aliases: Iterable[str]) -> str:
        """The main table with these joined ones, and those that they are found by."""
        joins = {alias: (table, condition) for table, alias, condition in query.joins}
        chosen: list[str] = []
        for wanted in aliases:
            path, alias = [], wanted
            while alias != query.alias:
                path.append(alias)
                alias = joins[alias][1].partition(" = ")[2].partition(".")[0]
            chosen += [alias for alias in reversed(path) if alias not in chosen]
        parts = [f"{quote_name(self.tables.name(query.table))} {query.alias}"]
        for alias in chosen:
            table, condition = joins[alias]
            there = quote_name(self.tables.name(table)) if self.tables.has(table) else "(SELECT NULL AS id)"
            parts.append(f"LEFT JOIN {there} {alias} ON {condition}")
        return " ".join(parts)

    def count(self, query: Query) -> int:
        """How many rows a table of ours gets, without joins and conversions."""
        if not self.tables.has(query.table):
            return 0
        column = (query.only_without or "").rpartition(".")[2]
        where = f" WHERE {quote_name(column)} IS NULL" if self.tables.has(query.table, column) else ""
        source = f"{quote_name(self.tables.name(query.table))}{where}"
        return int(self.tables.database.execute(f"SELECT count(*) FROM {source}").fetchone()[0])  # noqa: S608


def _length(column: Column) -> int:
    return len(column.codes if isinstance(column, Texts) else column)
