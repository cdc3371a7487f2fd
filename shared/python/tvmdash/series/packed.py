"""A night's points of all series in one row of the store: how thousands of nights are read at once.

The same points stand in the table `points`, by series, where one series is asked for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

_POINT = struct.Struct("<iddddiiii")
BYTES = _POINT.size
"""Of one point."""
_FIELDS = [
    ("number", "<i4"),
    *((name, "<f8") for name in ("value", "low", "high", "std")),
    ("samples", "<i4"),
    ("code", "<i4"),
    ("alike", "<i4"),
    ("content", "<i4"),
]
_NAN = float("nan")
Columns = tuple[Any, ...]
"""Stamps ascending, and values, low, high, std, samples, code, alike and content of a series, of one length."""


@dataclass(frozen=True)
class PackedPoint:
    """One point of the series with a number; None is unknown."""

    number: int
    value: float
    low: float | None
    high: float | None
    std: float | None
    samples: int | None
    code: int | None
    alike: int | None = None
    content: int | None = None


def pack(points: Iterable[PackedPoint]) -> bytes:
    """The points of one night; of several with the same number the last one counts."""
    last = {point.number: point for point in points}
    return b"".join(
        _POINT.pack(
            point.number,
            point.value,
            *map(_known, (point.low, point.high, point.std)),
            *map(_counted, (point.samples, point.code, point.alike, point.content)),
        )
        for point in last.values()
    )


def unpack(points: bytes) -> Columns:
    """Numbers, values, low, high and code of one night's points, without numpy."""
    number, value, low, high, _, _, code, *_ = [*zip(*_POINT.iter_unpack(points), strict=True)] or [()] * len(_FIELDS)
    # NaN is unequal to itself, which is much faster than math.isnan
    floats = ([None if each != each else each for each in column] for column in (value, low, high))  # noqa: PLR0124
    return number, *floats, [None if each < 0 else each for each in code]


def _known(value: float | None) -> float:
    return _NAN if value is None else value


def _counted(value: int | None) -> int:
    return -1 if value is None else value


class Column(Sequence[Any]):
    """One column of a series as a tuple in all but name: its Python numbers are made when they are asked for.

    A history of ten years has millions of them, and who draws or judges it wants `floats` or the last one.
    """

    __slots__ = ("_array", "_made")

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self._made: tuple[Any, ...] | None = None

    @property
    def array(self) -> NDArray[Any]:
        """The numbers as they lie in the index: NaN, or -1 in a column of integers, is unknown."""
        return self._array

    def _all(self) -> tuple[Any, ...]:
        if self._made is None:
            self._made = _numbers(self._array)
        return self._made

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Any, ...]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return _numbers(self._array[index])
        value = self._array[index]
        return None if _unknown(value) else value.item()

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, Column) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._all())


def _numbers(array: NDArray[Any]) -> tuple[Any, ...]:
    holes = _unknown(array)
    if not holes.any():
        return tuple(array.tolist())
    return tuple(None if hole else value for value, hole in zip(array.tolist(), holes.tolist(), strict=True))


def floats(column: Sequence[float | None]) -> NDArray[numpy.float64]:
    """Make an array of a column, NaN where unknown."""
    import numpy

    if not isinstance(column, Column):
        return numpy.array(column, numpy.float64)
    array = column.array.astype(numpy.float64)
    array[_unknown(column.array)] = numpy.nan
    return array


def integers(column: Sequence[int | None]) -> NDArray[numpy.int64]:
    """A column of numbers above 0 as an array, 0 where unknown."""
    import numpy

    if not isinstance(column, Column):
        return numpy.array([value or 0 for value in column], numpy.int64)
    return numpy.maximum(column.array.astype(numpy.int64), 0)


def counts(column: Sequence[int | None]) -> NDArray[numpy.int64]:
    """A column of numbers from 0 on as an array, -1 where unknown."""
    import numpy

    if not isinstance(column, Column):
        return numpy.array([-1 if count is None else count for count in column], numpy.int64)
    return column.array.astype(numpy.int64)


class Nights:
    """Packed nights, the oldest first, taken apart into series."""

    def __init__(self, stamps: Sequence[str], packed: Sequence[bytes]) -> None:
        import numpy

        joined = b"".join(packed)
        lengths = [len(points) // _POINT.size for points in packed]
        numbers = numpy.frombuffer(joined, dtype=_FIELDS)["number"].astype(numpy.int64)
        few = numbers.max(initial=0) < 2**16  # then the sort is by digits, in linear time
        order = numpy.argsort(numbers.astype(numpy.uint16) if few else numbers, kind="stable")
        self._stamps = tuple(stamps)
        self._numbers = numbers[order]
        self._night: NDArray[numpy.int64] = numpy.repeat(numpy.arange(len(packed)), lengths)[order]
        # As opaque bytes a point is moved at once, as fields one by one.
        self._points = numpy.frombuffer(joined, dtype=f"V{_POINT.size}")[order].view(_FIELDS)
        self._spans: dict[tuple[int, int], tuple[str, ...]] = {}

    def of(self, number: int) -> Columns:
        import numpy

        first, last = (int(numpy.searchsorted(self._numbers, number, side=side)) for side in ("left", "right"))
        points = self._points[first:last]
        return self._stamps_of(first, last), *(Column(points[name]) for name, _ in _FIELDS[1:])

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


def _unknown(array: Any) -> Any:
    """Find where an array, or whether a number of one, is what stands for None."""
    import numpy

    return numpy.isnan(array) if array.dtype.kind == "f" else array < 0
