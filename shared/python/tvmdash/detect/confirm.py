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

from tvmdash.detect.levels import BACK, EPISODE_NIGHTS, LEAST_BEFORE
from tvmdash.detect.luck import Build, Luck
from tvmdash.detect.rerun import Bench, Group, Suspect, Trial, Verdict, run_scale
from tvmdash.detect.series import Settings

GIVE_UP = 1.6
"""Log likelihood ratio against the step at which re-measuring ends."""
LEAST_EACH = 4
NEAR_CUT = 4
"""The last nights before a suspected cut may already be of the new level."""
YOUNG_NIGHTS = 20
"""The middle of a level of fewer nights may itself be that of a mode."""
LEAST_ALIKE, SAME_MODE = 0.6, 0.5
"""A build that was off by the first share of the effect, and reproduces the second, shows that builds have modes."""
EACH_MODE = 3
MOST_ALIKE = 6
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
ENOUGH_KNOWN, FEW_NEW = 45, 4
"""Where fewer builds are known, modes may not have been seen yet: a few new builds may be in one."""
BEYOND_MODES = 6.5
"""Modes are hardly ever so many spreads away."""


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
            return replace(verdict, answer="refuted", luck=_add_tonight(trial, suspect.luck))
        enough = len(trial.new.values) >= LEAST_EACH and len(trial.old.values) >= LEAST_EACH
        least = max(trial.reached(settings.reproduced), 0.4 * assumed, settings.least_effect)
        if enough and toward >= least:
            return _judge_beyond_luck(trial, settings)
    return verdict if trial.old.values else replace(verdict, answer="unmeasured")


def _add_tonight(trial: Trial, luck: Luck) -> Luck:
    """What is known of luck after tonight's build, odd at first, was measured again."""
    suspect = trial.suspect
    return luck.seen(suspect.effect, trial.shift) if suspect.cut == len(suspect.x) - 1 else luck


def _judge_beyond_luck(trial: Trial, settings: Settings) -> Verdict:
    """The verdict on a reproduced shift after asking whether builds differ by as much without any change."""
    suspect, odd = trial.suspect, OddBuilds(trial, trial.suspect.luck)
    young = suspect.cut - suspect.start < YOUNG_NIGHTS
    if (young and odd.luck.explains(trial.shift)) or _may_return(trial) or odd.show_modes(settings):
        return trial.verdict("modes", odd.luck)
    while odd.luck.odd < ENOUGH_ODD and odd.goes_on():
        pass
    while True:
        verdict = trial.verdict("reproduced", odd.luck)
        toward = trial.held_shift if odd.luck.is_proven else suspect.sign * trial.shift
        by_runs = trial.reached(settings.reproduced)
        by_luck = odd.needed(settings) * trial.luck_error(odd.luck)
        if toward >= max(_find_beyond_unseen(trial), min(math.hypot(by_luck, by_runs), odd.extreme() + by_runs)):
            return verdict
        if odd.goes_on():
            continue
        in_reach = toward >= 1.05 * min(by_luck, odd.extreme()) and trial.turn < settings.most_reruns
        if not in_reach or not trial.goes_on():
            return replace(verdict, answer="young", luck=_add_tonight(trial, odd.luck))


def _may_return(trial: Trial) -> bool:
    """Whether a level of a few nights ends where the one before was, no further than modes may be away."""
    suspect = trial.suspect
    levels = [build.level for build in suspect.earlier]
    if suspect.cut - suspect.start > EPISODE_NIGHTS or not levels or levels.count(levels[-1]) < LEAST_BEFORE:
        return False
    back = suspect.median + trial.shift - levels[-1]
    near = abs(back) < BACK * abs(trial.shift)
    return near and abs(trial.shift) < BEYOND_MODES * suspect.luck.spread


def _find_beyond_unseen(trial: Trial) -> float:
    """How far off a few new builds must be where the series is too young to have shown its modes."""
    luck = trial.suspect.luck
    is_open = luck.builds < ENOUGH_KNOWN and trial.new_builds <= FEW_NEW
    return BEYOND_MODES * luck.spread if is_open else 0.0


