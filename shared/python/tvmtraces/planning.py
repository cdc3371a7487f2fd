"""The columns that a query needs, by DuckDB's own plan over empty tables of the same columns."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from tvmtraces.dbapi import Parameters, bind
from tvmtraces.duck import CLOSED, MACROS
from tvmtraces.filters import Filters, format_selection, order_of_views
from tvmtraces.tables import TABLES
from tvmtraces.views import VIEWS

if TYPE_CHECKING:
    import duckdb

_NEEDED = "unused_columns"
"""The only enabled optimizer: the others may drop a scan of an empty table."""


class Planner:
    """Plans queries; its database is made on first use."""

    def __init__(self) -> None:
        self._database: duckdb.DuckDBPyConnection | None = None

    def columns(
        self, sql: str, parameters: Parameters, selections: Mapping[str, str], needed: AbstractSet[str]
    ) -> dict[str, frozenset[str]]:
        """Return the columns of each table in `needed` that a query reads.

        `selections` are what the filters make of each table. Nothing where DuckDB cannot plan the query: it is
        wrong, or no question.
        """
        import duckdb

        if self._database is None:
            self._database = _open_empty_database(tuple(sorted(selections.items())))
        try:
            kinds = [statement.type for statement in self._database.extract_statements(sql)]
            if kinds != [duckdb.StatementType.SELECT]:
                return {}
            planned = self._database.execute(f"EXPLAIN (FORMAT json) {sql}", bind(sql, parameters) or None).fetchall()
        except (duckdb.Error, UnicodeError):
            return {}
        columns_of: dict[str, set[str]] = {table: set() for table in needed}
        for table, columns in (scan for row in planned for plan in json.loads(row[1]) for scan in _find_scans(plan)):
            columns_of.setdefault(table, set()).update(columns)
        return {table: frozenset(columns) or _choose_least(table) for table, columns in columns_of.items()}


def describe_view(name: str) -> list[tuple[str, str]]:
    selections = {table: format_selection(table, Filters(), None, None) for table in TABLES}
    rows = _open_empty_database(tuple(sorted(selections.items()))).execute(f"DESCRIBE {name}").fetchall()
    return [(str(row[0]), str(row[1])) for row in rows]


def _choose_least(table: str) -> frozenset[str]:
    """Return a column that suffices for counting rows."""
    spec = TABLES[table]
    return frozenset({spec.start or next(iter(spec.columns))})


def _find_scans(plan: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the tables that a plan reads, with their columns."""
    info = plan.get("extra_info", {})
    table = str(info.get("Table", "")).rpartition(".")[2]
    if table.startswith("all_"):
        columns = info.get("Projections", [])
        yield table.removeprefix("all_"), [columns] if isinstance(columns, str) else list(columns)
    for child in plan.get("children", ()):
        yield from _find_scans(child)


def _open_empty_database(selections: tuple[tuple[str, str], ...]) -> duckdb.DuckDBPyConnection:
    """Return a connection of the caller's own: a database takes longer to make than most queries, so it is shared."""
    return _make_empty_database(selections).cursor()


@functools.lru_cache(maxsize=8)
def _make_empty_database(selections: tuple[tuple[str, str], ...]) -> duckdb.DuckDBPyConnection:
    import duckdb

    shown = dict(selections)

    database = duckdb.connect(":memory:", config={"threads": 1})
    names = [str(row[0]) for row in database.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    database.execute(f"SET disabled_optimizers = '{','.join(name for name in names if name != _NEEDED)}'")
    for setting in CLOSED:
        database.execute(f"SET {setting}")
    for macro in MACROS:
        database.execute(macro)
    for name, table in TABLES.items():
        columns = ", ".join(f'"{column}" {kind}' for column, kind in table.columns.items())
        database.execute(f"CREATE TABLE all_{name} ({columns})")
    for name in sorted(TABLES, key=order_of_views):
        database.execute(f"CREATE VIEW base_{name} AS {shown[name]}")
    for name, view in VIEWS.items():
        database.execute(f"CREATE VIEW {name} AS {view}")
    return database
