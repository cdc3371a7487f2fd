"""Many traces as one SQLite database: `connect`, for what was written for sqlite3 and for AMD's `rocpd.connect`.

A statement means what it means in SQLite. RocPD databases are attached, and RocPD's tables and views stand over all of
them; the rows of other traces, and of our own views, are computed by DuckDB and put into tables when a statement names
them. Of those DuckDB answers by itself what means the same in both, and of all what SQLite has no words for.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Literal, Self

from tvmdash.errors import DashboardError
from tvmtraces.common_words import find_common
from tvmtraces.connection import Progress, Traces
from tvmtraces.dbapi import OURS, NotSupportedError, OperationalError, Parameters, ProgrammingError
from tvmtraces.duck import DuckResult
from tvmtraces.filters import Filters
from tvmtraces.planning import describe_view
from tvmtraces.readers.rocpd_reader import RocpdSource
from tvmtraces.readers.sqlite_input import list_tables, open_database, quote_name, readable
from tvmtraces.rocpd_schema import make_tables, read_columns
from tvmtraces.sources import Source, find
from tvmtraces.views import SQLITE_VIEWS, VIEWS, make_views

Description = tuple[tuple[str, None, None, None, None, None, None], ...]
_WORD = re.compile(r"\w+")
_VIEW = re.compile(
    r"CREATE VIEW (?:IF NOT EXISTS )?(?:`[^`]*`|\"[^\"]*\"|\[[^\]]*\]|\w+)\s+AS\s+(.*)", re.DOTALL | re.IGNORECASE
)
_LISTS = frozenset({"sqlite_master", "sqlite_schema", "sqlite_temp_master", "sqlite_temp_schema"})
"""Tables that list the tables."""
INCOMPLETE: dict[str, str] = {
    "backup": "Make a sealed run with `seal`, or a SQLite database with `convert rocpd`.",
    "blobopen": "Select the column.",
    "deserialize": "Give `connect` the file.",
    "enable_load_extension": "Queries cannot load code.",
    "iterdump": "Write the rows with `seal` or with `convert rocpd`, csv or jsonl.",
    "load_extension": "Queries cannot load code.",
    "serialize": "Make a SQLite database with `convert rocpd`.",
    "set_authorizer": "Queries can already do no more than read these traces.",
}
"""Members of sqlite3.Connection that would show or change a part alone, and what to use instead."""
_ROWS_AT_ONCE = 4096
_KINDS = {"BIGINT": "INTEGER", "DOUBLE": "REAL", "VARCHAR": "TEXT", "BOOLEAN": "INTEGER"}
"""SQLite's types by DuckDB's."""


def connect(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    filters: Filters | None = None,
    progress: Progress | None = None,
) -> Connection:
    """Open all the traces in `paths` as one `sqlite3.Connection`.

    `paths`: raw databases, RocPD databases, sealed runs, homes, folders of any of these, patterns; in any number.
    Nothing is read before a query needs it, and none of it is ever written. DashboardError for what is missing, given
    twice, broken or newer than this program.
    """
    sources = find(paths)
    connection = sqlite3.connect(":memory:", factory=Connection, isolation_level=None, uri=True)
    try:
        connection.begin(sources, filters or Filters(), progress)
    except BaseException:
        connection.close()
        raise
    return connection


class Cursor(sqlite3.Cursor):
    """The rows of one statement, from SQLite or DuckDB."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._rows: DuckResult | None = None
        self._mine = connection
        self._inserts = False

    @property
    def description(self) -> Description | None:
        """Return the columns' names, each in a tuple of seven as the database API wants it."""
        if self._rows is None:
            return super().description
        return tuple((name, None, None, None, None, None, None) for name in self._rows.names)

    @property
    def lastrowid(self) -> int | None:
        """Return the number of the row that the statement inserted; internal inserts do not count."""
        return super().lastrowid if self._inserts else None

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        """Run the statement and return itself; parameters as in sqlite3, and `$name`."""
        self._inserts = re.match(r"\s*(insert|replace)\b", sql, re.IGNORECASE) is not None
        with _told():
            self._rows = self._mine.ask(sql, parameters)
            if self._rows is None:
                super().execute(sql, parameters)
        if self._rows is not None and self.row_factory is not None:  # sqlite3.Row asks for names that only SQLite sets
            self._mine.put("_rows", self._rows)
            self._rows = None
            super().execute("SELECT * FROM _rows")
        return self

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        """Run as in sqlite3, on tables that were created on this connection."""
        self._rows = None
        with _told():
            super().executemany(sql, parameters)
        return self

    def executescript(self, script: str, /) -> Self:
        """Run each statement of a script and return itself; their rows are not kept."""
        for statement in self._mine.split_statements(script):
            self.execute(statement)
        self._rows = None
        return self

    def fetchone(self) -> Any:
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """Return at most `size` further rows, `arraysize` where none is given; all where it is negative."""
        wanted = self.arraysize if size is None else size
        if self._rows is not None:
            return self._rows.fetchmany(wanted) if wanted >= 0 else self._rows.fetchall()
        with _told():
            return super().fetchmany(wanted) if wanted else []  # asked for none, sqlite3 gives all

    def fetchall(self) -> list[Any]:
        if self._rows is not None:
            return self._rows.fetchall()
        with _told():
            return super().fetchall()

    def df(self) -> Any:
        """Return all further rows as a `pandas.DataFrame`."""
        from pandas import DataFrame

        return DataFrame(self._plain(), columns=self._names)

    def arrow(self) -> Any:
        """Return all further rows as a `pyarrow.Table`; DashboardError where pyarrow is not installed."""
        if importlib.util.find_spec("pyarrow") is None:
            raise DashboardError("arrow() needs pyarrow. Install it beside the dashboard: pip install pyarrow.")
        import pyarrow

        columns = list(zip(*self._plain(), strict=True)) or [()] * len(self._names)
        return pyarrow.table(dict(zip(self._names, map(list, columns), strict=True)))

    def _plain(self) -> list[tuple[Any, ...]]:
        self.row_factory = None
        return self.fetchall()

    @property
    def _names(self) -> list[str]:
        return [column[0] for column in self.description or ()]

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        while rows := self.fetchmany(_ROWS_AT_ONCE):
            yield from rows

    def __next__(self) -> Any:
        rows = self.fetchmany(1)
        if not rows:
            raise StopIteration
        return rows[0]


