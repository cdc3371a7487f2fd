"""The rows of one of RocPD's tables with what their references lead to, some at a time, joined by numpy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmtraces.batches import NULL_INT, Column, Texts, concatenate, shrink
from tvmtraces.readers.rocpd_queries import ON_TRACK, REFERENCES, Query
from tvmtraces.readers.sqlite_input import quote_name
from tvmtraces.readers.table_rows import HIGHEST, LOWEST, read_rows_of
from tvmtraces.tables import INT, REAL, TEXT

if TYPE_CHECKING:
    from tvmtraces.batches import Ints

Kinds = Mapping[str, str]
"""Columns with the SQL types as which they are read."""
_LARGE = frozenset({"event", "sample"})
"""Tables with a row for each row that refers to them: only a part of them is held at a time."""


class Tables:
    """The tables of one writer in an opened database, by RocPD's names without prefix and suffix."""

    def __init__(self, database: sqlite3.Connection, present: Mapping[str, Sequence[str]], suffix: str) -> None:
        self._database, self._present, self._suffix = database, present, suffix
        self._held: dict[str, _Held] = {}

    def name(self, table: str) -> str:
        """The table's name in this database."""
        return f"rocpd_{table}{self._suffix}"

    def has(self, table: str, column: str | None = None) -> bool:
        """Whether the database has the table, and the column in it."""
        columns = self._present.get(self.name(table))
        return columns is not None and (column is None or column in columns)

    def read(
        self, table: str, wanted: Kinds, low: int = LOWEST, high: int = HIGHEST
    ) -> Iterator[tuple[Ints, dict[str, Column]]]:
        """The ids and columns of the rows with these ids, some at a time; None for a column that is not there."""
        if not self.has(table):
            return
        there = {name: kind for name, kind in wanted.items() if self.has(table, name)}
        for rows in read_rows_of(self._database, self.name(table), there, low, high):
            yield rows.ids, {name: rows.columns.get(name) for name in wanted}

    def adapt(self, query: Query) -> Query:
        """The query in the words of this database: schema 4 has places in tracks, and categories in a table."""

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
        """The table that a column's numbers are of."""
        by_itself = column == "category_id" and self.has("info_category")
        return "info_category" if by_itself else REFERENCES[column]

    def count(self, table: str) -> int:
        """How many rows a table has, counted by SQLite."""
        if not self.has(table):
            return 0
        query = f"SELECT count(*) FROM {quote_name(self.name(table))}"  # noqa: S608 - quoted
        return int(self._database.execute(query).fetchone()[0])

    def look_up(self, table: str, wanted: Kinds, keys: Ints) -> FoundRows:
        """The columns of the rows that `keys` number."""
        if table in _LARGE:
            return self._search(table, wanted, keys)
        held = self._held.setdefault(table, _Held())
        for name, kind in [("id", INT), *wanted.items()]:
            if (name, kind) not in held.columns:
                held.add(name, kind, list(self.read(table, {name: kind})))
        return held.find(wanted, keys)

    def _search(self, table: str, wanted: Kinds, keys: Ints) -> FoundRows:
        """What the large table's rows from the lowest to the highest of the keys hold for them."""
        known = keys[keys != NULL_INT]
        found = FoundRows.nothing(len(keys), wanted)
        if len(known):
            for ids, columns in self.read(table, wanted, int(known.min()), int(known.max())):
                found.fill(find_places(ids, keys), columns)
        return found


@dataclass
class FoundRows:
    """For each key whether there is a row, and the columns of that row."""

    there: Any
    columns: dict[str, Column]

    @classmethod
    def nothing(cls, count: int, wanted: Kinds) -> FoundRows:
        """No row for any of the keys."""
        import numpy

        empty: dict[str, Any] = {
            INT: lambda: numpy.full(count, NULL_INT, dtype=numpy.int64),
            REAL: lambda: numpy.full(count, numpy.nan),
            TEXT: lambda: Texts(numpy.full(count, -1, dtype=numpy.int64), []),
        }
        return cls(numpy.zeros(count, dtype=bool), {name: empty[kind]() for name, kind in wanted.items()})

    def fill(self, places: Ints, columns: Mapping[str, Column]) -> None:
        """Take the rows at `places`, where that is not -1, of further columns."""
        here = places >= 0
        self.there = self.there | here
        for name, column in columns.items():
            if column is None:
                continue
            before = self.columns[name]
            if isinstance(column, Texts):
                codes = column.codes[places[here]]
                before.codes[here] = codes + len(before.pool) * (codes >= 0)
                self.columns[name] = Texts(before.codes, [*before.pool, *column.pool])
            else:
                before[here] = column[places[here]]


