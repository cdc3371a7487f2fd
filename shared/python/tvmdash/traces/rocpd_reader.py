"""RocPD databases as rocprofv3 writes them, schema version 3, as batches of the tables.

Tables carry the process's uuid as a suffix; several sets may lie in one file. Only tables are read: the views that lie
beside them are a stranger's code. Where RocPD's views drop a row because something it refers to is missing (a region's
name, a thread), the row is kept here with NULL in that place. https://github.com/ROCm/rocm-systems
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import Batch, Column, Texts, batch_of_rows, texts
from tvmdash.traces.rocpd_queries import QUERIES, Query
from tvmdash.traces.sqlite_input import int_columns, opened, quoted, rows_of, tables_of
from tvmdash.traces.tables import INT, REAL, TABLES

if TYPE_CHECKING:
    from tvmdash.traces.batches import Ints

SCHEMA_VERSION = 3
_METADATA = re.compile(r"rocpd_metadata(.*)", re.DOTALL)
_PLACED = re.compile(r"(\w+)\.(\w+)\.(\w+)")
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
        return tuple(one.guid for one in self.sets)

    def read(self, tables: frozenset[str]) -> Iterator[Batch]:
        """The batches of these tables."""
        with opened(self.path) as database:
            try:
                present = tables_of(database)
                for one in self.sets:
                    for table in sorted(tables & QUERIES.keys()):
                        yield from _Reading(database, present, one).batches(table, QUERIES[table])
            except (ValueError, IndexError, KeyError) as error:
                raise DashboardError(f"{self.path}: not a RocPD database: {error!r}. Leave it out.") from error

    def counts(self) -> dict[str, int]:
        """How many rows the tables must get from here, counted by SQLite alone."""
        found: dict[str, int] = {}
        with opened(self.path) as database:
            present = tables_of(database)
            for one in self.sets:
                reading = _Reading(database, present, one)
                for table, query in QUERIES.items():
                    if table not in _SMALL:
                        found[table] = found.get(table, 0) + reading.count(query)
        return found


def is_rocpd(tables: Mapping[str, Sequence[str]]) -> bool:
    """Whether a database with these tables is of rocprofv3."""
    return any(_METADATA.fullmatch(name) for name in tables)


def rocpd_source(path: Path, database: sqlite3.Connection, tables: Mapping[str, Sequence[str]]) -> RocpdSource:
    """The opened RocPD database at `path`; DashboardError where its schema is another or its processes are mixed."""
    sets = []
    for name in sorted(tables):
        match = _METADATA.fullmatch(name)
        if match:
            query = f"SELECT tag, value FROM {quoted(name)}"  # noqa: S608 - quoted
            facts = {str(row["tag"]): str(row["value"]) for row in rows_of(database, query)}
            _check_version(path, facts.get("schema_version", ""))
            sets.append(_Set(match[1], _guid(path, database, match[1], facts)))
    return RocpdSource(path, tuple(sets))


def _check_version(path: Path, version: str) -> None:
    major = version.partition(".")[0]
    if not major.isdecimal() or int(major) > SCHEMA_VERSION:
        words = f"newer than {SCHEMA_VERSION}. Update the dashboard" if major.isdecimal() else "unknown. Leave it out"
        raise DashboardError(f"{path}: RocPD schema version {version!r:.40} is {words}.")


def _guid(path: Path, database: sqlite3.Connection, suffix: str, facts: Mapping[str, str]) -> str:
    query = f"SELECT DISTINCT guid FROM {quoted('rocpd_info_process' + suffix)}"  # noqa: S608 - quoted
    found = [str(row["guid"]) for row in rows_of(database, query)]
    if len(found) > 1:
        raise DashboardError(
            f"{path}: one set of tables holds {len(found)} processes. Give the files it was made from."
        )
    guid = found[0] if found else facts.get("guid", "")
    if not guid:
        raise DashboardError(f"{path}: says of no process, in table rocpd_metadata{suffix}. Leave it out.")
    return guid


class _Reading:
    """One set of tables of an opened database."""

    def __init__(self, database: sqlite3.Connection, present: Mapping[str, Sequence[str]], one: _Set) -> None:
        self.database, self.present, self.one = database, present, one

    def batches(self, table: str, query: Query) -> Iterator[Batch]:
        """The rows of one of our tables, or nothing where the database lacks theirs."""
        main = self._name(query.table)
        if main not in self.present:
            return
        chosen = {name: self._existing(expression) for name, expression in query.columns.items()}
        source = f"{quoted(main)} {query.alias}{''.join(map(self._join, query.joins))}"
        if query.only_without is not None:
            source += f" WHERE {self._existing(query.only_without)} IS NULL"
        source += f" ORDER BY {query.alias}.id"
        if table in _SMALL:
            words = ", ".join(f"{expression} AS {quoted(name)}" for name, expression in chosen.items())
            rows = rows_of(self.database, f"SELECT {words} FROM {source}")  # noqa: S608 - quoted
            yield batch_of_rows(table, [{**row, "guid": self.one.guid} for row in rows])
            return
        yield self._large(table, query, chosen, source)

    def count(self, query: Query) -> int:
        """How many rows a table of ours gets, without joins and conversions."""
        main = self._name(query.table)
        if main not in self.present:
            return 0
        column = (query.only_without or "").rpartition(".")[2]
        where = f" WHERE {quoted(column)} IS NULL" if column in self.present[main] else ""
        return int(self.database.execute(f"SELECT count(*) FROM {quoted(main)}{where}").fetchone()[0])  # noqa: S608

    def _large(self, table: str, query: Query, chosen: Mapping[str, str], source: str) -> Batch:
        """Numbers at once; texts through the numbers of rocpd_string and its like."""
        types = TABLES[table].columns
        numbers = {name: e for name, e in chosen.items() if types[name] == INT or name in query.pools}
        arrays = dict(zip(numbers, int_columns(self.database, list(numbers.values()), source), strict=True))
        columns: dict[str, Column] = {"guid": self.one.guid}
        for name, expression in chosen.items():
            if name in query.pools:
                columns[name] = self._texts(arrays[name], query.pools[name])
            elif name in arrays:
                columns[name] = arrays[name]
            else:
                columns[name] = self._slow(expression, source, real=types[name] == REAL)
        return Batch(table, len(next(iter(arrays.values()))), columns)

    def _slow(self, expression: str, source: str, *, real: bool) -> Column:
        """A column of reals, or of texts that are stored row by row."""
        import numpy

        kind = "REAL" if real else "TEXT"
        query = f"SELECT CAST({expression} AS {kind}) FROM {source}"  # noqa: S608 - quoted
        found = [row[0] for row in self.database.execute(query)]
        return numpy.array(found, dtype=numpy.float64) if real else texts(found)

    def _texts(self, codes: Ints, pool: tuple[str, str]) -> Texts:
        """The texts that `codes` number in a table and column; NULL where there is none."""
        import numpy

        table, column = self._name(pool[0]), pool[1]
        query = f"SELECT id, CAST({quoted(column)} AS TEXT) FROM {quoted(table)}"  # noqa: S608 - quoted
        stored = self.database.execute(query) if table in self.present else []
        found = {int(number): str(text) for number, text in stored if text is not None}
        known, places = numpy.unique(codes, return_inverse=True)
        pool_known = [found[code] for code in known.tolist() if code in found]
        place_of = iter(range(len(pool_known)))
        new = numpy.array([next(place_of) if code in found else -1 for code in known.tolist()], dtype=numpy.int64)
        return Texts(new[places], pool_known)

    def _join(self, join: tuple[str, str, str]) -> str:
        table, alias, condition = join
        name = self._name(table)
        source = quoted(name) if name in self.present else "(SELECT NULL AS id)"
        return f" LEFT JOIN {source} {alias} ON {condition}"

    def _existing(self, expression: str) -> str:
        """`expression`; NULL where it is `alias.table.column` and the column came with a later schema."""
        match = _PLACED.fullmatch(expression)
        if match is None:
            return expression
        alias, table, column = match.groups()
        return f"{alias}.{quoted(column)}" if column in self.present.get(self._name(table), ()) else "NULL"

    def _name(self, table: str) -> str:
        return f"rocpd_{table}{self.one.suffix}"
