"""A suspected shift, measured again: builds since it and builds before it in turn, until the odds decide.

A re-run of an older artifact tonight sees tonight's machine; a re-run of tonight's artifact sees it too. So the
difference between artifacts, both measured tonight, is the compiler's, and what they share is the machine's. But
whoever measures the same builds again finds the same luck of code layout again: a difference between builds has an
error of its own, which only more builds make smaller. What nights with different builds scatter is the most that luck
can be. Measuring some of the oddest builds again tells its part: luck comes out again, and the rest does not.

Sources: Wald 1945 (sequential test), Kalibera & Jones 2013 (levels of repetition), Mytkowicz et al. 2009 (layout).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from tvmdash.judge import RULES
from tvmdash.judge.history.levels import Build, list_earlier_builds
from tvmdash.judge.history.noise import CLIP, MAD_TO_SD, FloatArray, IntArray, vif
from tvmdash.judge.history.scan import Candidate
from tvmdash.judge.history.series import KEPT_NIGHTS, Measured, Rerun, Scaled, SeriesState, Settings
from tvmdash.judge.model import find_freedom, log_factor

NIGHT_SHARE = 0.7
"""The machine's part of a night's noise, as a share of the whole, before the re-runs say otherwise."""
PRIOR_RUNS = 3.0
"""Measurements that the baseline's noise counts for when the re-runs' own noise is estimated."""
ENOUGH_FREEDOM = 4
GIVE_UP = 1.6
"""Log likelihood ratio against the step at which re-measuring ends."""
LEAST_EACH = 4
MOST_BUILDS = 6
"""Builds of either side that take turns."""
NEAR_CUT = 4
"""The last nights before a suspected cut may already be of the new level."""
LEAST_ODD, MOST_ODD = 1.2, 4.0
"""Builds so many spreads off tell how much of that is luck; what is further off is a spike of its night."""
MOST_ODD_BUILDS, PRIOR_ODD, ENOUGH_ODD = 10, 2.0, 24.0
"""At most MOST_ODD_BUILDS of them are measured again, until the squares of their oddness sum to ENOUGH_ODD; that all of
the scatter is luck is believed beforehand as if PRIOR_ODD had been seen.
"""
ENOUGH_KNOWN, PROVEN = 45, 0.5
"""Builds that suffice to show their modes; from the share PROVEN of the scatter on they are known to differ by luck."""
ALIKE, SAME_MODE, MOST_ALIKE = (0.6, 1.6), 0.75, 4
"""A build that was off by such a share of the shift, and still is by so much of it, shows that builds have modes."""
LEAST_SPREAD = 0.6
"""Luck is judged by the nights on the side of the shift: modes are on one side. At least this share of the scale."""
MOST_LOCATING, SURE = 24, 0.95
"""Runs that look for the culprit at most, and the probability of one night that ends the search."""


@dataclass
class Bench:
    """Re-runs of one series on one night: a limit, and a list of everything measured."""

    rerun: Rerun
    unit: float | None
    limit: int
    measured: list[Measured] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)

    def take_one_of(self, nights: IntArray, turn: int) -> tuple[int, float] | None:
        """Take one more value of the artifact whose turn it is, or of the next that can be measured; also its night."""
        for later in range(len(nights)):
            night = int(nights[(turn + later) % len(nights)])
            value = self.take(night)
            if value is not None:
                return night, value
        return None

    def take(self, night: int) -> float | None:
        """Take one more value of that night's artifact, scaled; None when there is no more to be had."""
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


@dataclass
class Group:
    """Re-measured values of the builds of one side, relative to the level before; and by the night of each build."""

    values: list[float] = field(default_factory=list)
    builds: dict[int, list[float]] = field(default_factory=dict)

    def centre(self, scale: float) -> float:
        """Their mean with outliers held; of two that disagree the one nearer to the level before."""
        values = np.array(self.values)
        if len(values) == 2 and abs(values[0] - values[1]) > 4 * scale:
            return float(values[np.argmin(np.abs(values))])
        middle, held = float(np.median(values)), 2 * self._width(scale)
        return float(np.mean(np.clip(values, middle - held, middle + held)))

    def _width(self, scale: float) -> float:
        """Return the width at which outliers are held: the baseline's noise, or tonight's where clearly greater."""
        if len(self.values) < LEAST_EACH:
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
    """The outcome of the re-runs. shift, error: of the new artifacts against the old, in scaled units.

    machine: by how much the old artifacts moved tonight. machine_moved: beyond their own noise. again: how far from
    the old level each new night's build came out.
    """

    answer: Answer
    shift: float = 0.0
    error: float = math.inf
    machine: float = 0.0
    machine_moved: bool = False
    again: Mapping[int, float] = field(default_factory=dict)


