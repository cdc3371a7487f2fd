"""The rows of a statement, as sqlite3 gives them, and as data frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self

from tvmdash.errors import DashboardError
from tvmdash.traces.dbapi import INSTEAD, InterfaceError, NotSupportedError, Parameters
from tvmdash.traces.duck import DuckResult

Description = list[tuple[str, None, None, None, None, None, None]]
RowFactory = Callable[["Cursor", tuple[Any, ...]], Any]


class Asked(Protocol):
    """The connection that a cursor is of."""

    row_factory: RowFactory | None

    def split_statements(self, script: str) -> list[str]:
        """The statements of a script."""


class Cursor:
    """The rows of one statement. `row_factory` makes something of each row, as sqlite3's does; None leaves tuples."""

    arraysize = 1
    rowcount = -1
    lastrowid = None

    def __init__(self, connection: Asked, run: Callable[[str, Parameters], DuckResult]) -> None:
        self.connection = connection
        self.row_factory: RowFactory | None = connection.row_factory
        self._run = run
        self._result: DuckResult | None = None

    @property
    def description(self) -> Description | None:
        """The columns' names, each in a tuple of seven as the database API wants it."""
        return [(name, None, None, None, None, None, None) for name in self._result.names] if self._result else None

    def execute(self, sql: str, parameters: Parameters = ()) -> Self:
        """Itself, now over the rows of this statement.

        `?` in it stands for the parameters in turn, `:name` and `$name` for that of a mapping.
        """
        self._result = self._run(sql, parameters)
        return self

    def executemany(self, sql: str, parameters: object = ()) -> Self:
        """NotSupportedError: it is for writing."""
        raise NotSupportedError(f"executemany is not supported; traces are read-only. {INSTEAD['executemany']}")

    def executescript(self, script: str) -> Self:
        """Itself, after each statement of a script; their rows are not kept."""
        for statement in self.connection.split_statements(script):
            self.execute(statement)
        self._result = None
        return self

    def fetchone(self) -> Any:
        """The next row, or None."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        """At most `size` further rows, `arraysize` where none is given; all where it is negative, as in sqlite3."""
        wanted = self.arraysize if size is None else size
        return self._make(self._rows.fetchmany(wanted) if wanted >= 0 else self._rows.fetchall())

    def fetchall(self) -> list[Any]:
        """All further rows."""
        return self._make(self._rows.fetchall())

    def arrow(self) -> Any:
        """All further rows as a `pyarrow.Table`; DashboardError where pyarrow is not installed."""
        if importlib.util.find_spec("pyarrow") is None:
            raise DashboardError("arrow() needs pyarrow. Install it beside the dashboard: pip install pyarrow.")
        return self._rows.arrow()

    def df(self) -> Any:
        """All further rows as a `pandas.DataFrame`."""
        return self._rows.df()

    def fetchnumpy(self) -> dict[str, Any]:
        """All rows as a numpy array for each column, masked where it has NULLs; before any other fetch."""
        return self._rows.fetchnumpy()

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Nothing, as the database API allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing, as the database API allows."""

    def close(self) -> None:
        """Let the rows go."""
        self._result = None

    def __iter__(self) -> Iterator[Any]:
        while rows := self.fetchmany(4096):
            yield from rows

    def __next__(self) -> Any:
        rows = self.fetchmany(1)
        if not rows:
            raise StopIteration
        return rows[0]

    def _make(self, rows: list[tuple[Any, ...]]) -> list[Any]:
        factory = self.row_factory
        return rows if factory is None else [factory(self, row) for row in rows]

    @property
    def _rows(self) -> DuckResult:
        if self._result is None:
            raise InterfaceError("No query was executed on this cursor.")
        return self._result
