"""The rows of one of RocPD's tables with what their references lead to, some at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from tvmtraces.batches import Column, Texts, WantedRows, concatenate
from tvmtraces.readers.rocpd_queries import ON_TRACK, REFERENCES, Query
from tvmtraces.readers.sqlite_input import convert, quote_name
from tvmtraces.tables import INT

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
