"""A home in SQL, all its nights: `connect("HOME").execute("SELECT * FROM incidents").df()`.

results/store.sqlite is an index of the home's files: it can be deleted at any time, and is made again of them. Raw
measurements are not in it: a statement on them is answered by the traces of the home, as they lie.
"""

from __future__ import annotations

import functools
import json
import logging
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tvmdash.common.files import lock, mounts
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.series import store as series_store
from tvmdash.series import tables
from tvmdash.series.store import open_for_reading as open_for_reading  # by this name authors know it
from tvmdash.store import gather
from tvmdash.store.gather import keep_messages as keep_messages

if TYPE_CHECKING:
    from pandas import DataFrame

    from tvmtraces import Connection

TABLES: Mapping[str, str] = tables.PUBLIC
"""The tables that may be asked, and what a row of each is."""
_log = logging.getLogger("store")
_FORBIDDEN = frozenset((sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH))


class Selection:
    """The rows of a statement: iterate over them, or take them as a pandas data frame."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.names = [column[0] for column in cursor.description or ()]

    def __iter__(self) -> Any:
        return self._cursor

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._cursor.fetchall()

    def df(self) -> DataFrame:
        """All rows that are left, as a data frame with a column for each name."""
        from pandas import DataFrame

        return DataFrame(self.fetchall(), columns=self.names)


class HomeStore:
    """A home's index, to be read only, and its raw measurements."""

    def __init__(self, connection: sqlite3.Connection, root: Path) -> None:
        self._connection = connection
        self._root = root
        connection.execute("PRAGMA query_only = ON")
        connection.set_authorizer(_authorize)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        if "_traces" in self.__dict__:
            self._traces.close()

    @functools.cached_property
    def _traces(self) -> Connection:
        from tvmdash import traces  # most statements need none, and importing them takes long

        return traces.connect(self._root)

    def execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Selection:
        """The rows of one statement; DashboardError where it is wrong, or would write.

        One that names a view of traces, as `passes` or `samples`, has the tables of traces alone: also of `trials`.
        """
        try:
            return Selection(self._connection.execute(sql, parameters))
        except (sqlite3.Error, sqlite3.Warning) as error:
            missing = str(error).removeprefix("no such table: ")
            remedy = ""
            if missing != str(error):
                from tvmtraces.views import VIEWS

                if missing in VIEWS:
                    return self._ask_traces(sql, parameters, missing)
                remedy = f"The tables are: {', '.join(TABLES)}; of raw measurements: {', '.join(VIEWS)}."
            elif type(error) is sqlite3.DatabaseError:  # what a statement is to blame for has a type of its own
                remedy = "Make it anew: python3 -m dashboard rebuild HOME."
            raise DashboardError(f"{error}.", place="SQL", remedy=remedy) from error

    def _ask_traces(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any], named: str) -> Selection:
        """Execute a statement that names a view of the traces on these."""
        try:
            return Selection(self._traces.execute(sql, parameters))
        except sqlite3.Error as error:
            remedy = f"A statement on {named} has the views of traces alone: `dashboard traces views` lists them."
            raise DashboardError(f"{str(error).rstrip('.')}.", place="SQL", remedy=remedy) from error

    def columns_of(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute("SELECT cid, name FROM pragma_table_info(?)", (table,))]


def read_pages(home: Home) -> dict[str, Mapping[str, Any]]:
    """Read what the site kept of each night in the ledger, by night."""
    with connect(home.root) as opened:
        return {night: json.loads(page) for night, page in opened.execute("SELECT night, page FROM _pages")}


def _authorize(action: int, *_: Any) -> int:
    return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK


def connect(home: Path | str) -> HomeStore:
    """The index of the home; where it is missing, damaged or another version's, one of its files, in memory."""
    root = Path(home)
    if not (root / "results").is_dir():
        raise DashboardError("is no home: it has no folder `results`.", place=root)
    whole = Home(root)
    opened = _open_index(whole) if whole.store_file.is_file() else None
    if opened is None:
        _log.warning("%s: there is no index of this version; the files are read instead.", whole.store_file)
        opened = series_store.in_memory()
        fill(whole, opened)
    return HomeStore(opened.connection, root)


def _open_index(home: Home) -> series_store.Store | None:
    """Open the index, with what people and commands did since the night."""
    opened = series_store.read_only(home.store_file)
    # While a night runs it writes the index itself, and nobody is to see a half of it.
    if opened is None or lock.is_held(home.lock_file) or mounts.find_network_type(home.store_file.parent):
        return opened
    try:
        if gather.is_behind(home, opened):
            with series_store.open_for_writing(home.store_file) as written:
                written.connection.execute("PRAGMA busy_timeout = 0")  # whoever writes now does the same
                fill(home, written)
    except (sqlite3.OperationalError, OSError) as error:  # another user's home, a full disk: it can be read
        _log.warning("%s: %s; it is as the last night left it.", home.store_file, error)
    except sqlite3.DatabaseError as error:
        _log.warning("%s: %s; the next night makes it anew.", home.store_file, error)
        opened.connection.close()
        return None
    return opened


def update(home: Home) -> None:
    """Bring the index in the home up to date; one that turns out to be damaged inside is made anew."""
    try:
        with series_store.open_for_writing(home.store_file) as opened:
            fill(home, opened)
    except sqlite3.OperationalError:
        raise  # a full disk, a lock: the index itself is whole
    except sqlite3.DatabaseError as error:
        _log.warning("%s: %s; it is made anew of the home's files.", home.store_file, error)
        series_store.remove(home.store_file)
        with series_store.open_for_writing(home.store_file) as opened:
            fill(home, opened)


def fill(home: Home, opened: series_store.Store) -> None:
    """Bring the index up to date with everything in the home."""
    opened.ingest_all((home.data(name), name) for name in home.experiments_with_data())
    gather.take_in(home, opened)