class _Held:
    """A small table, of which columns are held."""

    def __init__(self) -> None:
        self.columns: dict[tuple[str, str], Column] = {}
        self._ids: Ints | None = None

    def add(self, name: str, kind: str, parts: Sequence[tuple[Ints, Mapping[str, Column]]]) -> None:
        import numpy

        ids = [part for part, _ in parts]
        self._ids = numpy.concatenate(ids) if ids else numpy.empty(0, dtype=numpy.int64)
        self.columns[name, kind] = concatenate(kind, [(columns[name], len(part)) for part, columns in parts])

    def find(self, wanted: Kinds, keys: Ints) -> FoundRows:
        import numpy

        found = FoundRows.nothing(len(keys), wanted)
        if self._ids is not None and len(self._ids):
            places = find_places(self._ids, keys)
            found.there = places >= 0
            for name, kind in wanted.items():
                column = self.columns[name, kind]
                if isinstance(column, Texts):
                    found.columns[name] = Texts(numpy.where(found.there, column.codes[places], -1), column.pool)
                elif column is not None:
                    found.columns[name] = numpy.where(found.there, column[places], found.columns[name])
        return found


def find_places(ids: Ints, keys: Ints) -> Ints:
    """Where each key stands in `ids`, which rise; -1 where it does not."""
    import numpy

    if not len(ids):
        return numpy.full(len(keys), -1, dtype=numpy.int64)
    if int(ids[-1]) - int(ids[0]) == len(ids) - 1:  # as a process numbers its rows
        return numpy.where((keys >= ids[0]) & (keys <= ids[-1]), keys - ids[0], -1)
    places = numpy.minimum(numpy.searchsorted(ids, keys), len(ids) - 1)
    return numpy.where(ids[places] == keys, places, -1)


Path = tuple[str, ...]
"""Columns, each of which but the last refers to a row of another table."""


def read_joined(tables: Tables, table: str, wanted: Mapping[Path, str], links: Sequence[Path]) -> Iterator[JoinedRows]:
    """The rows of a table with the columns at the ends of paths, of these types; `links` are references to look at."""
    columns: dict[Path, dict[str, str]] = {(): {}}
    for path, kind in [*wanted.items(), *(((*link, "id"), INT) for link in links)]:
        for length in range(len(path)):
            columns.setdefault(path[:length], {}).setdefault(path[length], kind if length == len(path) - 1 else INT)
    for ids, own in tables.read(table, columns[()]):
        yield JoinedRows(tables, ids, own, columns)


class JoinedRows:
    """Some rows of a table; what they refer to is looked up when it is asked for."""

    def __init__(
        self, tables: Tables, ids: Ints, own: Mapping[str, Column], columns: Mapping[Path, Mapping[str, str]]
    ) -> None:
        self._tables, self._wanted = tables, columns
        self._ids, self._own = ids, {name: shrink(column) for name, column in own.items()}
        self._found: dict[Path, FoundRows] = {}

    @property
    def count(self) -> int:
        """How many rows these are."""
        return len(self._ids)

    def keep(self, rows: Any) -> None:
        """Only some of the rows."""
        self._ids = self._ids[rows]
        self._own = {name: _choose(column, rows) for name, column in self._own.items()}
        self._found.clear()

    def column(self, path: Path) -> Column:
        """The column at the end of a path, or the one value of all rows; None where there is no such column."""
        return self._own[path[0]] if len(path) == 1 else self._follow(path[:-1]).columns[path[-1]]

    def numbers(self, path: Path) -> Ints:
        """A column of whole numbers, with a number for each row."""
        import numpy

        column = self.column(path)
        value = NULL_INT if column is None else column
        return numpy.full(self.count, value, dtype=numpy.int64) if isinstance(value, int) else value

    def leads(self, link: Path) -> Any:
        """For each row, or for all, whether a reference leads to a row."""
        return self._follow(link).there

    def _follow(self, link: Path) -> FoundRows:
        import numpy

        if link not in self._found:
            keys, wanted = self.column(link), {n: k for n, k in self._wanted[link].items() if n != "id"}
            one = keys is None or isinstance(keys, int)
            numbers = numpy.array([NULL_INT if keys is None else keys], dtype=numpy.int64) if one else keys
            found = self._tables.look_up(self._tables.find_referred(link[-1]), wanted, numbers)
            columns = {name: shrink(column) for name, column in found.columns.items()}
            self._found[link] = FoundRows(found.there[0] if one else found.there, columns)
        return self._found[link]


def _choose(column: Column, rows: Any) -> Column:
    if isinstance(column, Texts):
        return Texts(column.codes[rows], column.pool)
    return column[rows] if hasattr(column, "dtype") else column
