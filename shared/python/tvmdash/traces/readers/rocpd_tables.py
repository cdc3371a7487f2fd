"""RocPD's own tables, `rocpd_kernel_dispatch` and its like, with the rows of all writers."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import Column, concatenate
from tvmdash.traces.readers.rocpd_reader import RocpdSource
from tvmdash.traces.readers.sqlite_input import list_tables, open_database, quote_name
from tvmdash.traces.readers.table_rows import read_rows_of
from tvmdash.traces.tables import INT, REAL, TEXT

_NAME = re.compile(r"rocpd_\w+")
_COLUMN = re.compile(r"[A-Za-z_]\w*")
_WIDER = {INT: 0, REAL: 1, TEXT: 2}


@dataclass(frozen=True)
class BaseTable:
    """Whole columns by name, each of `count` values, with their types."""

    kinds: Mapping[str, str]
    columns: Mapping[str, Column]
    count: int


@dataclass(frozen=True)
class _TablePlace:
    """One writer's table: its file, its name there, its columns with their types."""

    path: Path
    table: str
    kinds: Mapping[str, str]


def find_names(sql: str) -> set[str]:
    """What a query may mean by RocPD's own tables."""
    return set(_NAME.findall(sql.lower()))


def read_base_table(sources: Iterable[object], name: str) -> BaseTable | None:
    """All rows of a table, such as `rocpd_string`, of the RocPD databases among the sources; None where none has it.

    A column that a database lacks is NULL in its rows. DashboardError where a database is broken, or a value is of
    another type than its column says.
    """
    places = [place for source in sources if isinstance(source, RocpdSource) for place in _find_places(source, name)]
    if not places:
        return None
    kinds: dict[str, str] = {}
    for place in places:
        for column, kind in place.kinds.items():
            kinds[column] = max(kinds.get(column, INT), kind, key=_WIDER.__getitem__)
    parts = [part for place in places for part in _read(place, kinds)]
    columns = {
        column: concatenate(kind, [(values.get(column), count) for values, count in parts])
        for column, kind in kinds.items()
    }
    return BaseTable(kinds, columns, sum(count for _, count in parts))


def _find_places(source: RocpdSource, name: str) -> Iterator[_TablePlace]:
    with open_database(source.path) as database:
        present = list_tables(database)
        for table in (name + table_set.suffix for table_set in source.sets):
            if table in present:
                yield _TablePlace(source.path, table, _find_kinds(database, table, present[table]))


def _find_kinds(database: sqlite3.Connection, table: str, columns: Sequence[str]) -> dict[str, str]:
    """The types of the columns, by SQLite's rules: https://sqlite.org/datatype3.html#determination_of_column_affinity."""
    declared = {
        str(row[1]): str(row[2]).upper() for row in database.execute(f"PRAGMA table_xinfo({quote_name(table)})")
    }
    return {column: _find_kind(declared[column]) for column in columns if _COLUMN.fullmatch(column)}


def _find_kind(declared: str) -> str:
    if "INT" in declared:
        return INT
    return REAL if any(word in declared for word in ("REAL", "FLOA", "DOUB")) else TEXT


def _read(place: _TablePlace, kinds: Mapping[str, str]) -> Iterator[tuple[Mapping[str, Column], int]]:
    wanted = {column: kinds[column] for column in place.kinds}
    with open_database(place.path) as database:
        try:
            for rows in read_rows_of(database, place.table, wanted):
                yield rows.columns, len(rows.ids)
        except (ValueError, IndexError, KeyError) as error:
            raise DashboardError(f"{place.path}: {error}. It is broken; restore it or leave it out.") from error