class Connection(sqlite3.Connection):
    """One SQLite database in memory over all traces. As a context it is closed, unlike sqlite3's."""

    sources: tuple[Source, ...] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cleanup = contextlib.ExitStack()

    def begin(self, sources: Sequence[Source], filters: Filters, progress: Progress | None) -> None:
        """Set up the connection for `connect`."""
        self.sources = tuple(sources)
        self._selections: dict[str, list[str]] = {}
        self._native: set[str] = set()
        self._copied: set[str] = set()
        self._empty: set[str] = set()
        self._trace: Callable[[str], object] | None = None
        self._is_changed = False
        """True once views may differ, as after AMD's `apply_time_window`; DuckDB knows nothing of such changes."""
        self._open_traces = functools.partial(Traces, sources, filters, progress)
        self._is_filtered = filters != Filters()
        if self._is_filtered:
            assert self.traces  # a filter that is wrong is told at once
        # as SQLite advises for a stranger's database (https://sqlite.org/security.html)
        for pragma in ("trusted_schema = OFF", "cell_size_check = ON"):
            self._do(f"PRAGMA {pragma}")
        native = [source for source in sources if isinstance(source, RocpdSource) and source.is_version_3]
        # SQLite attaches ten databases where its builder did not allow more
        if not self._is_filtered and len(native) == len(sources) <= self.getlimit(sqlite3.SQLITE_LIMIT_ATTACHED):
            self._attach(native)
        super().set_authorizer(_authorize)

    @functools.cached_property
    def traces(self) -> Traces:
        """Return the traces in DuckDB, opened on first use: importing it takes longer than many a query."""
        opened = self._open_traces()
        self._cleanup.callback(opened.close)
        return opened

    @property
    def connection(self) -> Self:
        """Return itself: AMD's `RocpdImportData` has its connection under this name."""
        return self

    @property
    def filenames(self) -> list[str]:
        """Return the files and folders, as AMD's `RocpdImportData` names them."""
        return [str(source.path) for source in self.sources]

    @property
    def table_info(self) -> dict[str, list[str]]:
        """Return the selections whose union is each of RocPD's tables, as AMD's `RocpdImportData` has them."""
        if not self._selections:
            raise NotSupportedError("table_info is of RocPD's files as they are. Give `connect` a window as a filter.")
        return self._selections

    def cursor(self, factory: Any = Cursor) -> Any:
        cursor = super().cursor(factory)
        cursor.row_factory = self.row_factory
        return cursor

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Return a cursor over the rows of one statement."""
        made: Cursor = self.cursor().execute(sql, parameters)
        return made

    def executescript(self, script: str, /) -> Cursor:
        """Run each statement of a script and return a cursor."""
        made: Cursor = self.cursor().executescript(script)
        return made

    def set_trace_callback(self, callback: Callable[[str], object] | None) -> None:
        """Call `callback` with each statement before it runs."""
        self._trace = callback

    def interrupt(self) -> None:
        """Stop the statement that another thread runs."""
        super().interrupt()
        if "traces" in self.__dict__:
            self.traces.interrupt()

    def close(self) -> None:
        super().close()
        self._cleanup.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Literal[False]:
        self.close()
        return False

    def __getattribute__(self, name: str) -> Any:
        if name in INCOMPLETE:
            raise NotSupportedError(f"{name} is not supported; traces are read-only. {INCOMPLETE[name]}")
        return super().__getattribute__(name)

    def _do(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        """Run a statement directly; SQLite's own `execute` would ask `cursor` for one of ours."""
        return sqlite3.Cursor(self).execute(sql, parameters)

    @staticmethod
    def split_statements(script: str) -> Iterator[str]:
        statement = ""
        for part in re.split(r"(;)", script):
            statement += part
            if sqlite3.complete_statement(statement):
                yield statement
                statement = ""
        if statement.strip():
            yield statement

    def ask(self, sql: str, parameters: Parameters) -> DuckResult | None:
        """Return DuckDB's answer; None where SQLite must answer, with all that the statement names at hand."""
        if self._trace is not None:
            self._trace(sql)
        words = {word.lower() for word in _WORD.findall(sql)}
        named = words & VIEWS.keys() - self._native
        if words & _LISTS and not self._native:
            named = set(SQLITE_VIEWS) & VIEWS.keys()
        for name in {word for word in words if word.startswith("rocpd_")} - self._native - self._copied:
            self._copy_table(name)
        for name in named - self._copied - self._empty:
            self._make_empty(name)
        if "rollback" in words:  # it takes back what was put into tables meanwhile
            self._copied, self._empty = set(), set()
        error = self._find_fault(sql, parameters)
        if error is not None:
            return self._ask_duck(sql, parameters, error)
        if words & {"create", "drop", "alter"}:
            self._is_changed = True
        common = find_common(sql) if named and not self._is_changed and not parameters else None
        if common is not None:
            with contextlib.suppress(ProgrammingError):  # a column beside `max()`, which SQLite alone knows how to read
                return self.traces.execute(common)
        for name in named - self._copied:
            self._fill(name)
        return None

    def _find_fault(self, sql: str, parameters: Parameters) -> sqlite3.Error | None:
        """Return why SQLite cannot run a statement; None where it can, or where the fault is in the parameters."""
        try:
            self._do(sql if sql.lstrip()[:7].lower() == "explain" else f"EXPLAIN {sql}", parameters)
        except sqlite3.OperationalError as error:
            return error
        except (sqlite3.Error, sqlite3.Warning):
            return None
        return None

    def _ask_duck(self, sql: str, parameters: Parameters, error: sqlite3.Error) -> DuckResult:
        """Return DuckDB's answer to a statement that SQLite cannot run."""
        try:
            return self.traces.execute(sql, parameters)
        except ProgrammingError as other:
            is_own = "no such table: rocpd_" in str(error)
            hint = " Query the views, which all traces have (`views` lists them)." if is_own else ""
            raise OperationalError(f"{error}.{hint} {other}") from error

    def put(self, table: str, rows: DuckResult) -> None:
        """Make a table of these rows."""
        columns = ", ".join(
            f"{quote_name(name)} {_KINDS.get(kind, '')}" for name, kind in zip(rows.names, rows.types, strict=True)
        )
        self._do(f"DROP TABLE IF EXISTS {table}")
        self._do(f"CREATE TABLE {table} ({columns})")
        self._insert(table, rows.names, rows)

    def _insert(self, table: str, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Insert rows into a table of ours: all of them, or none where that is interrupted."""
        chosen, marks = ", ".join(map(quote_name, names)), ", ".join("?" * len(names))
        self._do("SAVEPOINT filling")
        try:
            sqlite3.Cursor(self).executemany(f"INSERT INTO {table} ({chosen}) VALUES ({marks})", rows)  # noqa: S608 - ours
        except BaseException:
            self._do("ROLLBACK TO filling")
            raise
        finally:
            self._do("RELEASE filling")

    def _make_empty(self, name: str) -> None:
        """Make a view of ours in SQLite, over a table that has no rows yet."""
        declared = _declare(name)
        columns = ", ".join(
            f"{quote_name(column)} {declared.get(column, _KINDS.get(kind, ''))}" for column, kind in describe_view(name)
        )
        self._do(f"CREATE TABLE IF NOT EXISTS _{name} ({columns})")
        self._do(f"CREATE TEMPORARY VIEW IF NOT EXISTS {name} AS SELECT * FROM _{name}")  # noqa: S608 - the name of a view
        self._empty.add(name)

    def _fill(self, name: str) -> None:
        rows = self.traces.execute(f"SELECT * FROM {name}")  # noqa: S608 - a view
        self._do(f"DELETE FROM _{name}")  # noqa: S608 - a view
        self._insert(f"_{name}", rows.names, rows)
        self._copied.add(name)

    def _copy_table(self, name: str) -> None:
        """Copy one of RocPD's own tables, with the rows of all files; do nothing where none has it."""
        parts: list[tuple[RocpdSource, str, Sequence[str]]] = []
        for source in self.sources:
            if isinstance(source, RocpdSource):
                with open_database(source.path) as database:
                    present = list_tables(database)
                tables = [name + each.suffix for each in source.sets if name + each.suffix in present]
                parts += [(source, table, present[table]) for table in tables]
        if parts and self._is_filtered:
            raise NotSupportedError(
                f"{name}: filters do not apply to RocPD's own tables. Query the views, or remove the filters."
            )
        if not parts:
            return
        columns = dict.fromkeys(column for *_, there in parts for column in there)
        self._do(f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(map(quote_name, columns))})")
        self._do(f"DELETE FROM {name}")  # noqa: S608 - a word
        for source, table, there in parts:
            with open_database(source.path) as database:
                chosen = ", ".join(map(quote_name, there))
                rows = database.execute(f"SELECT {chosen} FROM {quote_name(table)}")  # noqa: S608 - quoted
                self._insert(name, there, rows)
        self._copied.add(name)

    def _attach(self, sources: Sequence[RocpdSource]) -> None:
        """Create RocPD's tables over those of all files, and its views over them."""
        parts: dict[str, list[tuple[str, Sequence[str]]]] = {}
        for number, source in enumerate(sources):
            with open_database(source.path) as database:
                present = list_tables(database)
            uri = self._cleanup.enter_context(readable(source.path))
            self._do(f"ATTACH DATABASE ? AS db{number}", (uri,))
            for table_set in source.sets:
                for name, columns in present.items():
                    base = name.removesuffix(table_set.suffix)
                    if name.endswith(table_set.suffix) and base.startswith("rocpd_"):
                        parts.setdefault(base, []).append((f"db{number}.{quote_name(name)}", columns))
        asked = {word for sql in SQLITE_VIEWS.values() for word in _WORD.findall(sql) if word.startswith("rocpd_")}
        for base in asked:
            parts.setdefault(base, [])
        for base, files in parts.items():
            own = ["id", "guid", *read_columns(base.removeprefix("rocpd_"))] if base in asked else []
            united_columns = list(dict.fromkeys([*(name for _, columns in files for name in columns), *own]))
            parts_of = [(_choose(united_columns, there), place) for place, there in files]
            self._selections[base] = [f"SELECT {chosen} FROM {place}" for chosen, place in parts_of]  # noqa: S608 - quoted
            united = " UNION ALL ".join(self._selections[base]) or f"SELECT {_choose(united_columns, ())} WHERE 0"
            self._do(f"CREATE TEMPORARY VIEW {quote_name(base)} AS {united}")
            self._native.add(base)
        for name, sql in SQLITE_VIEWS.items():
            self._do(f"CREATE TEMPORARY VIEW {name} AS {sql}")
            self._native.add(name)
        for number in range(len(sources)):
            self._show_own_views(f"db{number}")

    def _show_own_views(self, database: str) -> None:
        """Create the views of a file that we do not know (`hip_events` of schema 3.0.4), over the tables of all files.

        A view is one SELECT, and reaches these traces alone; it runs when somebody asks for it by name.
        """
        query = f"SELECT name, sql FROM {database}.sqlite_master WHERE type = 'view' AND name NOT GLOB 'rocpd_*'"  # noqa: S608
        for name, sql in self._do(query).fetchall():
            body = _VIEW.fullmatch(sql)
            if name.lower() not in self._native | VIEWS.keys() and body is not None:
                with contextlib.suppress(sqlite3.OperationalError):  # SQLite says so itself when it is asked for
                    self._do(f"CREATE TEMPORARY VIEW {quote_name(name)} AS {body[1]}")
                    self._native.add(name.lower())


@functools.cache
def _declare(view: str) -> dict[str, str]:
    """Return the column types of RocPD's view; computed columns have none, and compare otherwise."""
    with contextlib.closing(sqlite3.connect(":memory:")) as empty:
        for statement in (*make_tables("_", ""), *make_views(["_"])):
            empty.execute(statement)
        return {str(row[1]): str(row[2]) for row in empty.execute(f"PRAGMA table_xinfo({view})")}


def _choose(columns: Sequence[str], present: Sequence[str]) -> str:
    """Return a select list for the columns of a table of which a file may lack some."""
    there = set(present)
    return ", ".join(quote_name(name) if name in there else f"NULL AS {quote_name(name)}" for name in columns)


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_DENY if action in {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH} else sqlite3.SQLITE_OK


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Translate SQLite's errors into ours, which are SQLite's as well."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, DashboardError):
            raise
        raise next(OURS[kind] for kind in type(error).__mro__ if kind in OURS)(str(error)) from error
