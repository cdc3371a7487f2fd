"""Perfetto traces (https://ui.perfetto.dev) in protobuf: every slice, counter and flow, to the nanosecond.

A viewer draws a track as a stack, so slices that overlap must nest in it: others of a lane get a further track.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tvmdash.errors import DashboardError
from tvmtraces.convert.events import Counters, Event, Flow, Names, Slices, batches
from tvmtraces.convert.parts import Files, Written
from tvmtraces.convert.wire import packets

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from tvmtraces.convert.events import Batch, Ints


@dataclass(frozen=True)
class LaneTrack:
    """One track of a process; `level` counts the tracks of a lane from 0."""

    process: str
    lane: str
    level: int

    @property
    def title(self) -> str:
        return f"{self.lane} {self.level + 1}" if self.level else self.lane


@dataclass
class _Lane:
    """The open slices of one lane: for each of its tracks their ends, innermost last."""

    process: str
    name: str
    last_start: int = -1
    open_until: int = -1
    stacks: list[list[int]] = field(default_factory=list)
    tracks: list[int] = field(default_factory=list)

    def levels(self, starts: Ints, ends: Ints) -> Ints:
        """Return the level of each slice; only those that meet another are looked at one by one."""
        import numpy

        until = numpy.maximum(numpy.maximum.accumulate(ends), self.open_until)
        meets = starts < numpy.concatenate(([self.open_until], until[:-1]))
        looked_at = meets.copy()
        looked_at[:-1] |= meets[1:]
        levels = numpy.zeros(len(starts), dtype=numpy.int64)
        for row in numpy.flatnonzero(looked_at).tolist():
            if not meets[row]:
                self.stacks = []
            levels[row] = self._level(int(starts[row]), int(ends[row]))
        if not looked_at[-1]:
            self.stacks = [[int(ends[-1])]]
        self.last_start, self.open_until = int(starts[-1]), int(until[-1])
        return levels

    def _level(self, start: int, end: int) -> int:
        for level, stack in enumerate(self.stacks):
            while stack and stack[-1] <= start:
                stack.pop()
            if not stack or end <= stack[-1]:
                stack.append(end)
                return level
        self.stacks.append([end])
        return len(self.stacks) - 1


class Lanes:
    """The tracks of a trace, numbered as they come."""

    def __init__(self) -> None:
        self.tracks: list[LaneTrack] = []
        self._lanes: dict[tuple[str, str], _Lane] = {}

    def place(self, slices: Slices) -> tuple[Slices, Ints]:
        """Return the slices in the order to write them in, and the number in `tracks` of each one's track.

        A slice goes where it lies wholly within an open one, or where nothing is open; else a level lower.
        DashboardError where the slices of a lane do not come in order of their starts.
        """
        import numpy

        slices = _sort(slices)
        placed = numpy.zeros(len(slices), dtype=numpy.int64)
        ends = slices.start_ns + slices.duration_ns
        for key, rows in _group_by_lane(slices):
            lane = self._lanes.setdefault(key, _Lane(*key))
            if int(slices.start_ns[rows[0]]) < lane.last_start:
                raise DashboardError(f"{key[0]}, {key[1]}: its slices are not in order of their starts. Sort them.")
            levels = lane.levels(slices.start_ns[rows], ends[rows])
            self._number(lane, int(levels.max()))
            placed[rows] = numpy.array(lane.tracks, dtype=numpy.int64)[levels]
        return slices, placed

    def _number(self, lane: _Lane, level: int) -> None:
        while len(lane.tracks) <= level:
            self.tracks.append(LaneTrack(lane.process, lane.name, len(lane.tracks)))
            lane.tracks.append(len(self.tracks) - 1)


def _sort(slices: Slices) -> Slices:
    """Sort by start, and of those that start together the longest first, so that it holds the others."""
    import numpy

    steps = numpy.diff(slices.start_ns)
    if bool((steps > 0).all()):
        return slices
    together = numpy.diff(slices.duration_ns)[steps == 0]
    if bool((steps >= 0).all()) and bool((together <= 0).all()):
        return slices
    return slices.taken(numpy.lexsort((-slices.duration_ns, slices.start_ns)))


def _group_by_lane(slices: Slices) -> Iterator[tuple[tuple[str, str], Ints]]:
    """Yield the rows of each lane, in order."""
    import numpy

    keys = slices.process.codes * len(slices.lane.pool) + slices.lane.codes
    distinct, inverse = numpy.unique(keys, return_inverse=True)
    order = numpy.argsort(inverse, kind="stable")
    bounds = numpy.searchsorted(inverse[order], numpy.arange(len(distinct) + 1))
    for number, key in enumerate(distinct.tolist()):
        process, lane = divmod(key, len(slices.lane.pool))
        yield (slices.process.pool[process], slices.lane.pool[lane]), order[bounds[number] : bounds[number + 1]]


MAX_BYTES = 256 << 20
"""A viewer in a browser opens this; it needs about six times as much memory."""
_ARROWS, _ALONE = 1 << 62, 1 << 63
"""First numbers of arrows among those of flows, and of those that stand for none."""


def write_perfetto(
    destination: Path,
    events: Iterable[Event],
    *,
    flows: Iterable[Flow] = (),
    max_bytes: int = MAX_BYTES,
) -> Written:
    """Write a trace to `place`, which is not there yet; DashboardError leaves nothing behind.

    One batch of events is held at a time, beside the flows and each distinct name. Another file is begun where one has
    more than `max_bytes`. A flow between two files is not drawn.
    """
    tied = _tie(flows)
    lanes = Lanes()
    counted = {Slices: 0, Counters: 0}
    with Files(destination) as files:
        part = _Part(files.new(), lanes, tied)
        for batch in batches(events):
            counted[type(batch)] += len(batch)
            if part.size > max_bytes:
                part = _Part(files.new(), lanes, tied)
            part.add(batch)
        paths = files.finish()
    return Written(paths, counted[Slices], counted[Counters])


def _tie(flows: Iterable[Flow]) -> dict[int, list[int]]:
    """Return the numbers of its flows for each slice's id."""
    tied: dict[int, list[int]] = {}
    for number, flow in enumerate(flows, start=1):
        tied.setdefault(flow.source, []).append(number)
        tied.setdefault(flow.target, []).append(number)
    return tied


