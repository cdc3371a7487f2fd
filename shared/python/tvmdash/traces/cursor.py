"""The rows of a statement, as sqlite3 gives them, and as data frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.traces.duck import DuckResult


class Cursor:
    """The rows of one statement."""

    arraysize = 1

    def __init__(self, run: Callable[[str, Sequence[Any]], DuckResult]) -> None:
        self._run = run
        self._result: DuckResult | None = None

    @property
    def description(self) -> list[tuple[str, None, None, None, None, None, None]] | None:
        """The columns' names, each in a tuple of seven as the database API wants it."""
        return [(name, None, None, None, None, None, None) for name in self._result.names] if self._result else None

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Cursor:
        """Itself, now over the rows of this statement; `?` in it stands for the parameters in turn."""
        self._result = self._run(sql, parameters)
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """At most `size` further rows."""
        return self._some.fetchmany(size or self.arraysize)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        return self._some.fetchall()

    def arrow(self) -> Any:
        """All rows as a `pyarrow.Table`; DashboardError where pyarrow is not installed."""
        if importlib.util.find_spec("pyarrow") is None:
            raise DashboardError("arrow() needs pyarrow. Install it beside the dashboard: pip install pyarrow.")
        return self._some.arrow()

    def df(self) -> Any:
        """All rows as a `pandas.DataFrame`."""
        return self._some.df()

    def fetchnumpy(self) -> dict[str, Any]:
        """All further rows as a numpy array for each column, masked where it has NULLs."""
        return self._some.fetchnumpy()

    def close(self) -> None:
        """Let the rows go."""
        self._result = None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while rows := self.fetchmany(4096):
            yield from rows

    @property
    def _some(self) -> DuckResult:
        if self._result is None:
            raise DashboardError("Nothing was executed on this cursor.")
        return self._result
