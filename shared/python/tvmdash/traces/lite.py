"""The same tables and views in plain SQLite, for a machine without DuckDB: everything is copied into memory first."""

from __future__ import annotations

import math
import sqlite3
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import Batch, values
from tvmdash.traces.sealed import SealedFile
from tvmdash.traces.tables import TABLES

_FORBIDDEN = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})


class LiteEngine:
    """An in-memory SQLite; sealed runs cannot be read by it."""

    def __init__(self, parquet: Mapping[str, Sequence[SealedFile]]) -> None:
        first = next((paths[0] for paths in parquet.values() if paths), None)
        if first is not None:
            raise DashboardError(
                f"{first.path.parent}: sealed runs are read by DuckDB. Install the pins of requirements.txt."
            )
        self._database = sqlite3.connect(":memory:")
        self._database.create_aggregate("median", 1, _Median)
        self._database.create_aggregate("quantile_disc", 2, _Quantile)
        self._database.create_aggregate("stddev_samp", 1, _Deviation)
        self._database.set_authorizer(_authorize)

    def load(self, table: str, batches: Sequence[Batch]) -> None:
        """Make `all_<table>` from the batches."""
        names = list(TABLES[table].columns)
        columns = ", ".join(f'"{name}" {kind}' for name, kind in TABLES[table].columns.items())
        self._database.execute(f"DROP TABLE IF EXISTS all_{table}")
        self._database.execute(f"CREATE TABLE all_{table} ({columns})")
        marks = ", ".join("?" * len(names))
        for batch in batches:
            rows = zip(*(values(batch, name) for name in names), strict=True)
            self._database.executemany(f"INSERT INTO all_{table} VALUES ({marks})", rows)  # noqa: S608 - our names

    @property
    def plans(self) -> bool:
        """No: every column is read."""
        return False

    def is_ordered(self, table: str) -> bool:
        """Never surely."""
        return False

    def view(self, name: str, sql: str) -> None:
        """Make a view."""
        self._database.execute(f"CREATE VIEW {name} AS {sql}")

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> LiteResult:
        """The result of one statement; DashboardError where it fails."""
        try:
            return LiteResult(self._database.execute(sql, tuple(parameters)))
        except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
            raise DashboardError(f"SQLite: {error}") from error

    def copy(self, selection: str, place: Path, options: str) -> None:
        """Refused: Parquet is written by DuckDB."""
        raise DashboardError(f"{place}: Parquet is written by DuckDB. Install the pins of requirements.txt.")

    def close(self) -> None:
        """Let everything go."""
        self._database.close()


def _authorize(action: int, *_details: object) -> int:
    return sqlite3.SQLITE_DENY if action in _FORBIDDEN else sqlite3.SQLITE_OK


class LiteResult:
    """Rows of one statement."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor
        self.names = [column[0] for column in cursor.description or ()]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """At most `size` further rows."""
        return self._cursor.fetchmany(size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All further rows."""
        return self._cursor.fetchall()

    def arrow(self) -> Any:
        """All rows as a pyarrow.Table."""
        import pyarrow  # type: ignore[import-untyped,unused-ignore]

        rows = self.fetchall()
        return pyarrow.table({name: [row[index] for row in rows] for index, name in enumerate(self.names)})

    def df(self) -> Any:
        """All rows as a pandas.DataFrame."""
        import pandas

        return pandas.DataFrame(self.fetchall(), columns=self.names)


class _Values:
    """What an aggregate has seen; None where that was nothing."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def step(self, value: Any, *_more: Any) -> None:
        """Take one value; NULL is none."""
        if value is not None:
            self.seen.append(value)


class _Median(_Values):
    def finalize(self) -> Any:
        """The median, between the middle two where they are two."""
        return float(statistics.median(self.seen)) if self.seen else None


class _Deviation(_Values):
    def finalize(self) -> Any:
        """The sample's standard deviation; None for fewer than two."""
        return statistics.stdev(self.seen) if len(self.seen) > 1 else None


class _Quantile(_Values):
    """The smallest value that the share `q` of all does not exceed."""

    def __init__(self) -> None:
        super().__init__()
        self.share = 0.5

    def step(self, value: Any, *more: Any) -> None:
        """Take one value and the share."""
        super().step(value)
        self.share = more[0]

    def finalize(self) -> Any:
        """That value."""
        if not self.seen:
            return None
        return sorted(self.seen)[max(0, math.ceil(len(self.seen) * self.share) - 1)]
