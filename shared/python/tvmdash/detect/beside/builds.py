"""Where each build lies, in logarithms of time: from ratios to references that may change from night to night."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tvmdash.detect.noise import FloatArray, IntArray
from tvmdash.stats.spread import Spread

PROCESSOR = "cpu"
"""The machine's processor among the names of devices."""
REMEMBERED = 150
"""Nights of history that are looked at."""
ODD_TIMES = 2.0
"""Where a night's own pairs scatter by so many times the usual variance, theirs counts."""


@dataclass(frozen=True)
class Again:
    """Tonight's build measured again in turn with an earlier one: the mean log ratio of so many pairs; std: of one."""

    log: float
    pairs: int
    artifact: int
    std: float = 0.0


@dataclass(frozen=True)
class RatioHistory:
    """One series' ratios by night; the last column is tonight, night `offset + len(logs) - 1`.

    logs: the mean log ratio to the reference, NaN where there is none. std: of one pair, NaN where unknown. pairs: how
    many. build, reference: numbers for the two artifacts, 0 where unknown. code: for the generated code. again: what
    was measured again tonight. device: what was timed, as configs name it.
    """

    logs: FloatArray
    std: FloatArray
    pairs: FloatArray
    build: IntArray
    reference: IntArray
    code: IntArray
    offset: int = 0
    again: tuple[Again, ...] = ()
    device: str = PROCESSOR

    @property
    def tonight(self) -> int:
        return self.offset + len(self.logs) - 1

    @property
    def has_tonight(self) -> bool:
        """Whether there is a ratio tonight."""
        return bool(len(self.logs)) and bool(np.isfinite(self.logs[-1]))


@dataclass(frozen=True)
class Build:
    """An artifact that was measured on the nights `first` to `last`, and on none between them another."""

    artifact: int
    first: int
    last: int
    nights: int
    code: int


@dataclass(frozen=True)
class Builds:
    """Builds in the order of time, with where each lies.

    errors: by build and measurement (a night, or one more tonight), how much of its error is in the place; pairs: of
    each measurement. So the covariance of places is `errors @ diag(1 / pairs) @ errors.T`, in variances of one pair of
    processes.
    """

    builds: tuple[Build, ...]
    places: FloatArray
    errors: FloatArray
    pairs: FloatArray

    def part(self, chosen: Sequence[int]) -> Builds:
        """Only the builds with these numbers."""
        numbers = list(chosen)
        builds = tuple(self.builds[number] for number in numbers)
        return Builds(builds, self.places[numbers], self.errors[numbers], self.pairs)

    def since(self, night: int) -> Builds:
        """Those that were measured on that night or after it."""
        return self.part([number for number, build in enumerate(self.builds) if build.last >= night])

    @property
    def have_one_reference(self) -> bool:
        """Whether no error is in two of the places before tonight's."""
        return bool(((self.errors[:-1] != 0).sum(axis=0) <= 1).all())


@dataclass
class _Place:
    """The mean of what was said of where an artifact lies, by the number of pairs."""

    errors: FloatArray
    place: float = 0.0
    pairs: float = 0.0

    def add(self, place: float, errors: FloatArray, pairs: float) -> None:
        share = pairs / (self.pairs + pairs)
        self.place += (place - self.place) * share
        self.errors = self.errors + (errors - self.errors) * share
        self.pairs += pairs


@dataclass
class _Map:
    """Where artifacts lie, as far as the nights up to now say; the first reference lies at 0."""

    size: int
    places: dict[int, _Place] = field(default_factory=dict)

    def of(self, artifact: int) -> _Place:
        return self.places.setdefault(artifact, _Place(np.zeros(self.size)))

    def links(self, build: int, reference: int) -> bool:
        """Whether a night that measured these two is linked to the nights before."""
        return not self.places or build in self.places or reference in self.places

    def take(self, at: int, log: float, pairs: float, build: int, reference: int) -> tuple[float, FloatArray]:
        """What the measurement with that number says of the build."""
        own = np.zeros(self.size)
        own[at] = 1.0
        if reference not in self.places and build in self.places:
            known = self.places[build]
            self.of(reference).add(known.place - log, known.errors - own, pairs)
        base = self.of(reference)
        place, errors = base.place + log, base.errors + own
        self.of(build).add(place, errors, pairs)
        return place, errors


def _count_pairs(history: RatioHistory, columns: Sequence[int], pair: Spread) -> FloatArray:
    """How many pairs each measurement counts for: one odd process makes the mean of its night doubtful."""
    count = np.array([*history.pairs[columns], *(again.pairs for again in history.again)], float)
    own = np.array([*history.std[columns], *(again.std for again in history.again)], float) ** 2
    beyond = np.nan_to_num(own) > ODD_TIMES * pair.variance
    share = np.where(beyond, pair.variance / np.where(beyond, own, 1.0), 1.0)
    return np.asarray(np.maximum(count, 1) * share)


def _reference_as_build(history: RatioHistory, column: int, size: int) -> list[tuple[int, list[int], _Place]]:
    """The first reference, where it is what the home measured on an earlier night."""
    reference = int(history.reference[column])
    earlier = [int(at) for at in (history.build[:column] == reference).nonzero()[0]] if reference else []
    if not earlier or reference == int(history.build[column]):
        return []
    return [(reference, earlier, _Place(np.zeros(size)))]


def locate_builds(history: RatioHistory, pair: Spread) -> Builds:
    """The builds of the last nights whose ratios are linked with tonight's, by a reference or a build in common.

    pair: the scatter of one pair of processes. A night whose own pairs scatter beyond that counts for fewer of them.
    """
    known = np.isfinite(history.logs)
    known[: max(0, len(known) - REMEMBERED)] = False
    columns = [int(column) for column in known.nonzero()[0]]
    pairs = _count_pairs(history, columns, pair)
    places = _Map(len(pairs))
    runs: list[tuple[int, list[int], _Place]] = []
    for at, column in enumerate(columns):
        build = int(history.build[column]) or -1 - column
        reference = int(history.reference[column])
        if not places.links(build, reference):
            places, runs = _Map(len(pairs)), []
        if not runs:
            runs += _reference_as_build(history, column, len(pairs))
        place, errors = places.take(at, float(history.logs[column]), float(pairs[at]), build, reference)
        if not runs or runs[-1][0] != build:
            runs.append((build, [], _Place(np.zeros(len(pairs)))))
        runs[-1][1].append(column)
        runs[-1][2].add(place, errors, float(pairs[at]))
    for at, again in enumerate(history.again, start=len(columns)):
        if runs and again.artifact in places.places:
            said = places.take(at, again.log, float(again.pairs), runs[-1][0], again.artifact)
            runs[-1][2].add(*said, float(again.pairs))
    builds = tuple(
        Build(build, own[0] + history.offset, own[-1] + history.offset, len(own), int(history.code[own[-1]]))
        for build, own, _ in runs
    )
    return Builds(
        builds,
        np.array([run.place for *_, run in runs]),
        np.array([run.errors for *_, run in runs]).reshape(len(runs), len(pairs)),
        pairs,
    )
