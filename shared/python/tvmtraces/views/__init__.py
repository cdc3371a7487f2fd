"""The views of a connection as data: names and columns of RocPD where the thing is the same, ours where it is ours.

Each is DuckDB's SQL over `base_<table>` (see tables). Beyond RocPD's columns stand ours: kernels and samples know their
trial. A view that RocPD has too leaves out the rows that RocPD's leaves out: those with a reference, of those that its
joins follow, that leads nowhere; `unresolved` counts them. Times are nanoseconds; `top` gives microseconds, as RocPD's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tvmtraces.rocpd_schema import TABLES as ROCPD_TABLES
from tvmtraces.tables import TABLES
from tvmtraces.views.ours import OUR_VIEWS
from tvmtraces.views.rocpd import make_rocpd_views
from tvmtraces.views.view import DuckWords, RocpdWords, View

ALL_VIEWS: Mapping[str, View] = {**make_rocpd_views(DuckWords()), **OUR_VIEWS}
SQLITE_VIEWS: Mapping[str, str] = {name: view.sql for name, view in make_rocpd_views(RocpdWords()).items()}
"""RocPD's, over RocPD's own tables."""
VIEWS: Mapping[str, str] = {name: view.sql for name, view in ALL_VIEWS.items()}
"""The SQL of each."""
_WORD = re.compile(r"\w+")
VIEW_TABLES: Mapping[str, frozenset[str]] = {
    name: frozenset(table for table in TABLES if f"base_{table}" in _WORD.findall(sql)) for name, sql in VIEWS.items()
}
"""The tables under each view."""
_ASKS_WHAT_THERE_IS = frozenset(
    {"query", "query_table", "show", "describe", "information_schema", "duckdb_tables", "duckdb_views"}
)


def find_tables(sql: str) -> frozenset[str]:
    """The tables that a query needs: those whose names, or views' names, stand in it anywhere.

    All of them where it asks what there is, or gives a name as a text.
    """
    identifiers = {word.lower() for word in _WORD.findall(sql)}
    if identifiers & _ASKS_WHAT_THERE_IS:
        return frozenset(TABLES)
    tables = {table for word in identifiers for table in VIEW_TABLES.get(word, ())}
    return frozenset(tables | {table for table in TABLES if {f"base_{table}", f"all_{table}"} & identifiers})


def make_views(suffixes: Sequence[str]) -> Iterator[str]:
    """Yield the statements for a view of each table, over those of all writers, and for the views for people."""
    for table in ROCPD_TABLES:
        parts = " UNION ALL ".join(f'SELECT * FROM "rocpd_{table}{suffix}"' for suffix in suffixes)  # noqa: S608 - ours
        yield f"CREATE VIEW rocpd_{table} AS {parts}"
    for name, sql in SQLITE_VIEWS.items():
        yield f"CREATE VIEW {name} AS {sql}"
