"""Python's database API (PEP 249) as far as it fits what is only read: its errors, its named parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tvmdash.errors import DashboardError

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

Parameters = Sequence[Any] | Mapping[str, Any]
"""In turn for each `?`, or by name for `:name` and `$name`."""


class Warning(Exception):  # noqa: A001 - the API names it so
    """Never raised."""


class Error(DashboardError):
    """Whatever is wrong with a statement or its rows."""


class InterfaceError(Error):
    """The connection or cursor is used in a wrong way."""


class DatabaseError(Error):
    """Something about what is read."""


class DataError(DatabaseError):
    """A value does not suit what is done with it."""


class OperationalError(DatabaseError):
    """A file is broken, or memory is short."""


class IntegrityError(DatabaseError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError):
    """Never raised: what goes wrong in DuckDB is an OperationalError."""


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, a table's or a column's name, its parameters."""


class NotSupportedError(DatabaseError):
    """What sqlite3 has and a read-only view of many files has not; its text says what to use."""


_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | :: | [:$](?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def bind_names(sql: str, parameters: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement with `$name` for each parameter that it names, and those parameters.

    A name that no parameter has stays as it is written, for a colon may also part the bounds of a slice.
    """
    used: dict[str, Any] = {}

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None or name not in parameters:
            return match[0]
        used[name] = parameters[name]
        return f"${name}"

    return _TOKENS.sub(replace, sql), used


INSTEAD: Mapping[str, str] = {
    "backup": "Make a sealed run with `seal`, or a SQLite database with `convert rocpd`.",
    "blobopen": "Select the column.",
    "create_aggregate": "Use DuckDB's aggregates, or a macro: CREATE MACRO name(a) AS ...",
    "create_collation": "Use ORDER BY ... COLLATE NOCASE, or sort by an expression.",
    "create_function": "Use DuckDB's functions, or a macro: CREATE MACRO name(a, b) AS ...",
    "create_window_function": "Use DuckDB's window functions.",
    "deserialize": "Give `connect` the file.",
    "enable_load_extension": "Queries cannot load code. Use DuckDB's own functions.",
    "executemany": "It is for writing. Select from a list: ... WHERE x IN (SELECT unnest(?)).",
    "getlimit": "There are no limits but memory.",
    "iterdump": "Write the rows with `seal` or with `convert rocpd`, csv or jsonl.",
    "load_extension": "Queries cannot load code. Use DuckDB's own functions.",
    "serialize": "Make a SQLite database with `convert rocpd`.",
    "set_authorizer": "Queries can already do no more than read these traces.",
    "set_progress_handler": "Give `connect` a function as `progress`.",
    "setlimit": "There are no limits but memory.",
}
"""The members of sqlite3.Connection that are not for what is only read, and what to use."""

ERRORS: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        *(Warning, Error, InterfaceError, DatabaseError, DataError, OperationalError, IntegrityError, InternalError),
        *(ProgrammingError, NotSupportedError),
    )
}
"""By their names: a connection has them too."""
