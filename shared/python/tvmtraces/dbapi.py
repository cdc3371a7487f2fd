"""Python's database API (PEP 249): its errors, each one of sqlite3's as well, and its named parameters."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from tvmdash.errors import DashboardError

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"

Parameters = Sequence[Any] | Mapping[str, Any]
"""In turn for each `?`, or by name for `:name` and `$name`."""


class Warning(sqlite3.Warning):  # noqa: A001 - the API names it so
    """Never raised."""


class Error(DashboardError, sqlite3.Error):
    """Whatever is wrong with a statement or its rows."""


class InterfaceError(Error, sqlite3.InterfaceError):
    """The connection or cursor is used in a wrong way."""


class DatabaseError(Error, sqlite3.DatabaseError):
    """Something about what is read."""


class DataError(DatabaseError, sqlite3.DataError):
    """A value does not suit what is done with it."""


class OperationalError(DatabaseError, sqlite3.OperationalError):
    """A file is broken, or memory is short."""


class IntegrityError(DatabaseError, sqlite3.IntegrityError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError, sqlite3.InternalError):
    """Never raised: what goes wrong in DuckDB is an OperationalError."""


class ProgrammingError(DatabaseError, sqlite3.ProgrammingError):
    """The statement is wrong: its syntax, a table's or a column's name, its parameters."""


class NotSupportedError(DatabaseError, sqlite3.NotSupportedError):
    """A member of sqlite3 that a read-only view of many files lacks; the text names the alternative."""


_KINDS: Sequence[type[Error]] = (Error, *Error.__subclasses__(), *DatabaseError.__subclasses__())
OURS: Mapping[type[Exception], type[Error]] = {getattr(sqlite3, kind.__name__): kind for kind in _KINDS}
"""Our exceptions by sqlite3's."""


def bind(sql: str, parameters: Parameters) -> Any:
    """Return the parameters for DuckDB, which refuses those that a statement does not name, as `$name`."""
    if isinstance(parameters, Mapping):
        return {name: value for name, value in parameters.items() if re.search(rf"\${name}\b", sql)}
    return list(parameters)
