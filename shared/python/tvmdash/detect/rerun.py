"""Re-runs of a suspect, which tell TVM from the machine and name the night.

A re-run of an older artifact tonight sees tonight's machine; a re-run of tonight's artifact sees it too.
So the difference between artifacts, both measured tonight, is the compiler's, and what they share is the
machine's. Measurements are taken one by one, and end as soon as the answer is clear (Wald 1945,
sequential probability ratio test). Kalibera & Jones 2013: repeat at the level that varies, which here is
the invocation and the build, not the loop within one process.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tvmdash.detect.luck import Build, Luck
from tvmdash.detect.noise import MAD_TO_SD, FloatArray, IntArray
from tvmdash.detect.series import KEPT_NIGHTS, Measured, Rerun

NIGHT_SHARE = 0.7
"""The machine's part of a night's noise, as a share of the whole, before the re-runs say otherwise."""
PRIOR_RUNS = 3.0
"""How many measurements the baseline's noise counts for when the re-runs' own noise is estimated."""

ENOUGH_VALUES, ENOUGH_FREEDOM, NOISIER = 4, 4, 2.0
"""So many values, degrees of freedom, and times the baseline's variance: tonight is noisier than the baseline was."""


@dataclass
class Bench:
    """Re-runs of one series on one night: a limit, and a list of everything measured."""

    rerun: Rerun
    unit: float | None
    limit: int
    measured: list[Measured] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def take_one_of(self, nights: IntArray, turn: int) -> tuple[int, float] | None:
        """One more value of the artifact whose turn it is, or of the next one that can be measured; and its night."""
        for later in range(len(nights)):
            night = int(nights[(turn + later) % len(nights)])
            value = self.take(night)
            if value is not None:
                return night, value
        return None

    def take(self, night: int) -> float | None:
        """One more value of that night's artifact, scaled; None when there is no more to be had."""
        if self.limit <= 0 or night in self.gone:
            return None
        self.limit -= 1
        values = list(self.rerun(night, 1))
        if not values:
            self.gone.add(night)
        if not values or not math.isfinite(values[0]) or (self.unit is None and values[0] <= 0):
            return None
        self.measured.append(Measured(night, float(values[0])))
        return math.log(values[0]) if self.unit is None else float(values[0]) / self.unit


@dataclass(frozen=True)
class Suspect:
    """A shift that the history suggests: positions in the scaled series, and the baseline's noise.

    earlier: builds of the levels before this one.
    """

    x: FloatArray
    nights: IntArray
    start: int
    cut: int
    median: float
    scale: float
    effect: float
    luck: Luck
    earlier: tuple[Build, ...] = ()

    @property
    def sign(self) -> float:
        return 1.0 if self.effect > 0 else -1.0

    def baseline(self) -> IntArray:
        """Positions of the segment's nights before the cut, the last KEPT_NIGHTS."""
        return np.arange(max(self.start, self.cut - KEPT_NIGHTS), self.cut)

    def build(self, index: int) -> Build:
        """The build at a position of the baseline."""
        return Build(int(self.nights[index]), float(self.x[index] - self.median), self.median)


@dataclass
class Group:
    """Re-measured values of one kind of build, relative to the baseline's median; and those of each night's build."""

    values: list[float] = field(default_factory=list)
    builds: dict[int, list[float]] = field(default_factory=dict)

    def centre(self, scale: float) -> float:
        """Their mean with outliers held; of two that disagree the one nearer to the baseline."""
        values = np.array(self.values)
        if len(values) == 2 and abs(values[0] - values[1]) > 4 * scale:
            return float(values[np.argmin(np.abs(values))])
        middle, held = float(np.median(values)), 2 * self._width(scale)
        return float(np.mean(np.clip(values, middle - held, middle + held)))

    def _width(self, scale: float) -> float:
        """What outliers are held by: the baseline's noise, or that of tonight where it is clearly greater."""
        if len(self.values) < ENOUGH_VALUES:
            return scale
        return max(scale, MAD_TO_SD * float(np.median(np.abs(np.array(self.values) - np.median(self.values)))))

    def scatter(self, scale: float) -> tuple[float, int]:
        """Sum of squared deviations, outliers held, and its degrees of freedom."""
        if len(self.values) < 2:
            return 0.0, 0
        away = np.array(self.values) - self.centre(scale)
        return float(np.sum(np.minimum(np.abs(away), 4 * self._width(scale)) ** 2)), len(self.values) - 1


Answer = Literal["reproduced", "refuted", "open", "modes", "young", "unmeasured"]


@dataclass(frozen=True)
class Verdict:
    """What the re-runs say. shift, error: of the new artifacts against the old, in scaled units.

    machine: by how much the old artifacts moved tonight. machine_moved: beyond their own noise. luck: what is known
    now of how builds differ without any change. again: how far from the old level each new night's build came out.
    """

    answer: Answer
    shift: float = 0.0
    error: float = math.inf
    machine: float = 0.0
    machine_moved: bool = False
    luck: Luck | None = None
    again: Mapping[int, float] = field(default_factory=dict)


