"""Traces: many databases of measurements read as one, by SQL. See docs/reference/traces.md.

A module of Python's database API: `import tvmtraces as rocpd` is what AMD's examples need to run.
"""

from __future__ import annotations

from tvmtraces.database import Connection, Cursor, connect
from tvmtraces.dbapi import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004 - the API names it so
    apilevel,
    paramstyle,
    threadsafety,
)
from tvmtraces.filters import Filters, Straddle, Window

__all__ = [
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Error",
    "Filters",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Straddle",
    "Warning",
    "Window",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]
