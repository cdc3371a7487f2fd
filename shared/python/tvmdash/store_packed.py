"""A night's points of all series in one row of the store: how thousands of nights are read at once.

The same points stand in the table `points`, by series, where one series is asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_POINT = struct.Struct("<iddddiq")
_FIELDS = [
    ("number", "<i4"),
    *((name, "<f8") for name in ("value", "low", "high", "std")),
    ("samples", "<i4"),
    ("code", "<i8"),
]
_NAN = float("nan")


@dataclass(frozen=True)
class Point:
    """One point of the series with a number; None is unknown."""

    number: int
    value: float
    low: float | None
    high: float | None
    std: float | None
    samples: int | None
    code: int | None


def pack(points: Iterable[Point]) -> bytes:
    """The points of one night; of several with the same number the last one counts."""
    last = {point.number: point for point in points}
    return b"".join(
        _POINT.pack(
            one.number, one.value, *map(_known, (one.low, one.high, one.std)), *map(_counted, (one.samples, one.code))
        )
        for one in last.values()
    )


def _known(value: float | None) -> float:
    return _NAN if value is None else value


def _counted(value: int | None) -> int:
    return -1 if value is None else value


Columns = tuple[Any, ...]
"""Stamps ascending, values, low, high, std, samples and code of a series: tuples of one length."""


class Nights:
    """Packed nights, the oldest first, taken apart into series."""

    def __init__(self, stamps: Sequence[str], packed: Sequence[bytes]) -> None:
        import numpy

        rows = numpy.frombuffer(b"".join(packed), dtype=_FIELDS)
        lengths = [len(one) // _POINT.size for one in packed]
        numbers = rows["number"].astype(numpy.int64)
        few = numbers.max(initial=0) < 2**16  # then the sort is by digits, in linear time
        order = numpy.argsort(numbers.astype(numpy.uint16) if few else numbers, kind="stable")
        self._stamps = tuple(stamps)
        self._numbers = numbers[order]
        self._night: NDArray[numpy.int64] = numpy.repeat(numpy.arange(len(packed)), lengths)[order]
        self._columns = {name: rows[name][order] for name, _ in _FIELDS[1:]}
        self._holes = {name for name, column in self._columns.items() if _unknown(column).any()}
        self._spans: dict[tuple[int, int], tuple[str, ...]] = {}

    def of(self, number: int) -> Columns:
        """The columns of the series with that number."""
        import numpy

        first, last = (int(numpy.searchsorted(self._numbers, number, side=side)) for side in ("left", "right"))
        return self._stamps_of(first, last), *(self._column(name, first, last) for name, _ in _FIELDS[1:])

    def _stamps_of(self, first: int, last: int) -> tuple[str, ...]:
        nights = self._night[first:last]
        if not len(nights):
            return ()
        span = int(nights[0]), int(nights[-1]) + 1
        if span[1] - span[0] != len(nights):
            return tuple(self._stamps[night] for night in nights.tolist())
        if span not in self._spans:
            self._spans[span] = self._stamps[span[0] : span[1]]
        return self._spans[span]

    def _column(self, name: str, first: int, last: int) -> tuple[Any, ...]:
        column = self._columns[name][first:last]
        if name not in self._holes:
            return tuple(column.tolist())
        holes = _unknown(column).tolist()
        return tuple(None if hole else one for one, hole in zip(column.tolist(), holes, strict=True))


def _unknown(column: Any) -> Any:
    """Where a column holds what stands for None."""
    import numpy

    return numpy.isnan(column) if column.dtype.kind == "f" else column < 0
