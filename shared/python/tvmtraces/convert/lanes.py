"""Placement of slices on tracks: a viewer draws a track as a stack, so slices that overlap must nest in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tvmdash.errors import DashboardError
from tvmtraces.convert.events import Slices

if TYPE_CHECKING:
    from tvmtraces.convert.events import Ints


@dataclass(frozen=True)
class LaneTrack:
    """One track of a process; `level` counts the tracks of a lane from 0."""

    process: str
    lane: str
    level: int

    @property
    def title(self) -> str:
        """Return the title for people."""
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
