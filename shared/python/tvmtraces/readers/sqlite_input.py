"""Opening a stranger's SQLite database: nothing of it is executed, nothing beside it is created."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tvmdash.errors import DashboardError
from tvmtraces.batches import NULL_INT, WrongValue
from tvmtraces.readers.packed import LOGS, find_archive, unpack

if TYPE_CHECKING:
    from tvmtraces.batches import Ints, Reals

MAGIC = b"SQLite format 3\0"
_ROWS_AT_ONCE = 4096
_DEFENSIVE = 1010  # SQLITE_DBCONFIG_DEFENSIVE
_COLUMN = re.compile(r'(?:\w+\.)"?\w+"?')


def is_sqlite(path: Path) -> bool:
    """Whether the file begins as SQLite databases do, or is empty but for its log (a process killed at its start)."""
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    return start == MAGIC or (not start and _log_of(path) is not None)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[str]:
    """The URI by which SQLite opens the database and creates nothing beside it.

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
    """The database, read-only; DashboardError where it is broken."""
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
    for pragma in ("trusted_schema = OFF", "query_only = ON", "cell_size_check = ON", "mmap_size = 0"):
        database.execute(f"PRAGMA {pragma}")


def _log_of(path: Path) -> Path | None:
    logs = (path.with_name(path.name + ending) for ending in LOGS)
    return next((log for log in logs if log.is_file() and log.stat().st_size), None)


def _copy(path: Path, folder: Path) -> Path:
    """A copy of the database with its log; taken again where a living writer changed either meanwhile."""
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
    """The names and columns of the true tables: no view, no virtual table, nothing computed by their schema."""
    columns_of = {}
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
    for name, _ in rows:
        columns = database.execute(f"PRAGMA table_xinfo({quote_name(name)})").fetchall()
        columns_of[str(name)] = tuple(str(column[1]) for column in columns if column[6] == 0)
    return columns_of


def quote_name(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def int_columns(database: sqlite3.Connection, expressions: Sequence[str], source: str) -> list[Ints]:
    """Columns of whole numbers from `SELECT expressions FROM source`; NULL becomes NULL_INT.

    WrongValue where a value is no whole number.
    """
    import numpy

    chosen = ", ".join(f"ifnull({expression}, {NULL_INT + 1} - 1)" for expression in expressions)
    cursor = database.execute(f"SELECT {chosen} FROM {source}")  # noqa: S608 - names from tables_of, quoted
    flat = array("q")
    try:
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            flat.extend(chain.from_iterable(rows))
    except TypeError:
        raise _wrong_value(database, expressions, source) from None
    whole = numpy.frombuffer(flat, dtype=numpy.int64).reshape(-1, len(expressions))
    return [numpy.ascontiguousarray(whole[:, index]) for index in range(len(expressions))]


def _wrong_value(database: sqlite3.Connection, expressions: Sequence[str], source: str) -> Exception:
    """Which value is no whole number; sqlite3.DatabaseError where none is found, as the file itself is broken."""
    columns = [column for expression in expressions for column in _COLUMN.findall(expression) or [expression]]
    for expression in columns:
        values = f"(SELECT {expression} AS value FROM {source})"  # noqa: S608 - names from tables_of, quoted
        query = f"SELECT value FROM {values} WHERE typeof(value) NOT IN ('integer', 'null') LIMIT 1"  # noqa: S608
        row = database.execute(query).fetchone()
        if row is not None:
            return WrongValue(f"{_place(source, expression)}: {row[0]!r:.60} is not a whole number")
    return sqlite3.DatabaseError(f"{_place(source)} cannot be read")


def _place(source: str, expression: str = "") -> str:
    """The table of a source and the column that an expression is, in words."""
    table, column = source.partition(" ")[0].strip('"'), expression.rpartition(".")[2].strip('"')
    return f"{table}.{column}" if column else table


def real_column(database: sqlite3.Connection, expression: str, source: str) -> Reals:
    """A column of numbers from `SELECT expression FROM source`; NULL becomes NaN; WrongValue for what is no number."""
    import numpy

    values = [row[0] for row in database.execute(f"SELECT {expression} FROM {source}")]  # noqa: S608 - quoted
    wrong = next((value for value in values if not isinstance(value, (int, float, type(None)))), None)
    if wrong is not None:
        raise WrongValue(f"{_place(source, expression)}: {wrong!r:.60} is not a number")
    return numpy.array(values, dtype=numpy.float64)


def read_typed_rows(
    database: sqlite3.Connection, table: str, needed: Mapping[str, type], known: Mapping[str, type]
) -> list[dict[str, Any]]:
    """The rows of a small table in their order; WrongValue where a value is not of its column's type.

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
    """The rows of a query as dictionaries, for small tables."""
    cursor = database.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]