class _Part:
    """One file: a whole trace of its own."""

    def __init__(self, file: IO[bytes], lanes: Lanes, tied: Mapping[int, list[int]]) -> None:
        self._file, self._lanes, self._tied = file, lanes, tied
        self._uuids: dict[object, int] = {}
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._alone = 0
        self.size = 0

    def add(self, batch: Batch) -> None:
        """Write a batch, and before it whatever it is the first to name."""
        if not len(batch):
            return
        if not self.size:
            moments = batch.start_ns if isinstance(batch, Slices) else batch.timestamp_ns
            self._write(packets.opening(int(moments.min())))
        if isinstance(batch, Slices):
            self._add_slices(batch)
        else:
            self._add_counters(batch)

    def _write(self, content: bytes) -> None:
        self._file.write(content)
        self.size += len(content)

    def _add_slices(self, batch: Slices) -> None:
        batch, placed = self._lanes.place(batch)
        tracks = self._track_uuids(placed)
        names = self._number(batch.name, self._names, packets.MAX_NAMES, into_names=True)
        categories = self._number(batch.category, self._categories, packets.MAX_CATEGORIES, into_names=False)
        ends = batch.start_ns + batch.duration_ns
        arrows = None if batch.arrow is None else self._number_arrows(batch.arrow)
        rows = packets.slices(batch.start_ns, ends, tracks, names, categories, arrows).bytes
        first = 0
        for row in self._find_rich(batch):
            self._write(rows[first:row].tobytes())
            flows = list(self._tied.get(int(batch.id[row]), [])) if batch.id is not None else []
            flows += [] if arrows is None else [int(arrows[row])]
            span = (int(batch.start_ns[row]), int(ends[row]))
            numbers = (int(tracks[row]), int(names[row]), int(categories[row]))
            self._write(packets.rich_slice(span, numbers, flows, batch.details[row] if batch.details else {}))
            first = row + 1
        self._write(rows[first:].tobytes())

    def _number_arrows(self, arrow: Ints) -> NDArray[numpy.uint64]:
        """The number of each row's flow; of a row without an arrow one that no other row has, so that none is drawn."""
        import numpy

        alone = numpy.arange(self._alone, self._alone + len(arrow), dtype=numpy.uint64) + numpy.uint64(_ALONE)
        self._alone += len(arrow)
        return numpy.where(arrow == 0, alone, numpy.abs(arrow).astype(numpy.uint64) + numpy.uint64(_ARROWS))

    def _find_rich(self, batch: Slices) -> list[int]:
        """The rows with flows or details."""
        import numpy

        rows = {row for row, details in enumerate(batch.details or ()) if details}
        if batch.id is not None and self._tied:
            rows |= {row for row in numpy.flatnonzero(batch.id).tolist() if int(batch.id[row]) in self._tied}
        return sorted(rows)

    def _add_counters(self, batch: Counters) -> None:
        import numpy

        keys = numpy.stack([batch.process.codes, batch.name.codes, batch.unit.codes])
        distinct, inverse = numpy.unique(keys, axis=1, return_inverse=True)
        uuids = []
        for process, name, unit in distinct.T.tolist():
            key = (batch.process.pool[process], batch.name.pool[name], batch.unit.pool[unit])
            uuids.append(self._counter_uuid(*key))
        tracks = numpy.array(uuids, dtype=numpy.int64)[inverse.reshape(-1)]
        self._write(packets.counters(batch.timestamp_ns, tracks, batch.value).bytes.tobytes())

    def _counter_uuid(self, process: str, name: str, unit: str) -> int:
        key = ("counter", process, name, unit)
        if key not in self._uuids:
            parent = self._process_uuid(process)
            self._write(packets.counter(self._new_uuid(key), parent, name, unit))
        return self._uuids[key]

    def _track_uuids(self, placed: Ints) -> Ints:
        import numpy

        distinct, inverse = numpy.unique(placed, return_inverse=True)
        uuids = []
        for number in distinct.tolist():
            if number not in self._uuids:
                track = self._lanes.tracks[number]
                parent = self._process_uuid(track.process)
                self._write(packets.lane(self._new_uuid(number), parent, track.title))
            uuids.append(self._uuids[number])
        return numpy.array(uuids, dtype=numpy.int64)[inverse]

    def _process_uuid(self, process: str) -> int:
        key = ("process", process)
        if key not in self._uuids:
            uuid = self._new_uuid(key)
            self._write(packets.process(uuid, uuid, process))
        return self._uuids[key]

    def _new_uuid(self, key: object) -> int:
        self._uuids[key] = len(self._uuids) + 1
        if len(self._uuids) >= packets.MAX_TRACKS:
            raise DashboardError(f"More than {packets.MAX_TRACKS} tracks. Write fewer processes at a time.")
        return self._uuids[key]

    def _number(self, column: Names, known: dict[str, int], limit: int, *, into_names: bool) -> Ints:
        """The interned number of each row's text, from 1."""
        import numpy

        distinct, inverse = numpy.unique(column.codes, return_inverse=True)
        texts = [column.pool[code] for code in distinct.tolist()]
        new = {text: len(known) + 1 + index for index, text in enumerate(dict.fromkeys(texts).keys() - known.keys())}
        known.update(new)
        if len(known) >= limit:
            raise DashboardError(f"More than {limit} distinct names or categories. Write less at a time.")
        self._write(packets.interned(new, {}) if into_names else packets.interned({}, new))
        return numpy.array([known[text] for text in texts], dtype=numpy.int64)[inverse]
