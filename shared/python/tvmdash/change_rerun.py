"""Re-runs of a suspect, which tell TVM from the machine and name the night.

A re-run of an older artifact tonight sees tonight's machine; a re-run of tonight's artifact sees it too.
So the difference between artifacts, both measured tonight, is the compiler's, and what they share is the
machine's. Measurements are taken one by one, and end as soon as the answer is clear (Wald 1945,
sequential probability ratio test). Kalibera & Jones 2013: repeat at the level that varies, which here is
the invocation and the build, not the loop within one process.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tvmdash.change_noise import FloatArray, IntArray
from tvmdash.change_series import KEPT_NIGHTS, Measured, Rerun, Settings

NIGHT_SHARE = 0.7
"""The machine's part of a night's noise, as a share of the whole, before the re-runs say otherwise."""
PRIOR_RUNS = 3.0
"""How many measurements the baseline's noise counts for when the re-runs' own noise is estimated."""
GIVE_UP = 1.6
"""Log likelihood ratio against the step at which re-measuring ends."""
LEAST_EACH = 4
SEEN_BEFORE = 0.05
"""Earlier levels that were off by as much on this share of their nights do not make a series old."""
NEAR_CUT = 4
"""The last nights before a suspected cut may already be of the new level."""
YOUNG_NIGHTS, NEW_LEVEL_NIGHTS, YOUNG_LEAST = 50, 20, 3
"""A series, or a level, of fewer nights may have modes not seen yet: so many builds must show the shift."""
SAME_MODE = 0.5
"""A baseline build that reproduces this share of the effect shows that builds have modes."""
EACH_MODE = 3
MOST_BEYOND = 12


@dataclass
class Bench:
    """Re-runs of one series on one night: a limit, and a list of everything measured."""

    rerun: Rerun
    unit: float | None
    limit: int
    measured: list[Measured] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def take_one_of(self, nights: IntArray, turn: int) -> float | None:
        """One more value of the artifact whose turn it is, or of the next one that can be measured."""
        for later in range(len(nights)):
            value = self.take(int(nights[(turn + later) % len(nights)]))
            if value is not None:
                return value
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
    """A shift that the history suggests: positions in the scaled series, and the baseline's noise."""

    x: FloatArray
    nights: IntArray
    start: int
    cut: int
    median: float
    scale: float
    effect: float
    reserve: FloatArray

    @property
    def sign(self) -> float:
        return 1.0 if self.effect > 0 else -1.0

    def baseline(self) -> IntArray:
        """Positions of the segment's nights before the cut, the last KEPT_NIGHTS."""
        return np.arange(max(self.start, self.cut - KEPT_NIGHTS), self.cut)


@dataclass
class Group:
    """Re-measured values of one kind of build, relative to the baseline's median."""

    values: list[float] = field(default_factory=list)

    def centre(self, scale: float) -> float:
        """Their mean with outliers held; of two that disagree the one nearer to the baseline."""
        values = np.array(self.values)
        if len(values) == 2 and abs(values[0] - values[1]) > 4 * scale:
            return float(values[np.argmin(np.abs(values))])
        middle = float(np.median(values))
        return float(np.mean(np.clip(values, middle - 2 * scale, middle + 2 * scale)))

    def scatter(self, scale: float) -> tuple[float, int]:
        """Sum of squared deviations, outliers held, and its degrees of freedom."""
        if len(self.values) < 2:
            return 0.0, 0
        away = np.array(self.values) - self.centre(scale)
        return float(np.sum(np.minimum(np.abs(away), 4 * scale) ** 2)), len(self.values) - 1


Answer = Literal["reproduced", "refuted", "open", "modes", "young", "unmeasured"]


@dataclass(frozen=True)
class Verdict:
    """What the re-runs say. shift, error: of the new artifacts against the old, in scaled units.

    machine: by how much the old artifacts moved tonight. machine_moved: beyond their own noise.
    """

    answer: Answer
    shift: float = 0.0
    error: float = math.inf
    machine: float = 0.0
    machine_moved: bool = False


def run_scale(scale: float, *groups: Group) -> float:
    """The noise of one re-run: the baseline's, updated by the re-runs' own scatter."""
    parts = [group.scatter(scale) for group in groups]
    squares, freedom = sum(part[0] for part in parts), sum(part[1] for part in parts)
    return math.sqrt((PRIOR_RUNS * scale**2 + squares) / (PRIOR_RUNS + freedom))


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