class Luck(NamedTuple):
    """The standard deviation between builds without any change, and whether they are known to differ."""

    deviation: float
    is_proven: bool


class Trial:
    """Builds since a suspected cut and ordinary ones before it, measured in turn, and what that says so far."""

    def __init__(self, bench: Bench, candidate: Candidate, series: Scaled, state: SeriesState) -> None:
        self.bench, self.candidate, self.earlier = bench, candidate, list_earlier_builds(series, state)
        self.x, self.nights = series.x[: candidate.seen + 1], series.nights[: candidate.seen + 1]
        self.sign = math.copysign(1.0, candidate.effect)
        self.scale = candidate.recent_scale
        self.per_percent = 1.0 if series.unit is None else 0.01
        """Scatter of a series that is not positive counts as percents do: its odds need a size."""
        self.new, self.old, self.turn = Group(), Group(), 0
        before = np.arange(max(candidate.start, candidate.cut - KEPT_NIGHTS), candidate.cut)
        self.before = before[:-NEAR_CUT]
        self._builds = (self.nights[candidate.cut :][::-1][:MOST_BUILDS], self._list_ordinary(before))

    def _list_ordinary(self, places: IntArray) -> IntArray:
        """Some nights of the baseline whose values were near its median, newest first."""
        # Where the cut is wrong, the last nights before it are of the new level.
        places = places[: -8 if len(places) > 20 else -3] if len(places) > 9 else places
        away = np.abs(self.x[places[-30:]] - self.candidate.median)
        near = places[-30:][away <= np.median(away)]
        return np.asarray(self.nights[near[::-1][:MOST_BUILDS]])

    def goes_on(self) -> bool:
        """Measure one more; False where there is no more to be had."""
        side = self.turn % 2
        taken = self.bench.take_one_of(self._builds[side], self.turn // 2)
        if taken is None:
            return False
        group = (self.new, self.old)[side]
        group.values.append(taken[1] - self.candidate.median)
        group.builds.setdefault(taken[0], []).append(group.values[-1])
        self.turn += 1
        return True

    @property
    def run_scale(self) -> float:
        """The noise of one re-run: the baseline's, updated by the re-runs' own scatter."""
        parts = [group.scatter(self.scale) for group in (self.new, self.old)]
        squares, freedom = sum(part[0] for part in parts), sum(part[1] for part in parts)
        pooled = (PRIOR_RUNS * self.scale**2 + squares) / (PRIOR_RUNS + freedom)
        return math.sqrt(max(pooled, squares / freedom if freedom >= ENOUGH_FREEDOM else 0.0))

    def verdict(self, answer: Answer, luck: float = 0.0) -> Verdict:
        """Return the verdict so far; `luck`: the standard deviation of one build, which is in the error then.

        The machine's part is estimated from the old artifacts and shrunk towards none while few have been measured,
        unless they are clearly off: then it is taken whole.
        """
        scale, night, count = self.run_scale, NIGHT_SHARE * self.scale, len(self.old.values)
        machine = self.old.centre(self.scale) if count else 0.0
        weight = count / (count + (scale / night) ** 2)
        if count and abs(machine) > 2.5 * scale / math.sqrt(count):
            weight = 1.0
        # The variance of a median is 1.6 times that of a mean.
        anchor = 1.6 * self.scale**2 / max(6, self.candidate.cut - self.candidate.start)
        variance = scale**2 / max(1, len(self.new.values)) + (1 - weight) ** 2 * (night**2 + anchor)
        variance += weight**2 * scale**2 / count if count else 0.0
        common = weight * machine
        shift = self.new.centre(self.scale) - common
        moved = max(3 * scale / math.sqrt(max(1, count)), 0.4 * abs(self.candidate.effect))
        again = {night: float(np.median(values)) - common for night, values in self.new.builds.items()}
        error = math.hypot(math.sqrt(variance), self.by_luck(luck))
        return Verdict(answer, shift, error, machine, bool(count) and abs(machine) > moved, again)

    @property
    def _counts(self) -> tuple[int, int]:
        """Number of builds of either side that were measured again, at least 1."""
        return max(1, len(self.new.builds)), max(1, len(self.old.builds))

    def by_luck(self, luck: float) -> float:
        """The error that stays however often these builds are measured again."""
        new, old = self._counts
        return luck * math.sqrt(float(vif(np.asarray(self.candidate.phi), new)) / new + 1 / old)

    def measure_luck(self) -> Luck:
        """Estimate how much builds differ without any change, by the baseline's oddest, measured again."""
        score = self.candidate.score[-self.candidate.size :]
        toward = np.maximum(0.0, self.sign * score)
        spread = self.candidate.scale * max(LEAST_SPREAD, math.sqrt(2 * float(np.mean(toward**2))))
        machine = self.old.centre(self.scale) if self.old.values else 0.0
        seen, again = PRIOR_ODD, PRIOR_ODD
        for index in self._list_odd(spread):
            value = self.bench.take(int(self.nights[index])) if seen < ENOUGH_ODD else None
            if value is not None:
                was, now = ((each - self.candidate.median) / spread for each in (self.x[index], value - machine))
                seen, again = seen + min(was**2, 9.0), again + was * max(-3.0, min(3.0, now))
        share = min(1.0, max(0.0, again / seen))
        guess = (RULES.code_luck**2 + RULES.library_luck**2) / self.per_percent**2
        known, builds = RULES.luck_freedom, len(self.before)
        deviation = math.sqrt((known * guess + builds * share * spread**2) / (known + builds))
        return Luck(deviation, is_proven=share >= PROVEN)

    def has_precedent(self, shift: float) -> bool:
        """Return True where a build of this level, or of an earlier one, is as far off again: modes stick to it.

        Asked of the builds that looked most like it, then of the one among them that does so again.
        """
        median = self.candidate.median
        own = [Build(int(self.nights[at]), float(self.x[at]) - median, median) for at in self.before]
        alike = [build for build in (*own, *self.earlier) if ALIKE[0] <= build.away / shift <= ALIKE[1]]
        nearest = sorted(alike, key=lambda build: abs(build.away - shift))[:MOST_ALIKE]
        first = {build: self._measure_away(build) * self.sign for build in nearest}
        furthest = max(first, key=first.__getitem__, default=None)
        if furthest is None or first[furthest] < SAME_MODE * abs(shift):
            return False
        # The furthest of several is so by chance in part, so it is measured twice more.
        again = [first[furthest], *(self._measure_away(furthest) * self.sign for _ in range(2))]
        return float(np.mean(again)) >= SAME_MODE * abs(shift)

    def _measure_away(self, build: Build) -> float:
        """Measure once more how far off its level a build is tonight; 0 where no value is to be had."""
        value = self.bench.take(build.night)
        machine = self.old.centre(self.scale) if self.old.values else 0.0
        return 0.0 if value is None else value - build.level - machine

    def _list_odd(self, spread: float) -> list[int]:
        """Positions of the oddest builds of the baseline, but for what no luck explains."""
        away = np.abs(self.x[self.before] - self.candidate.median) / spread
        odd = self.before[(away >= LEAST_ODD) & (away <= MOST_ODD)]
        return sorted(odd.tolist(), key=lambda index: -abs(self.x[index] - self.candidate.median))[:MOST_ODD_BUILDS]

    def is_told(self, shift: float, error: float, luck: Luck) -> bool:
        """Return True where the odds for a step are those from which the judge tells one.

        That there are many points, of which one may be lucky, is paid for by the history that suspects this one: but
        not where few builds are known, nor by one build where builds are known to differ, as each night tries its luck.
        """
        is_tried = len(self.before) < ENOUGH_KNOWN or (luck.is_proven and self._counts[0] == 1)
        prior = RULES.log("steps_a_night") - (RULES.log("fewest_points") if is_tried else 0.0)
        size, parts = self.per_percent, sum(count**-3 for count in self._counts)
        freedom = find_freedom(RULES.kurtosis_of_luck * (luck.deviation / error) ** 4 * parts)
        odds = log_factor(shift * size, error * size, RULES.slabs, freedom=freedom)
        return odds + prior >= RULES.log("told")


def confirm(
    bench: Bench, candidate: Candidate, series: Scaled, state: SeriesState, settings: Settings
) -> tuple[Verdict, int]:
    """Measure until the shift is reproduced, refuted or open at the limit; also return where it begins."""
    size = abs(candidate.effect)
    assumed = min(size, max(settings.wanted, size / 2))
    trial = Trial(bench, candidate, series, state)
    verdict = Verdict("unmeasured")
    while trial.turn < settings.most_reruns and trial.goes_on():
        verdict = trial.verdict("open")
        toward = trial.sign * verdict.shift
        if (toward * assumed - assumed**2 / 2) / verdict.error**2 < -GIVE_UP:
            return replace(verdict, answer="refuted"), candidate.cut
        enough = len(trial.new.values) >= LEAST_EACH and len(trial.old.values) >= LEAST_EACH
        if enough and toward >= max(settings.reproduced * verdict.error, 0.4 * assumed, settings.least_effect):
            verdict = _weigh_luck(trial, settings)
            cut = _locate(trial, verdict) if verdict.answer == "reproduced" else candidate.cut
            return verdict, cut
    return verdict if trial.old.values else replace(verdict, answer="unmeasured"), candidate.cut


def _weigh_luck(trial: Trial, settings: Settings) -> Verdict:
    """The verdict on a shift that came out again, after asking whether builds differ by as much without any change."""
    if trial.has_precedent(trial.verdict("modes").shift):
        return trial.verdict("modes")
    luck = trial.measure_luck()
    while True:
        verdict = trial.verdict("reproduced", luck.deviation)
        if trial.is_told(verdict.shift, verdict.error, luck):
            return verdict
        more = trial.turn < settings.most_reruns and trial.is_told(verdict.shift, trial.by_luck(luck.deviation), luck)
        if not more or not trial.goes_on():
            return replace(verdict, answer="young")


def _locate(trial: Trial, verdict: Verdict, reach: int = 8) -> int:
    """The position of the culprit: bisection by re-measuring the nights around the suspected cut.

    Each night near the cut is more likely old or new by its recorded value and by its re-runs; the cut is where the
    two halves fit best. While another cut is still believable, the artifact between is measured once more.
    """
    cut, median, shift = trial.candidate.cut, trial.candidate.median, verdict.shift
    places = np.arange(min(max(trial.candidate.start + 3, cut - reach), cut), len(trial.x))
    noise = max(trial.scale, 1e-12)
    recorded = (trial.x[places] - median - shift / 2) * shift / (noise**2 * (1 + NIGHT_SHARE**2))
    support = np.clip(recorded, -CLIP, CLIP)
    for _ in range(MOST_LOCATING):
        belief = _find_belief(support)
        if belief.max() >= SURE:
            break
        between = int(np.sort(np.argsort(belief)[-2:]).sum() - 1) // 2
        value = trial.bench.take(int(trial.nights[places[between]]))
        if value is None:
            break
        away = value - median - verdict.machine
        support[between] += np.clip((away - shift / 2) * shift / noise**2, -CLIP, CLIP)
    return int(places[np.argmax(_find_belief(support))])


def _find_belief(support: FloatArray) -> FloatArray:
    """The probability of each place being the first of the new level, all equally likely beforehand."""
    weight = np.cumsum(support[::-1])[::-1]
    belief = np.exp(weight - weight.max())
    return np.asarray(belief / belief.sum())


def replay(measured: Sequence[Measured]) -> Rerun:
    """A `Rerun` that gives back, in their order, the values of an earlier decision: to explain it again."""
    left = list(measured)

    def rerun(night: int, count: int) -> list[float]:
        values: list[float] = []
        while left and left[0].night == night and len(values) < count:
            values.append(left.pop(0).value)
        return values

    return rerun
