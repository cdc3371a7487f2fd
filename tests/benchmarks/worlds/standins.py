"""Judges that show what the worlds can tell apart: one silent, one naive, and an oracle that peeks at the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tests.benchmarks.worlds.evidence import Measure, SeriesEvidence, Told, Verdict
from tests.benchmarks.worlds.world import World


class Silent:
    """It never tells anything."""

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        return Verdict()


CRITICAL = {1: 636.6, 2: 31.6, 3: 12.92, 4: 8.61, 5: 6.87, 6: 5.96}
"""Student's t by degrees of freedom, two-sided at 1e-3."""
CRITICAL_95 = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45}


class Naive:
    """It tells what the night's own pairs say in a t-test at 1e-3, and each exact number that moved."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[str, ...]] = {}

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        told = [found for series in evidence if (found := self._series(night, series))]
        return Verdict(tuple(told), dict(self.open))

    def _series(self, night: str, series: SeriesEvidence) -> Told | None:
        if series.kind in {"exact", "accuracy"}:
            last = series.values[-2:]
            moved = len(last) == 2 and last[0].value != last[1].value and last[1].night == night
            size = math.log(last[-1].value / last[0].value)
            return self._tell(series, size, 0.0, last[-1].build.artifact) if moved else None
        pairs = next((found for found in series.pairs if found.night == night), None)
        if pairs is None or len(pairs.logs) < 2:
            return None
        mean, degrees = float(np.mean(pairs.logs)), min(6, len(pairs.logs) - 1)
        error = float(np.std(pairs.logs, ddof=1)) / math.sqrt(len(pairs.logs))
        if abs(mean) < CRITICAL[degrees] * error:
            return None
        return self._tell(series, mean, CRITICAL_95[degrees] * error, pairs.build.artifact)

    def _tell(self, series: SeriesEvidence, size: float, error: float, begin: str) -> Told | None:
        numbers = math.expm1(size), math.expm1(size - error), math.expm1(size + error)
        name = (series.series,)
        if (size > 0) == (series.direction == "higher"):
            known = self.open.pop(series.series, None)
            return Told("fixed" if known else "better", name, *numbers, begin, incident=series.series)
        if series.series in self.open:
            return None
        self.open[series.series] = name
        return Told("told", name, *numbers, begin, incident=series.series)


class Oracle:
    """It tells each step on the first night that has it, once, with its true size, and closes it when it ends."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.open: dict[str, tuple[str, ...]] = {}
        self.known: set[int] = set()
        self.newest = 0

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        world, number = self.world, next(at for at in range(self.world.plan.nights) if self.world.stamp(at) == night)
        build = int(world.sequence[number])
        self.newest = max(self.newest, build)
        seen = {series.series for series in evidence if series.values[-1].night == night}
        told = [
            Told("machine", tuple(world.names), math.expm1(move.size), 0, 1, "", "home")
            for move in world.moves
            if move.first == number
        ]
        for at, step in enumerate(world.steps):
            if build == self.newest and step.series & seen:
                told += self._step(at, build)
        return Verdict(tuple(told), dict(self.open), tuple(sorted(set(world.names) - seen)))

    def _step(self, at: int, build: int) -> list[Told]:
        world, step, incident = self.world, self.world.steps[at], f"R{at}"
        series, size = tuple(sorted(step.series)), math.expm1(step.size)
        known = (series, size, size - 0.003, size + 0.003, f"tvm-{build:03}", "point", incident)
        higher = world.kinds[world.names.index(series[0])] in {"rate", "accuracy"}
        if step.drift is not None:
            if build >= (step.begin + step.drift) / 2 and at not in self.known:
                self.known.add(at)
                return [Told("drift", *known)]
        elif step.is_in(build) and at not in self.known:
            self.known.add(at)
            if (step.size > 0) == higher:
                return [Told("better", *known)]
            self.open[incident] = series
            return [Told("told", *known)]
        elif incident in self.open and not step.is_in(build):
            del self.open[incident]
            return [Told("fixed", *known)]
        return []