def confirm(bench: Bench, suspect: Suspect, settings: Settings) -> Verdict:
    """Measure new and old artifacts in turn until the shift is reproduced, refuted or the limit reached."""
    size = abs(suspect.effect)
    assumed = min(size, max(settings.wanted, size / 2))
    new_builds = suspect.nights[suspect.cut :][::-1][:6]
    old_builds = _ordinary(suspect)
    new, old = Group(), Group()
    verdict = Verdict("unmeasured")
    for turn in range(settings.most_reruns):
        group, builds = (new, new_builds) if turn % 2 == 0 else (old, old_builds)
        value = bench.take_one_of(builds, turn // 2)
        if value is None:
            break
        group.values.append(value - suspect.median)
        shift, error, machine, scale = difference(new, old, suspect)
        toward = suspect.sign * shift
        moved = bool(old.values) and abs(machine) > max(3 * scale / math.sqrt(len(old.values)), 0.4 * size)
        verdict = Verdict("open", shift, error, machine, moved)
        if (toward * assumed - assumed**2 / 2) / error**2 < -GIVE_UP:
            return _as(verdict, "refuted")
        enough = len(new.values) >= LEAST_EACH and len(old.values) >= LEAST_EACH
        if enough and toward >= settings.reproduced * error and toward >= max(0.4 * assumed, settings.least_effect):
            return _beyond_modes(bench, suspect, settings, new, old, _as(verdict, "reproduced"))
    return verdict if old.values else _as(verdict, "unmeasured")


def _as(verdict: Verdict, answer: Answer) -> Verdict:
    return Verdict(answer, verdict.shift, verdict.error, verdict.machine, verdict.machine_moved)


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


def _beyond_modes(
    bench: Bench, suspect: Suspect, settings: Settings, new: Group, old: Group, verdict: Verdict
) -> Verdict:
    """The verdict after asking whether builds of the baseline that looked like tonight do so again.

    If they do, code layout or alignment has modes that stick to a build, and one slow build is no step,
    unless the new artifacts are beyond those as well.
    """
    size = abs(verdict.shift)
    places = suspect.baseline()[:-NEAR_CUT]
    residual = suspect.sign * (suspect.x[places] - suspect.median)
    alike = places[residual >= 0.6 * size]
    before = np.abs(suspect.reserve) >= max(0.6 * size, 2.2 * suspect.scale)
    known = len(places) + (0 if before.sum() > SEEN_BEFORE * len(before) else len(before))
    if _nights_shown(suspect, size) < YOUNG_LEAST and (known < YOUNG_NIGHTS or len(places) < NEW_LEVEL_NIGHTS):
        return _as(verdict, "young")
    if not len(alike):
        return verdict
    order = np.argsort(np.abs(residual[residual >= 0.6 * size] - size))
    builds = suspect.nights[alike[order[:6]]]
    first = [(suspect.sign * value, build) for build in builds if (value := bench.take(int(build))) is not None]
    slowest = [build for _, build in sorted(first, reverse=True)[:3]]
    groups = [Group() for _ in slowest]
    for turn in range(EACH_MODE * len(slowest)):
        value = bench.take(int(slowest[turn % len(slowest)]))
        if value is None:
            break
        groups[turn % len(slowest)].values.append(value - suspect.median)
    groups = [group for group in groups if group.values]
    if not groups:
        return verdict
    mode = max(groups, key=lambda group: suspect.sign * group.centre(suspect.scale))
    level = suspect.sign * (mode.centre(suspect.scale) - old.centre(suspect.scale))
    if level <= SAME_MODE * size:
        return verdict
    build = slowest[groups.index(mode)]
    return verdict if _is_beyond(bench, suspect, settings, (new, mode), int(build)) else _as(verdict, "modes")


def _nights_shown(suspect: Suspect, size: float) -> int:
    """On how many nights in a row, tonight the last, a shift of this size was there; all since the cut at least."""
    is_shifted = suspect.sign * (suspect.x - suspect.median) >= 0.5 * size
    unshifted = (~is_shifted).nonzero()[0]
    return max(len(suspect.x) - suspect.cut, len(suspect.x) - 1 - int(unshifted[-1]) if len(unshifted) else 0)


def _is_beyond(bench: Bench, suspect: Suspect, settings: Settings, pair: tuple[Group, Group], build: int) -> bool:
    """Whether tonight's artifact differs from the baseline's build of the other mode, measured in turn."""
    new, mode = pair
    for turn in range(2 * MOST_BEYOND):
        beyond = suspect.sign * (new.centre(suspect.scale) - mode.centre(suspect.scale))
        error = run_scale(suspect.scale, new, mode) * math.sqrt(1 / len(new.values) + 1 / len(mode.values))
        if beyond >= max(settings.reproduced * error, settings.least_effect):
            return True
        if beyond < max(error, settings.least_effect / 2):
            return False
        group, night = (mode, build) if turn % 2 == 0 else (new, int(suspect.nights[-1]))
        value = bench.take(night)
        if value is None:
            return False
        group.values.append(value - suspect.median)
    return False
