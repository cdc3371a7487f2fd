"""Parts of a trace: slices, counters, flows; one by one, or in columns where there are many.

Times are integer nanoseconds since 1970. Events come in order of their start within each lane of a process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Self

from tvmdash.errors import DashboardError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Ints = NDArray[numpy.int64]
    Reals = NDArray[numpy.float64]

BATCH = 1 << 16
"""Events held in memory at once."""


@dataclass(frozen=True)
class Slice:
    """A span of one process, in a lane of it. `id`, unique in a trace and above 0, is what flows refer to."""

    process: str
    lane: str
    name: str
    category: str
    start_ns: int
    duration_ns: int
    id: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Counter:
    """A counter's value in a process at one moment."""

    process: str
    name: str
    unit: str
    timestamp_ns: int
    value: float


@dataclass(frozen=True)
class Flow:
    """An arrow from the slice with the id `source` to the one with the id `target`."""

    source: int
    target: int


@dataclass(frozen=True)
class Names:
    """A column of texts: `pool[code]` for each row."""

    codes: Ints
    pool: Sequence[str]

    def texts(self) -> list[str]:
        return [self.pool[code] for code in self.codes.tolist()]

    def taken(self, rows: Ints) -> Names:
        return Names(self.codes[rows], self.pool)

    def cleaned(self) -> Names:
        """Return the column with a question mark for what is not a character."""
        return Names(self.codes, [clean(text) for text in self.pool])


class _Columns:
    """Columns of one length, as fields of a dataclass."""

    def taken(self, rows: Ints) -> Self:
        return self._with(lambda column: _take(column, rows))

    def cleaned(self) -> Self:
        """Return the columns with names of valid characters alone."""
        return self._with(lambda column: column.cleaned() if isinstance(column, Names) else column)

    def _with(self, change: Callable[[Any], Any]) -> Self:
        return type(self)(*(change(column) for column in vars(self).values()))


def _take(column: Any, rows: Ints) -> Any:
    if column is None or hasattr(column, "dtype"):
        return None if column is None else column[rows]
    return column.taken(rows) if isinstance(column, Names) else [column[row] for row in rows.tolist()]


@dataclass(frozen=True)
class Slices(_Columns):
    """Slices in columns of one length; `id` 0, no details and no arrow where left out.

    An arrow leads from the slice that has its number in `arrow` to those that have the number's negative.
    """

    process: Names
    lane: Names
    name: Names
    category: Names
    start_ns: Ints
    duration_ns: Ints
    id: Ints | None = None
    details: Sequence[Mapping[str, Any]] | None = None
    arrow: Ints | None = None

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True)
class Counters(_Columns):
    """Counters in columns of one length."""

    process: Names
    name: Names
    unit: Names
    timestamp_ns: Ints
    value: Reals

    def __len__(self) -> int:
        return len(self.timestamp_ns)


Event = Slice | Counter | Slices | Counters
Batch = Slices | Counters


def names(values: Iterable[str]) -> Names:
    import numpy

    known: dict[str, int] = {}
    codes = [known.setdefault(value, len(known)) for value in values]
    return Names(numpy.array(codes, dtype=numpy.int64), list(known))


def combine(*columns: Names) -> tuple[Ints, list[tuple[str, ...]]]:
    """Return the distinct rows of text columns side by side, and for each row the number of its distinct one."""
    import numpy

    keys = columns[0].codes
    for column in columns[1:]:
        keys = numpy.unique(keys, return_inverse=True)[1] * len(column.pool) + column.codes
    _, first, places = numpy.unique(keys, return_index=True, return_inverse=True)
    texts = [[column.pool[code] for code in column.codes[first].tolist()] for column in columns]
    return places, list(zip(*texts, strict=True))


def clean(text: str) -> str:
    """Return the text with a question mark for what is not a character, as a file's name may contain."""
    return text.encode("utf-8", errors="replace").decode()


def format_json(value: object) -> str:
    """Return `value` as JSON; what JSON lacks becomes a text, or null where it is no number."""
    try:
        return clean(json.dumps(value, ensure_ascii=False, default=str, allow_nan=False))
    except ValueError:
        return clean(json.dumps(_drop_nan(value), ensure_ascii=False, default=str))


def _drop_nan(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _drop_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_drop_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def batches(events: Iterable[Event]) -> Iterator[Batch]:
    """Yield the events in columns, at most BATCH a batch, in the order given; DashboardError for an impossible time."""
    for kind, group in groupby(events, key=type):
        if kind in {Slices, Counters}:
            for batch in group:
                yield from _cut(_check(batch))  # type: ignore[arg-type]
        else:
            iterator = iter(group)
            while some := list(islice(iterator, BATCH)):
                yield _check(_pack(some))  # type: ignore[arg-type]


def _cut(batch: Batch) -> Iterator[Batch]:
    import numpy

    if len(batch) <= BATCH:
        yield batch
        return
    for first in range(0, len(batch), BATCH):
        yield batch.taken(numpy.arange(first, min(first + BATCH, len(batch))))


def _check(batch: Batch) -> Batch:
    moments = batch.start_ns if isinstance(batch, Slices) else batch.timestamp_ns
    if len(batch) and int(moments.min()) < 0:
        raise DashboardError(f"An event at {int(moments.min())} ns is before 1970. Leave it out.")
    if isinstance(batch, Slices) and len(batch) and int(batch.duration_ns.min()) < 0:
        row = int(batch.duration_ns.argmin())
        name = batch.name.pool[int(batch.name.codes[row])]
        raise DashboardError(f"The slice {name!r:.60} lasts {int(batch.duration_ns[row])} ns. Leave it out.")
    return batch.cleaned()


def _pack(some: Sequence[Slice | Counter]) -> Batch:
    """Return single events in columns."""
    import numpy

    columns: dict[str, Any] = {}
    for name in vars(some[0]):
        values = [getattr(event, name) for event in some]
        if isinstance(values[0], str):
            columns[name] = names(values)
        elif name == "details":
            columns[name] = values if any(values) else None
        else:
            columns[name] = numpy.array(values, dtype=numpy.float64 if name == "value" else numpy.int64)
    return Slices(**columns) if isinstance(some[0], Slice) else Counters(**columns)
