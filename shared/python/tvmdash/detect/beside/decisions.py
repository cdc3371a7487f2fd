"""What the ratios of an experiment say tonight: which series are told, which are suspects, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tvmdash.detect.beside.contrasts import NIGHT_VARIANCE, Contrast, contrasts_of
from tvmdash.detect.beside.luck import LUCK_PRIOR, NOWHERE, Elsewhere, Learned, find_kin, luck_of_kin
from tvmdash.detect.beside.rarity import normal, points, whole_freedom
from tvmdash.detect.beside.restless import Jump, Precedent, precedent_of
from tvmdash.stats.spread import Spread, add, pool
from tvmdash.stats.student import two_sided

TELL_P = 2e-5
"""So rarely an unchanged series may be told on a night: two-sided, 4.3 standard errors where they are known."""
TELL_AGAIN_P = 1e-4
"""The same where the two builds were measured again in turn: then there are pairs enough for odd ones not to matter."""
SUSPECT_P = 0.05
"""The same for a suspicion, over all series of the night."""
MOST_LUCK_FREEDOM = 16.0
"""Luck has a heavier tail than a normal distribution, however often it was seen."""
LEAST_EFFECT, LEAST_OF_ONE_BUILD = 0.01, 0.02
"""Smaller steps are not told; of one build alone, whose luck nobody knows, not those smaller than the second."""
WORTH_MEASURING, CLEARLY_NOTHING = 2.0, 1.5
"""Standard errors from which on two builds are measured again, and below which that is at an end."""


@dataclass(frozen=True)
class RatioEvidence:
    """All that a decision rests on.

    pair: the scatter of one pair of processes; jumps, kin: how builds differ, going by the series' own nights and by
    its kin. series: how many are judged that night; precedent: what the series does without reason.
    pairs_again: how many pairs measured tonight's build in turn with an earlier one again; the contrasts are with them.
    """

    contrasts: tuple[Contrast, ...]
    pair: Spread
    jumps: Spread
    kin: Spread
    series: int
    precedent: Precedent
    pairs_again: int = 0

    def luck(self, contrast: Contrast) -> Spread:
        """How builds differ, with those on either side of the contrast."""
        own = contrast.own_luck(self.pair).above_zero()
        return pool([own, self.jumps.above_zero(), self.kin]).limited(MOST_LUCK_FREEDOM)

    def error(self, contrast: Contrast) -> Spread:
        """The error of the contrast's shift."""
        parts = ((contrast.pairs, self.pair), (contrast.luck, self.luck(contrast)))
        return add(*parts, (contrast.nights, Spread(NIGHT_VARIANCE)))

    def rarity(self, contrast: Contrast) -> float:
        """How often such a shift would come without a step."""
        error = self.error(contrast)
        return two_sided(contrast.shift / error.sd, whole_freedom(error.freedom)) if error.sd else 0.0


@dataclass(frozen=True)
class RatioDecision:
    """What the ratios say of a series tonight. effect, low, high: a fraction, with its 95 % interval.

    z: as many standard errors of a normal distribution are as rare. visible: the step that would have been told tonight
    in nine of ten cases. error: the standard error (log), luck: that of luck alone. cut, after: the first night of the
    new builds, the last of the old ones.
    """

    is_told: bool
    is_suspect: bool
    effect: float
    low: float
    high: float
    z: float
    needed: float
    visible: float
    error: float
    luck: float
    cut: int
    after: int
    builds: int
    same_code: bool | None
    evidence: RatioEvidence

    @property
    def is_worth_measuring(self) -> bool:
        """Whether another look at the two builds may tell something: not where luck alone may be as large."""
        beyond_luck = abs(math.log1p(self.effect)) >= self.needed * self.luck
        return beyond_luck and abs(self.z) >= WORTH_MEASURING and abs(self.effect) >= LEAST_EFFECT

    @property
    def is_clear(self) -> bool:
        """Whether another look would tell nothing new."""
        return self.is_told or abs(self.z) < CLEARLY_NOTHING or max(abs(self.low), abs(self.high)) < LEAST_EFFECT


def chance_of_night(series: int) -> float:
    """At most so often anything is told of so many series on a night on which nothing changed."""
    return min(1.0, series * TELL_AGAIN_P)


def decide(learned: Learned, starts: Mapping[str, int], elsewhere: Elsewhere = NOWHERE) -> dict[str, RatioDecision]:
    """What the ratios of one experiment say tonight; nothing of a series of which only one build is known.

    starts: the first night of each series' level. elsewhere: what the home's other experiments say.
    """
    pairs, jumps = learned.pairs, learned.jumps
    found = {
        name: contrasts_of(
            learned.builds[name].since(starts.get(name, 0)), pairs[name], max(LUCK_PRIOR.variance, jumps[name].variance)
        )
        for name in learned.present
    }
    kin = find_kin(found)
    jumped = {name: jumps for name, jumps in learned.lone.items() if jumps}
    return {
        name: decide_by(
            RatioEvidence(
                contrasts,
                pairs[name],
                jumps[name],
                luck_of_kin(name, found, kin, learned, elsewhere),
                len(found),
                _precedent(name, learned, jumped, elsewhere),
                sum(again.pairs for again in learned.histories[name].again),
            )
        )
        for name, contrasts in found.items()
        if contrasts
    }


def _precedent(name: str, learned: Learned, jumped: Mapping[str, Collection[Jump]], elsewhere: Elsewhere) -> Precedent:
    kin = [jumps for other, jumps in jumped.items() if other != name]
    return precedent_of(learned.lone[name], [*kin, *elsewhere.lone], len(learned.builds[name].builds))


def decide_by(evidence: RatioEvidence) -> RatioDecision:
    """The decision that the evidence brings, which has one contrast or more."""
    rarest, best = min(((evidence.rarity(contrast), contrast) for contrast in evidence.contrasts), key=_first)
    error, newest = evidence.error(best), evidence.error(evidence.contrasts[0])
    tries = len(evidence.contrasts) ** 0.5
    allowed = TELL_AGAIN_P if evidence.pairs_again else TELL_P
    needed, z = normal(allowed / tries), normal(rarest)
    reach = points(error.freedom) * error.sd
    effect = math.expm1(best.shift)
    large = abs(effect) >= (LEAST_EFFECT if best.builds > 1 else LEAST_OF_ONE_BUILD)
    return RatioDecision(
        is_told=large and not evidence.precedent.explains(best) and z >= needed,
        is_suspect=large and rarest * evidence.series * tries <= SUSPECT_P,
        effect=effect,
        low=math.expm1(best.shift - reach),
        high=math.expm1(best.shift + reach),
        z=math.copysign(z, best.shift),
        needed=needed,
        visible=math.expm1((needed * points(newest.freedom) / 1.96 + 1.28) * newest.sd),
        error=error.sd,
        luck=math.sqrt(best.luck) * evidence.luck(best).sd,
        cut=best.cut,
        after=best.after,
        builds=best.builds,
        same_code=best.same_code,
        evidence=evidence,
    )


def _first(item: tuple[float, Contrast]) -> float:
    return item[0]
