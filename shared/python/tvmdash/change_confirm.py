"""Whether re-runs reproduce a suspected shift, and whether it is more than builds differ by luck.

Old and new artifacts are measured in turn until the shift is there or not. One that is there is held against what
builds differ by without any change (change_luck): the baseline's oddest builds are measured again, and the fewer new
builds there are, the further they must be beyond those.

Sources: Wald 1945 (sequential test), Kalibera & Jones 2013, Mytkowicz et al. 2009 (luck of a build).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np

from tvmdash.change_luck import Luck
from tvmdash.change_rerun import Bench, Group, Suspect, Trial, Verdict, run_scale
from tvmdash.change_series import Settings

GIVE_UP = 1.6
"""Log likelihood ratio against the step at which re-measuring ends."""
LEAST_EACH = 4
NEAR_CUT = 4
"""The last nights before a suspected cut may already be of the new level."""
YOUNG_NIGHTS = 20
"""The middle of a level of fewer nights may itself be that of a mode."""
SAME_MODE = 0.5
"""A baseline build that reproduces this share of the effect shows that builds have modes."""
EACH_MODE = 3
MOST_BEYOND = 12
LEAST_ODD, MOST_ODD = 1.2, 4.0
"""Builds so many spreads off tell how much of that is luck; what is further off is a spike of its night."""
ENOUGH_ODD, MOST_ODD_BUILDS = 15.0, 10
"""Odd builds are measured again until so much is known of luck (change_luck.Luck.odd)."""
ALONE = 1.35
"""One build alone must be so much further off where builds are known to differ by luck: luck has heavy tails."""
FEW_BUILDS = 6
LEAST_EXTREMES, MOST_EXTREMES = 4, 6
BEYOND_EXTREMES = 16.0
"""By so many of the differences between the oddest builds must one build be beyond them; each further one halves it."""
SOME_LUCK = 0.3


def confirm(bench: Bench, suspect: Suspect, settings: Settings) -> Verdict:
    """Measure new and old artifacts in turn until the shift is reproduced, refuted or the limit reached."""
    size = abs(suspect.effect)
    assumed = min(size, max(settings.wanted, size / 2))
    trial = Trial(bench, suspect)
    verdict = Verdict("unmeasured")
    while trial.turn < settings.most_reruns and trial.goes_on():
        verdict = trial.verdict("open")
        toward = suspect.sign * verdict.shift
        if (toward * assumed - assumed**2 / 2) / verdict.error**2 < -GIVE_UP:
            return replace(verdict, answer="refuted", luck=_with_tonight(trial, suspect.luck))
        enough = len(trial.new.values) >= LEAST_EACH and len(trial.old.values) >= LEAST_EACH
        least = max(settings.reproduced * verdict.error, 0.4 * assumed, settings.least_effect)
        if enough and toward >= least:
            return _beyond_luck(trial, settings)
    return verdict if trial.old.values else replace(verdict, answer="unmeasured")


def _with_tonight(trial: Trial, luck: Luck) -> Luck:
    """What is known of luck after tonight's build, odd at first, was measured again."""
    suspect = trial.suspect
    return luck.seen(suspect.effect, trial.shift) if suspect.cut == len(suspect.x) - 1 else luck


def _beyond_luck(trial: Trial, settings: Settings) -> Verdict:
    """The verdict on a reproduced shift after asking whether builds differ by as much without any change."""
    suspect, odd = trial.suspect, OddBuilds(trial, trial.suspect.luck)
    young = suspect.cut - suspect.start < YOUNG_NIGHTS
    if (young and odd.luck.explains(trial.shift)) or odd.show_modes(settings):
        return trial.verdict("modes", odd.luck)
    while odd.luck.odd < ENOUGH_ODD and odd.goes_on():
        pass
    while True:
        verdict, toward = trial.verdict("reproduced", odd.luck), suspect.sign * trial.shift
        by_runs = settings.reproduced * trial.verdict("open").error
        by_luck = odd.needed(settings) * trial.luck_error(odd.luck)
        if toward >= min(math.hypot(by_luck, by_runs), odd.extreme() + by_runs):
            return verdict
        if odd.goes_on():
            continue
        in_reach = toward >= 1.05 * min(by_luck, odd.extreme()) and trial.turn < settings.most_reruns
        if not in_reach or not trial.goes_on():
            return replace(verdict, answer="young", luck=_with_tonight(trial, odd.luck))


