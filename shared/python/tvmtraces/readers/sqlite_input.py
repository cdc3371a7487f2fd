"""Opening a stranger's SQLite database: nothing of it is executed, nothing beside it is created."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tvmdash.errors import DashboardError
from tvmtraces.batches import NULL_INT, Column, WrongValue, ints, texts
from tvmtraces.readers.packed import LOGS, find_archive, unpack
from tvmtraces.tables import INT, REAL, TEXT

MAGIC = b"SQLite format 3\0"
_DEFENSIVE = 1010  # SQLITE_DBCONFIG_DEFENSIVE
_KINDS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    INT: ("a whole number", (int, type(None))),
    REAL: ("a number", (int, float, type(None))),
    TEXT: ("a text", (int, float, str, type(None))),
}
"""Types of a column's values in words and in Python."""


def is_sqlite(path: Path) -> bool:
    """Return True for a file that begins like SQLite's, or is empty but for its log (a process killed at its start)."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    return start == MAGIC or (not start and _log_of(path) is not None)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[str]:
    """Return the URI by which SQLite opens the database and creates nothing beside it.

    SQLite would create files beside a database whose log it replays, so one that has a log is copied away first; one in
    a zip is unpacked.
    """
    with contextlib.ExitStack() as stack:
        database_path, archive = path, find_archive(path)
        if archive is not None or _log_of(path) is not None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tvmdash-traces-")))
            database_path = unpack(path, archive, folder) if archive else _copy(path, folder)
        mode = "immutable=1" if database_path is path else "mode=rw"
        yield f"file:{quote(os.fsencode(database_path.absolute()))}?{mode}"


@contextlib.contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database read-only; DashboardError where it is broken."""
    with contextlib.ExitStack() as stack:
        uri = stack.enter_context(readable(path))
        try:
            database = stack.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True)))
            _disarm(database)
            yield database
        except (sqlite3.Error, TypeError, OverflowError, UnicodeError) as error:
            raise DashboardError(
                f"{path}: cannot be read: {error}. It is broken or not what its name says; leave it out."
            ) from error


def _disarm(database: sqlite3.Connection) -> None:
    if hasattr(database, "setconfig"):  # Python 3.12
        database.setconfig(_DEFENSIVE, True)
    # as SQLite advises for a stranger's database (https://sqlite.org/security.html)
    for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0"):
        database.execute(f"PRAGMA {pragma}")


def _log_of(path: Path) -> Path | None:
    logs = (path.with_name(path.name + ending) for ending in LOGS)
    return next((log for log in logs if log.is_file() and log.stat().st_size), None)


def _copy(path: Path, folder: Path) -> Path:
    """Copy the database with its log; repeat where a living writer changed either meanwhile."""
    for _ in range(10):
        before = _list_states(path)
        for ending in ("", *LOGS):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(path.with_name(path.name + ending), folder / f"copy.db{ending}")
        if before == _list_states(path):
            return folder / "copy.db"
    raise DashboardError(f"{path}: is being written without a pause. Read it when its process has ended.")


def _list_states(path: Path) -> list[tuple[int, int] | None]:
    states: list[tuple[int, int] | None] = []
    for ending in ("", *LOGS):
        try:
            status = os.stat(path.with_name(path.name + ending))
            states.append((status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            states.append(None)
    return states


def list_tables(database: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return names and columns of the true tables: no view, no virtual table, nothing computed by their schema."""
    columns_of = {}
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    for name, _ in rows:
        columns = database.execute(f"PRAGMA table_xinfo({quote_name(name)})").fetchall()
        columns_of[str(name)] = tuple(str(column[1]) for column in columns if column[6] == 0)
    return columns_of


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def read_columns(database: sqlite3.Connection, kinds: Mapping[str, str], source: str) -> list[Column]:
    """Read columns of these types from `SELECT ... FROM source`, whose first word is a table."""
    rows = database.execute(f"SELECT {', '.join(kinds)} FROM {source}").fetchall()  # noqa: S608 - our own names
    table, columns = source.partition(" ")[0], zip(*rows, strict=True) if rows else [()] * len(kinds)
    named = zip(kinds.items(), columns, strict=True)
    return [convert(values, kind, f"{table}.{name}") for (name, kind), values in named]


def convert(values: Sequence[Any], kind: str, place: str) -> Column:
    """Convert values to a column of a type; in a text column numbers become texts. WrongValue for any other."""
    import numpy

    if kind == INT:
        with contextlib.suppress(TypeError):  # most columns have no NULL
            return ints(values)
    words, kinds = _KINDS[kind]
    wrong = next((value for value in values if not isinstance(value, kinds)), None)
    if wrong is not None:
        raise WrongValue(f"{place}: {wrong!r:.60} is not {words}")
    if kind == INT:
        return ints(NULL_INT if value is None else value for value in values)
    if kind == REAL:
        return numpy.array(values, dtype=numpy.float64)
    found = texts(values)
    is_all_texts = all(isinstance(text, str) for text in found.pool)
    return found if is_all_texts else texts([None if value is None else str(value) for value in values])


def read_typed_rows(
    database: sqlite3.Connection, table: str, needed: Mapping[str, type], known: Mapping[str, type]
) -> list[dict[str, Any]]:
    """Read the rows of a small table in their order; WrongValue where a value is not of its column's type.

    `needed` are the columns that have a value in each row, `known` those that may be NULL or not there.
    """
    rows = read_rows(database, f"SELECT * FROM {quote_name(table)} ORDER BY rowid")  # noqa: S608 - quoted
    for row in rows:
        for name, kind in {**known, **needed}.items():
            value = row.get(name)
            if (value is None and name in needed) or (value is not None and not isinstance(value, kind)):
                expected = {int: "a whole number", str: "a text"}[kind]
                raise WrongValue(f"{table}.{name}: {value!r:.60} is not {expected}")
    return rows


def read_rows(database: sqlite3.Connection, query: str) -> list[dict[str, Any]]:
    """Return the rows of a query as dictionaries, for small tables."""
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
