"""Rows on their way in: columns of one table from one source, texts kept once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmtraces.tables import INT, TABLES, TEXT

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Ints = NDArray[numpy.int64]
    Reals = NDArray[numpy.float64]

NULL_INT = -(2**63)
"""Stands for NULL among integers; no measurement is that long ago."""


class WrongValue(ValueError):
    """A value that its column cannot hold; the words name table, column and value."""


@dataclass(frozen=True)
class Texts:
    """A text column: `pool[code]` for each row, NULL where the code is -1."""

    codes: Ints
    pool: Sequence[str]


Column = Any
"""An int64 or float64 array (NULL_INT and NaN are NULL), `Texts`, or one int, float, str or None for all rows."""


@dataclass(frozen=True)
class Batch:
    """`count` rows of one table; columns that are left out are NULL."""

    table: str
    count: int
    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        """Refuse columns that the table does not have: a reader's mistake."""
        unknown = set(self.columns) - set(TABLES[self.table].columns)
        if unknown:
            raise ValueError(f"{self.table} has no columns {sorted(unknown)}")

    @property
    def size_bytes(self) -> int:
        """Return the memory of its arrays, and an allowance for texts."""
        arrays = (column.codes if isinstance(column, Texts) else column for column in self.columns.values())
        return 64 + sum(getattr(array, "nbytes", 8) for array in arrays)


@dataclass(frozen=True)
class WantedRows:
    """A request to a source: the columns of each table, and nanoseconds between which timed rows must lie.

    A source may give more columns, and rows outside of `begin_ns` to `end_ns`; it never gives less.
    """

    tables: Mapping[str, frozenset[str]]
    begin_ns: int | None = None
    end_ns: int | None = None


def shrink(column: Column) -> Column:
    """Return the column's one value where all rows share it, else the column; reals are not compared."""
    if isinstance(column, Texts):
        if not len(column.codes) or (column.codes != column.codes[0]).any():
            return column
        return column.pool[int(column.codes[0])] if column.codes[0] >= 0 else None
    if getattr(getattr(column, "dtype", None), "kind", "") != "i" or not len(column) or (column != column[0]).any():
        return column
    return None if column[0] == NULL_INT else int(column[0])


def ints(values: Iterable[int]) -> Ints:
    """Return the int64 array of whole numbers; TypeError or OverflowError for anything else."""
    import numpy

    return numpy.frombuffer(array("q", values), dtype=numpy.int64)


def texts(values: Sequence[str | None]) -> Texts:
    known: dict[str, int] = {}
    codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
    return Texts(ints(codes), list(known))


def batch_of_rows(table: str, rows: Sequence[Mapping[str, Any]]) -> Batch:
    """Make a batch of few rows; a column that a row leaves out is NULL in it."""
    import numpy

    columns: dict[str, Column] = {}
    for name, kind in TABLES[table].columns.items():
        values = [row.get(name) for row in rows]
        if all(value is None for value in values):
            continue
        if kind == TEXT:
            columns[name] = texts([None if value is None else _text(value, table, name) for value in values])
        elif kind == INT:
            columns[name] = ints(NULL_INT if value is None else _whole(value, table, name) for value in values)
        else:
            columns[name] = numpy.array([numpy.nan if value is None else _real(value, table, name) for value in values])
    return Batch(table, len(rows), columns)


def _whole(value: object, table: str, column: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) < value < 2**63:
        raise WrongValue(f"{table}.{column}: {value!r:.80} is not a whole number of 64 bits")
    return value


def _text(value: object, table: str, column: str) -> str:
    if isinstance(value, bytes):
        raise WrongValue(f"{table}.{column}: {value!r:.80} is not a text")
    return str(value)


def _real(value: Any, table: str, column: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise WrongValue(f"{table}.{column}: {value!r:.80} is not a number") from None


def concatenate(kind: str, parts: Sequence[tuple[Column, int]]) -> Column:
    """Concatenate columns of one SQL type, each with its number of rows; None where all of them are."""
    import numpy

    if all(column is None for column, _ in parts):
        return None
    if kind == TEXT:
        return _concatenate_texts(parts)
    null = NULL_INT if kind == INT else numpy.nan
    dtype = numpy.int64 if kind == INT else numpy.float64
    arrays = [
        numpy.full(count, null if column is None else column, dtype=dtype)
        if column is None or isinstance(column, (int, float))
        else column
        for column, count in parts
    ]
    return arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays)


def _concatenate_texts(parts: Sequence[tuple[Column, int]]) -> Texts:
    import numpy

    known: dict[str, int] = {}
    arrays = []
    for column, count in parts:
        if isinstance(column, Texts):
            places = [known.setdefault(text, len(known)) for text in column.pool]
            arrays.append(numpy.array([*places, -1], dtype=numpy.int64)[column.codes])
        else:
            code = -1 if column is None else known.setdefault(column, len(known))
            arrays.append(numpy.full(count, code, dtype=numpy.int64))
    return Texts(arrays[0] if len(arrays) == 1 else numpy.concatenate(arrays), list(known))