@dataclass
class OddBuilds:
    """Builds of the baseline that looked odd, measured again: what comes out again is luck of the build."""

    trial: Trial
    luck: Luck
    _left: list[int] | None = None
    _came: list[float] = field(default_factory=list)

    def show_modes(self, settings: Settings) -> bool:
        """Whether builds that looked like tonight do so again, and tonight is not beyond them.

        If they do, code layout or alignment has modes that stick to a build, and one slow build is no step.
        """
        suspect, bench = self.trial.suspect, self.trial.bench
        size = abs(self.trial.shift)
        places = suspect.baseline()[:-NEAR_CUT]
        residual = suspect.sign * (suspect.x[places] - suspect.median)
        alike = places[residual >= 0.6 * size]
        order = np.argsort(np.abs(residual[residual >= 0.6 * size] - size))
        values = ((place, self._again(int(place))) for place in alike[order[:6]])
        first = [(suspect.sign * value, int(place)) for place, value in values if value is not None]
        slowest = [int(suspect.nights[place]) for _, place in sorted(first, reverse=True)[:3]]
        groups = [Group() for _ in slowest]
        for turn in range(EACH_MODE * len(slowest)):
            value = bench.take(slowest[turn % len(slowest)])
            if value is None:
                break
            groups[turn % len(slowest)].values.append(value - suspect.median)
        found = [(suspect.sign * group.centre(suspect.scale), at) for at, group in enumerate(groups) if group.values]
        if not found or max(found)[0] - suspect.sign * self.trial.old.centre(suspect.scale) <= SAME_MODE * size:
            return False
        at = max(found)[1]
        return not _is_beyond(bench, suspect, settings, (self.trial.new, groups[at]), slowest[at])

    def goes_on(self) -> bool:
        """Measure one more of the baseline's odd builds; False where none is left."""
        if self._left is None:
            self._left = self._oddest()
        return any(self._again(self._left.pop(0)) is not None for _ in list(self._left))

    def needed(self, settings: Settings) -> float:
        """How many errors of luck a shift must reach: one build alone as many as a night alone, and more where luck is.

        Where each night has another build, each tries its luck; few try it twice, and few builds seldom.
        """
        if self.trial.new_builds > 1 or self.luck.builds < FEW_BUILDS:
            return settings.reproduced
        return settings.threshold * (ALONE if self.luck.is_proven else 1.0)

    def extreme(self) -> float:
        """How far off, towards tonight's shift, a build is hardly ever: from how far the oddest ones came out again.

        Those of one mode come out alike, and nothing is beyond them; without modes they differ, and one may be further
        off by several times as much as they do, several in a row by less. A build alone is not told from the luck of
        others at all where the oddest came out much as it does. Infinite where too few were measured.
        """
        if len(self._came) < LEAST_EXTREMES:
            return math.inf
        top = np.sort(self._came)[-MOST_EXTREMES:]
        squares, freedom = self.trial.new.scatter(self.trial.suspect.scale)
        apart = math.sqrt(max(0.0, float(np.var(top, ddof=1)) - squares / max(1, freedom)))
        level, builds = max(0.0, float(np.mean(top))), self.trial.new_builds
        if builds == 1 and level > SOME_LUCK * abs(self.trial.shift):
            return math.inf
        return level + math.ldexp(BEYOND_EXTREMES, 1 - builds) * apart

    def _oddest(self) -> list[int]:
        """Positions of the oddest builds of the baseline, but for what no luck explains; on either side in turn."""
        suspect = self.trial.suspect
        places = suspect.baseline()[:-NEAR_CUT]
        away = (suspect.x[places] - suspect.median) / suspect.luck.spread
        sides = [
            places[(away * side >= LEAST_ODD) & (away * side <= MOST_ODD)] for side in (suspect.sign, -suspect.sign)
        ]
        ranked = [sorted(side.tolist(), key=lambda place: -abs(suspect.x[place] - suspect.median)) for side in sides]
        paired = [place for pair in itertools.zip_longest(*ranked) for place in pair if place is not None]
        return paired[:MOST_ODD_BUILDS]

    def _again(self, place: int) -> float | None:
        """One more value of the build at a position, from the baseline; what it says of luck is kept."""
        suspect = self.trial.suspect
        value = self.trial.bench.take(int(suspect.nights[place]))
        if value is None:
            return None
        now = value - suspect.median - self.trial.old.centre(suspect.scale)
        before = float(suspect.x[place] - suspect.median)
        self.luck = self.luck.seen(before, now)
        if before * suspect.sign >= LEAST_ODD * suspect.luck.spread:
            self._came.append(suspect.sign * now)
        return value


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
