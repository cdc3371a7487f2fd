"""The rows of a large table, some at a time, by their ids: out of its pages, or if they are unusual, from SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmtraces.batches import NULL_INT, Column, WrongValue, concatenate, ints, texts
from tvmtraces.readers.sqlite_input import quote_name
from tvmtraces.readers.sqlite_pages import Asked, Pages, Unusual
from tvmtraces.tables import INT, REAL, TEXT

if TYPE_CHECKING:
    from tvmtraces.batches import Ints

PAGE_ROWS = 1 << 16
LOWEST, HIGHEST = -(2**63), 2**63 - 1
_IS_KEY = 1
"""`pk` of a column of the primary key in PRAGMA table_xinfo."""
_KINDS = {INT: (int,), REAL: (int, float), TEXT: (int, float, str)}
_WORDS = {INT: "a whole number", REAL: "a number", TEXT: "a text"}


@dataclass(frozen=True)
class TableRows:
    """Some rows: their ids, rising, and the columns that were asked for."""

    ids: Ints
    columns: Mapping[str, Column]


def read_rows_of(
    database: sqlite3.Connection, table: str, wanted: Mapping[str, str], low: int = LOWEST, high: int = HIGHEST
) -> Iterator[TableRows]:
    """The rows whose ids lie from `low` to `high`; `wanted` says of each column whether it is INT, REAL or TEXT.

    About PAGE_ROWS at once. WrongValue where a value is of another type; what is written in a text column is a text.
    """
    waiting: list[TableRows] = []
    for rows in _read(database, table, wanted, low, high):
        waiting.append(rows)
        if sum(len(part.ids) for part in waiting) >= PAGE_ROWS:
            yield _join(waiting, wanted)
            waiting = []
    if waiting:
        yield _join(waiting, wanted)


def _read(
    database: sqlite3.Connection, table: str, wanted: Mapping[str, str], low: int, high: int
) -> Iterator[TableRows]:
    done = low
    try:
        asked, root = _find_places(database, table, wanted)
        with Pages(_find_file(database)) as pages:
            for ids, columns in pages.read(root, asked, low, high):
                if len(ids):
                    yield TableRows(ids, dict(zip(wanted, columns, strict=True)))
                    done = int(ids[-1]) + 1
    except Unusual:
        yield from _ask_sqlite(database, table, wanted, done, high)


def _join(parts: Sequence[TableRows], wanted: Mapping[str, str]) -> TableRows:
    import numpy

    if len(parts) == 1:
        return parts[0]
    counts = [len(part.ids) for part in parts]
    columns = {
        name: concatenate(kind, [(part.columns[name], count) for part, count in zip(parts, counts, strict=True)])
        for name, kind in wanted.items()
    }
    return TableRows(numpy.concatenate([part.ids for part in parts]), columns)


def _find_places(database: sqlite3.Connection, table: str, wanted: Mapping[str, str]) -> tuple[Asked, int]:
    """Where the columns stand in a row, and the table's first page; Unusual where rows are stored in another way."""
    sql, root = database.execute(
        "SELECT sql, rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)
    ).fetchone()
    stored = database.execute(f"PRAGMA table_xinfo({quote_name(table)})").fetchall()
    keys = [int(number) for number, _, kind, _, _, pk, _ in stored if pk == _IS_KEY and kind.upper() == "INTEGER"]
    several = sum(bool(column[5]) for column in stored) > 1
    if several or any(column[6] for column in stored) or "WITHOUT" in sql.upper():
        raise Unusual("a table of another kind")
    place = {str(column[1]): int(column[0]) for column in stored}
    return Asked(tuple(place[name] for name in wanted), tuple(wanted.values()), next(iter(keys), None)), int(root)


def _find_file(database: sqlite3.Connection) -> Path:
    name = database.execute("PRAGMA database_list").fetchone()[2]
    if not name:
        raise Unusual("a database in memory")
    return Path(name)


def _ask_sqlite(
    database: sqlite3.Connection, table: str, wanted: Mapping[str, str], low: int, high: int
) -> Iterator[TableRows]:
    query = (
        f"SELECT {', '.join(['_rowid_', *map(quote_name, wanted)])} FROM {quote_name(table)} "  # noqa: S608 - quoted
        f"WHERE _rowid_ BETWEEN ? AND ? ORDER BY _rowid_"
    )
    cursor = database.execute(query, (low, high))
    while rows := cursor.fetchmany(PAGE_ROWS):
        ids, *values = zip(*rows, strict=True)
        places = [f"{table}.{name}" for name in wanted]
        found = map(_convert, values, wanted.values(), places)
        yield TableRows(ints(ids), dict(zip(wanted, found, strict=True)))


def _convert(values: Sequence[Any], kind: str, place: str) -> Column:
    import numpy

    wrong = next((value for value in values if value is not None and not isinstance(value, _KINDS[kind])), None)
    if wrong is not None:
        raise WrongValue(f"{place}: {wrong!r:.60} is not {_WORDS[kind]}")
    if kind == INT:
        return ints(NULL_INT if value is None else value for value in values)
    if kind == REAL:
        return numpy.array([numpy.nan if value is None else value for value in values], dtype=numpy.float64)
    return texts([None if value is None else str(value) for value in values])