@dataclass
class OddBuilds:
    """Builds of the baseline that looked odd, measured again: what comes out again is luck of the build."""

    trial: Trial
    luck: Luck
    _left: list[int] | None = None
    _came: list[float] = field(default_factory=list)
    _levels: dict[float, float] = field(default_factory=dict)

    def show_modes(self, settings: Settings) -> bool:
        """Whether builds that looked like tonight do so again, and tonight is not beyond them.

        If they do, code layout or alignment has modes that stick to a build, and one slow build is no step.
        """
        values = ((build, self._measure_again(build)) for build in self._list_alike()[:MOST_ALIKE])
        first = [(build.side * away, build) for build, away in values if away is not None]
        oddest = [build for _, build in sorted(first, key=lambda pair: -pair[0])[:3]]
        groups = self._group_in_turn(oddest)
        matches = [
            (build.side * group.centre(self.trial.suspect.scale), at)
            for at, (build, group) in enumerate(zip(oddest, groups, strict=True))
            if group.values
        ]
        if not matches or max(matches)[0] <= SAME_MODE * abs(self.trial.shift):
            return False
        at = max(matches)[1]
        return not _is_beyond(self.trial, settings, groups[at], oddest[at], self._find_level(oddest[at]))

    def _group_in_turn(self, builds: list[Build]) -> list[Group]:
        """Some more values of each build, measured in turn, relative to its level."""
        groups = [Group() for _ in builds]
        for turn in range(EACH_MODE * len(builds)):
            at = turn % len(builds)
            value = self.trial.bench.take(builds[at].night)
            if value is None:
                break
            groups[at].values.append(value - self._find_level(builds[at]))
        return groups

    def _find_level(self, build: Build) -> float:
        """Where the level of a build is tonight, by old builds measured again: the machine may have moved since."""
        suspect = self.trial.suspect
        if build.level == suspect.median:
            return suspect.median + self.trial.old.centre(suspect.scale)
        if build.level not in self._levels:
            same = sorted((abs(other.away), other.night) for other in suspect.earlier if other.level == build.level)
            values = [self.trial.bench.take(night) for _, night in same[:EACH_MODE]]
            known = [value for value in values if value is not None]
            self._levels[build.level] = float(np.median(known)) if known else build.level
        return self._levels[build.level]

    def _list_alike(self) -> list[Build]:
        """Builds of this level and of those before that looked as far off as tonight, the most alike first.

        A young level may itself have begun in a mode: then builds as far off on the other side count as well.
        """
        suspect, size = self.trial.suspect, abs(self.trial.shift)
        either = suspect.cut - suspect.start < YOUNG_NIGHTS
        known = [*(suspect.build(int(index)) for index in suspect.baseline()[:-NEAR_CUT]), *suspect.earlier]
        alike = [
            build for build in known if abs(build.away) >= LEAST_ALIKE * size and (either or build.side == suspect.sign)
        ]
        return sorted(alike, key=lambda build: abs(abs(build.away) - size))

    def goes_on(self) -> bool:
        """Measure one more of the baseline's odd builds; False where none is left."""
        if self._left is None:
            self._left = self._find_oddest()
        builds = (self.trial.suspect.build(self._left.pop(0)) for _ in list(self._left))
        return any(self._measure_again(build) is not None for build in builds)

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
        if builds == 1 and (self.luck.builds < ENOUGH_KNOWN or top[-1] > SOME_LUCK * abs(self.trial.shift)):
            return math.inf
        return level + math.ldexp(BEYOND_EXTREMES, 1 - builds) * apart

    def _find_oddest(self) -> list[int]:
        """Positions of the oddest builds of the baseline, but for what no luck explains; on either side in turn."""
        suspect = self.trial.suspect
        places = suspect.baseline()[:-NEAR_CUT]
        away = (suspect.x[places] - suspect.median) / suspect.luck.spread
        sides = [
            places[(away * side >= LEAST_ODD) & (away * side <= MOST_ODD)] for side in (suspect.sign, -suspect.sign)
        ]
        ranked = [sorted(side.tolist(), key=lambda index: -abs(suspect.x[index] - suspect.median)) for side in sides]
        paired = [index for pair in itertools.zip_longest(*ranked) for index in pair if index is not None]
        return paired[:MOST_ODD_BUILDS]

    def _measure_again(self, build: Build) -> float | None:
        """How far off its level one more value of a build is tonight; what that says of luck is kept."""
        suspect = self.trial.suspect
        value = self.trial.bench.take(build.night)
        if value is None:
            return None
        now = value - self._find_level(build)
        self.luck = self.luck.seen(build.away, now)
        if build.away * suspect.sign >= LEAST_ODD * suspect.luck.spread:
            self._came.append(suspect.sign * now)
        return now


def _is_beyond(trial: Trial, settings: Settings, mode: Group, build: Build, level: float) -> bool:
    """Whether tonight's artifact is further off than a known build of another mode, measured in turn."""
    bench, suspect, new = trial.bench, trial.suspect, trial.new
    machine = trial.old.centre(suspect.scale)
    for turn in range(2 * MOST_BEYOND):
        reached = suspect.sign * (new.centre(suspect.scale) - machine)
        beyond = reached - build.side * mode.centre(suspect.scale)
        error = run_scale(suspect.scale, new, mode) * math.sqrt(1 / len(new.values) + 1 / len(mode.values))
        if beyond >= max(settings.reproduced * error, settings.least_effect):
            return True
        if beyond < max(error, settings.least_effect / 2):
            return False
        group, night, base = (
            (mode, build.night, level) if turn % 2 == 0 else (new, int(suspect.nights[-1]), suspect.median)
        )
        value = bench.take(night)
        if value is None:
            return False
        group.values.append(value - base)
    return False