def run_scale(scale: float, *groups: Group) -> float:
    """The noise of one re-run: the baseline's, updated by the re-runs' own scatter."""
    parts = [group.scatter(scale) for group in groups]
    squares, freedom = sum(part[0] for part in parts), sum(part[1] for part in parts)
    pooled = (PRIOR_RUNS * scale**2 + squares) / (PRIOR_RUNS + freedom)
    return math.sqrt(max(pooled, squares / freedom if freedom >= ENOUGH_FREEDOM else 0.0))


def difference(new: Group, old: Group, suspect: Suspect) -> tuple[float, float, float, float]:
    """(shift, its standard error, the machine's part, noise of one run) from what was measured so far.

    The machine's part is estimated from the old artifacts and shrunk towards none while few have been
    measured, unless they are clearly off: then it is taken whole.
    """
    scale = run_scale(suspect.scale, new, old)
    night = NIGHT_SHARE * suspect.scale
    count = len(old.values)
    machine = old.centre(suspect.scale) if count else 0.0
    weight = count / (count + (scale / night) ** 2)
    if count and abs(machine) > 2.5 * scale / math.sqrt(count):
        weight = 1.0
    anchor = 1.6 * suspect.scale**2 / max(6, suspect.cut - suspect.start)
    variance = scale**2 / max(1, len(new.values)) + (1 - weight) ** 2 * (night**2 + anchor)
    if count:
        variance += weight**2 * scale**2 / count
    return new.centre(suspect.scale) - weight * machine, math.sqrt(variance), machine, scale


@dataclass
class Trial:
    """New and old artifacts measured in turn, and what that says so far."""

    bench: Bench
    suspect: Suspect
    new: Group = field(default_factory=Group)
    old: Group = field(default_factory=Group)
    turn: int = 0

    def __post_init__(self) -> None:
        self._builds = (self.suspect.nights[self.suspect.cut :][::-1][:6], _ordinary(self.suspect))

    def goes_on(self) -> bool:
        """Measure one more; False where there is no more to be had."""
        side = self.turn % 2
        taken = self.bench.take_one_of(self._builds[side], self.turn // 2)
        if taken is None:
            return False
        group = (self.new, self.old)[side]
        group.values.append(taken[1] - self.suspect.median)
        group.builds.setdefault(taken[0], []).append(group.values[-1])
        self.turn += 1
        return True

    def verdict(self, answer: Answer, luck: Luck | None = None) -> Verdict:
        """What is known now; with `luck`, its part is in the error."""
        shift, error, machine, scale = difference(self.new, self.old, self.suspect)
        moved = max(3 * scale / math.sqrt(max(1, len(self.old.values))), 0.4 * abs(self.suspect.effect))
        error = math.hypot(error, self.luck_error(luck)) if luck else error
        common = self.new.centre(self.suspect.scale) - shift
        again = {night: float(np.median(values)) - common for night, values in self.new.builds.items()}
        return Verdict(answer, shift, error, machine, bool(self.old.values) and abs(machine) > moved, luck, again)

    @property
    def shift(self) -> float:
        """Of the new artifacts against the old."""
        return difference(self.new, self.old, self.suspect)[0]

    def reached(self, errors: float) -> float:
        """So many standard errors of the runs; as of Student's t where they scatter more than the baseline says."""
        squares, freedom = (sum(both) for both in zip(*self._scatters(), strict=True))
        is_noisier = squares > NOISIER * freedom * self.suspect.scale**2
        wider = (errors**2 + 1) / (4 * (PRIOR_RUNS + freedom)) if is_noisier else 0.0
        return errors * (1 + wider) * difference(self.new, self.old, self.suspect)[1]

    def _scatters(self) -> list[tuple[float, int]]:
        return [group.scatter(self.suspect.scale) for group in (self.new, self.old)]

    @property
    def held_shift(self) -> float:
        """How far most of the new builds are towards the suspected shift: one far off counts no more than another."""
        sign, scale = self.suspect.sign, self.suspect.scale
        each = sorted(sign * float(np.median(values)) for values in self.new.builds.values())
        ahead = sign * self.new.centre(scale) - each[(len(each) - 1) // 2]
        return sign * self.shift - max(0.0, ahead)

    def luck_error(self, luck: Luck) -> float:
        return luck.error(self.new_builds, len(self.old.builds))

    @property
    def new_builds(self) -> int:
        return len(self.new.builds)


def _ordinary(suspect: Suspect) -> IntArray:
    """Up to six nights of the baseline whose values were near its median, newest first.

    The last nights before the cut are left out: where the cut is wrong, they are of the new level.
    """
    places = suspect.baseline()
    places = places[: -8 if len(places) > 20 else -3] if len(places) > 9 else places
    places = places[-30:]
    away = np.abs(suspect.x[places] - suspect.median)
    near = places[away <= np.median(away)]
    return np.asarray(suspect.nights[near[::-1][:6]])
