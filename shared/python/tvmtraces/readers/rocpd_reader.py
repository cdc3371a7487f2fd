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
from tvmtraces.batches import NULL_INT, Batch, Column, Texts, WantedRows, WrongValue, concatenate
from tvmtraces.readers.rocpd_queries import DURATION, ON_TRACK, QUERIES, REFERENCES, Query, list_read_columns
from tvmtraces.readers.sqlite_input import convert, list_tables, open_database, quote_name, read_rows
from tvmtraces.tables import INT, TABLES

_ROWS_AT_ONCE = 1 << 13
_LARGE = frozenset({"event", "sample"})
"""Tables with a row for each row that refers to them."""
ROW = "_rowid_"
"""Stands for the column with a row's number at the end of a path; NULL where the path leads nowhere."""
_EVERYTHING = WantedRows({})


class Tables:
    """The tables of one writer in an opened database, by RocPD's names without prefix and suffix."""

    def __init__(self, database: sqlite3.Connection, present: Mapping[str, Sequence[str]], suffix: str) -> None:
        self.database, self._present, self._suffix = database, present, suffix
        self._held: dict[tuple[str, str], Column] = {}

    def name(self, table: str) -> str:
        """Return the table's name in this database."""
        return f"rocpd_{table}{self._suffix}"

    def has(self, table: str, column: str | None = None) -> bool:
        """Return True where the database has the table, and the column in it."""
        columns = self._present.get(self.name(table))
        return columns is not None and (column is None or column in columns)

    def adapt(self, query: Query) -> Query:
        """Return the query in the words of this database: schema 4 has places in tracks, and categories in a table."""

        def find(path: str) -> str:
            first, _, rest = path.partition(".")
            by_track = self.has(query.table, "track_id") and not self.has(query.table, first) and first in ON_TRACK
            if path.startswith("track_id.name_id") and self.has(query.table, "name_id"):
                path = path.removeprefix("track_id.")
            if rest == "category_id.string" and self.has("info_category"):
                path = f"{first}.category_id.name"
            return f"track_id.{path}" if by_track else path

        paths = {name: find(path) for name, path in query.paths.items()}
        return Query(query.table, paths, {bit: find(path) for bit, path in query.joined.items()})

    def find_referred(self, column: str) -> str:
        """Return the table that a column's numbers are of."""
        by_itself = column == "category_id" and self.has("info_category")
        return "info_category" if by_itself else REFERENCES[column]

    def count(self, table: str) -> int:
        """Count the rows of a table, by SQLite."""
        if not self.has(table):
            return 0
        query = f"SELECT count(*) FROM {quote_name(self.name(table))}"  # noqa: S608 - quoted
        return int(self.database.execute(query).fetchone()[0])

    def hold(self, table: str, path: str, kind: str) -> Column:
        """Return the column at the end of a path of a small table, by row number; row 0 is NULL."""
        if (table, path) not in self._held:
            parts = [(columns[path], count) for count, columns in JoinedTables(self, table).read({path: kind})]
            self._held[table, path] = concatenate(kind, [(None, 1), *parts])
        return self._held[table, path]


class JoinedTables:
    """One of RocPD's tables and what its rows refer to.

    SQLite joins the tables with a row for each of them. The others are small: they are held, and numpy looks into them,
    which takes half of the CPU time.
    """

    def __init__(self, tables: Tables, table: str) -> None:
        self._tables = tables
        self._source = f"{quote_name(tables.name(table))} R"
        self._places: dict[str, tuple[str, str] | None] = {"": ("R", table)}

    def read(
        self, paths: Mapping[str, str], timed: Sequence[str] = (), wanted: WantedRows = _EVERYTHING
    ) -> Iterator[tuple[int, dict[str, Column]]]:
        """Yield row counts with the columns at the ends of paths, of these types; None for a missing one.

        Of rows with times (paths of their begins and ends) only those that may touch the window that is wanted.
        WrongValue where a value is of another type; what is written in a text column is a text.
        """
        split = {path: self._split(path) for path in paths}
        kinds = {own: INT if rest else paths[path] for path, (own, rest) in split.items()}
        for count, columns in self._ask(kinds, timed, wanted):
            yield (
                count,
                {
                    path: self._look_up(own, rest, paths[path], columns[own]) if rest else columns[own]
                    for path, (own, rest) in split.items()
                },
            )

    def _split(self, path: str) -> tuple[str, str]:
        """Split a path into the part that SQLite is asked for and the rest, which begins in a table that is held."""
        parts = path.split(".")
        for at, column in enumerate(parts[:-1], start=1):
            if self._tables.find_referred(column) not in _LARGE:
                return ".".join(parts[:at]), ".".join(parts[at:])
        return path, ""

    def _ask(
        self, kinds: Mapping[str, str], timed: Sequence[str], wanted: WantedRows
    ) -> Iterator[tuple[int, dict[str, Column]]]:
        places = {path: self._find(path) for path in kinds}
        known = {path: place for path, place in places.items() if place is not None}
        chosen = ", ".join(sql for sql, _ in known.values()) or "0"
        condition = "1"
        times = [known[path][0] for path in timed if path in known]
        if times and wanted.begin_ns is not None and wanted.end_ns is not None:
            first, last = times[0], times[-1]
            inside = f"{first} < {wanted.end_ns} AND ({first} >= {wanted.begin_ns} OR {last} >= {wanted.begin_ns})"
            condition = f"typeof({first}) <> 'integer' OR typeof({last}) <> 'integer' OR ({inside})"
        query = f"SELECT {chosen} FROM {self._source} WHERE {condition} ORDER BY R._rowid_"  # noqa: S608
        cursor = self._tables.database.execute(query)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            columns: dict[str, Column] = dict.fromkeys(kinds)
            for (path, (_, place)), values in zip(known.items(), zip(*rows, strict=True), strict=False):
                columns[path] = convert(values, kinds[path], place)
            yield len(rows), columns

    def _find(self, path: str) -> tuple[str, str] | None:
        """Return the column at the end of a path, as SQL and in words; None where there is no such column."""
        link, _, column = path.rpartition(".")
        place = self._follow(link)
        if place is None or not (column == ROW or self._tables.has(place[1], column)):
            return None
        return f"{place[0]}.{quote_name(column)}", f"{self._tables.name(place[1])}.{column}"

    def _follow(self, link: str) -> tuple[str, str] | None:
        """Return the alias and the table to which a path of references leads; None where the database lacks them."""
        if link not in self._places:
            before, _, column = link.rpartition(".")
            place, tables = self._follow(before), self._tables
            table = tables.find_referred(column)
            self._places[link] = None
            if place is not None and tables.has(place[1], column) and tables.has(table):
                alias, name = f"J{len(self._places)}", quote_name(tables.name(table))
                self._source += f" LEFT JOIN {name} {alias} ON {alias}.{ROW} = {place[0]}.{quote_name(column)}"
                self._places[link] = (alias, table)
        return self._places[link]

    def _look_up(self, link: str, path: str, kind: str, keys: Column) -> Column:
        """Return the column at the end of a path in the rows that `keys`, the column at the end of a link, number."""
        import numpy

        table = self._tables.find_referred(link.rpartition(".")[2])
        if keys is None or not self._tables.has(table):
            return None
        ids, column = (self._tables.hold(table, name, of) for name, of in ((ROW, INT), (path, kind)))
        if column is None:
            return None
        places = numpy.minimum(numpy.searchsorted(ids, keys), len(ids) - 1)
        places[ids[places] != keys] = 0
        return Texts(column.codes[places], column.pool) if isinstance(column, Texts) else column[places]


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
        return tuple(table_set.guid for table_set in self.sets)

    def read(self, wanted: WantedRows) -> Iterator[Batch]:
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
