"""Steps in the ratio to a reference: what a night says is known by its pairs of processes, so two nights are enough.

A night's number is the mean of the log ratios of its pairs. Its error is the scatter of pairs over the root of their
number; few pairs tell it badly, so it is pooled over the series of an experiment. Builds differ by luck as well (where
code and data lie): that term is learned from how much builds of one level differ, from what the other series of the
experiment do on tonight's build, and where nothing is known from a prior. A step is told where the difference is beyond
both. Only another artifact can be another TVM: nights of one artifact are one build, and no step lies within them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from tvmdash.detect.noise import MAD_TO_SD, FloatArray, IntArray
from tvmdash.stats.spread import NOTHING, Spread, add, pool
from tvmdash.stats.student import t_975, two_sided

TELL_P = 2e-5
"""So rarely an unchanged series may be told on a night: two-sided, 4.3 standard errors where they are known."""
TELL_AGAIN_P = 1e-4
"""The same where the two builds were measured again in turn: then there are pairs enough for odd ones not to matter."""
SUSPECT_P = 0.05
"""The same for a suspicion, over all series of the night."""
MOST_BUILDS = 12
"""So many builds at most are the new side of a step."""
PAIR_PRIOR, PAIR_FREEDOM = Spread(0.015**2, 4), 16.0
"""Of one pair of processes where nothing is known; what the experiment's other series count for."""
LUCK_PRIOR, LUCK_OF_SAME_CODE = Spread(0.005**2, 3), Spread(0.002**2, 3)
"""How builds differ where nothing is known: with other generated code, with the same."""
LUCK_FREEDOM = 5.0
FEWEST_JUMPS = 3
"""So many jumps from build to build tell their size, whatever one or the other of them was."""
PRECEDENT = 1.3
"""One build alone tells a step that is so many times larger than any that one build made before and that went back."""
REMEMBERED = 150
"""Nights of history that luck is learned from."""
NIGHT_VARIANCE = 0.001**2
"""What a night's ratio differs by beyond its pairs."""
FEWEST_OTHERS = 4
LEAST_EFFECT = 0.01
WORTH_MEASURING, CLEARLY_NOTHING = 2.0, 1.5
"""Standard errors from which on two builds are measured again, and below which that is at an end."""
_MOST_FREEDOM = 400
_MEDIAN_OF_SQUARE = 0.4549
"""The median of the square of a standard normal number."""


@dataclass(frozen=True)
class RatioHistory:
    """One series' ratios by night; the last column is tonight, night `offset + len(logs) - 1`.

    logs: the mean log ratio to the reference, NaN where there is none. std: of one pair, NaN where unknown. pairs: how
    many. build, reference: numbers for the two artifacts, 0 where unknown. code: for the generated code.
    """

    logs: FloatArray
    std: FloatArray
    pairs: FloatArray
    build: IntArray
    reference: IntArray
    code: IntArray
    offset: int = 0

    @property
    def tonight(self) -> int:
        return self.offset + len(self.logs) - 1


@dataclass(frozen=True)
class Build:
    """The nights of one artifact: their mean, how many pairs and nights it rests on, the first and last of them."""

    artifact: int
    mean: float
    pairs: float
    nights: int
    first: int
    last: int
    code: int

    def error(self, pair: Spread) -> float:
        """The variance of the mean."""
        return pair.variance / self.pairs + NIGHT_VARIANCE / self.nights


@dataclass(frozen=True)
class Contrast:
    """Newest builds against those before them in the level: `shift` (log) and its parts of error.

    pairs: the variance, in variances of one pair; luck: in variances of a build; nights: the rest. inside: how builds
    differ on either side, errors included, inside_pairs of one pair's variance.
    """

    shift: float
    pairs: float
    luck: float
    nights: float
    cut: int
    after: int
    builds: int
    same_code: bool | None
    inside: Spread = NOTHING
    inside_pairs: float = 0.0

    def own_luck(self, pair: Spread) -> Spread:
        """How builds differ on either side beyond the error of each; below 0 where that is all of it."""
        return Spread(self.inside.variance - self.inside_pairs * pair.variance, self.inside.freedom)


@dataclass(frozen=True)
class RatioEvidence:
    """All that a decision rests on.

    pair: the scatter of one pair of processes; jumps, kin: how builds differ, going by the series' own nights and by
    its kin. series: how many are judged that night; precedent: how far one build was off before and went back.
    pairs_again: how many pairs measured the two builds in turn the same night; the contrast is with them.
    """

    contrasts: tuple[Contrast, ...]
    pair: Spread
    jumps: Spread
    kin: Spread
    series: int
    precedent: float
    pairs_again: int = 0

    def luck(self, contrast: Contrast) -> Spread:
        """How builds differ, with those on either side of the contrast."""
        luck = pool([contrast.own_luck(self.pair), self.jumps, self.kin])
        return Spread(max(0.0, luck.variance), luck.freedom)

    def error(self, contrast: Contrast) -> Spread:
        """The error of the contrast's shift."""
        parts = ((contrast.pairs, self.pair), (contrast.luck, self.luck(contrast)))
        return add(*parts, (contrast.nights, Spread(NIGHT_VARIANCE)))

    def rarity(self, contrast: Contrast) -> float:
        """How often such a shift would come without a step."""
        error = self.error(contrast)
        return two_sided(contrast.shift / error.sd, _whole_freedom(error.freedom)) if error.sd else 0.0


@dataclass(frozen=True)
class RatioDecision:
    """What the ratios say of a series tonight. effect, low, high: a fraction, with its 95 % interval.

    z: as many standard errors of a normal distribution are as rare. visible: the step that would have been told tonight
    in nine of ten cases. direct: the level before was the reference itself.
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
    cut: int
    after: int
    builds: int
    same_code: bool | None
    evidence: RatioEvidence

    @property
    def is_worth_measuring(self) -> bool:
        """Whether another look at the two builds may tell something."""
        return abs(self.z) >= WORTH_MEASURING and abs(self.effect) >= LEAST_EFFECT

    @property
    def is_clear(self) -> bool:
        """Whether another look would tell nothing new."""
        return self.is_told or abs(self.z) < CLEARLY_NOTHING or max(abs(self.low), abs(self.high)) < LEAST_EFFECT


def contrasts_of(history: RatioHistory, start: int) -> list[Contrast]:
    """Every way to part tonight's level, which began on the night `start`, into old and new builds.

    None where the level has one build only, or where tonight has no ratio.
    """
    if not len(history.logs) or not math.isfinite(history.logs[-1]):
        return []
    stretch = _nights_of_stretch(history, start)
    builds = _builds(history, stretch)
    found = [_contrast(builds[:-count], builds[-count:]) for count in range(1, min(MOST_BUILDS, len(builds) - 1) + 1)]
    return found or _against_reference(history, builds, start)


def _nights_of_stretch(history: RatioHistory, start: int) -> list[int]:
    """The columns of the level that have tonight's reference."""
    known = np.isfinite(history.logs) & (history.reference == history.reference[-1])
    known[: max(0, start - history.offset)] = False
    return [int(column) for column in known.nonzero()[0]]


def _builds(history: RatioHistory, columns: Sequence[int]) -> list[Build]:
    """The artifacts in the order in which they first came; where none is known, each night has its own."""
    groups: dict[int, list[int]] = {}
    for column in columns:
        artifact = int(history.build[column]) or -1 - column
        groups.setdefault(artifact, []).append(column)
    return [_build(history, artifact, members) for artifact, members in groups.items()]


def _build(history: RatioHistory, artifact: int, columns: list[int]) -> Build:
    pairs = np.maximum(history.pairs[columns], 1)
    mean = float(np.average(history.logs[columns], weights=pairs))
    first, last = columns[0] + history.offset, columns[-1] + history.offset
    return Build(artifact, mean, float(pairs.sum()), len(columns), first, last, int(history.code[columns[-1]]))


def _contrast(old: Sequence[Build], new: Sequence[Build]) -> Contrast:
    sides = [_weights(old), _weights(new)]
    means = [sum(w * build.mean for w, build in zip(weights, side, strict=True))
             for weights, side in zip(sides, (old, new), strict=True)]  # fmt: skip
    weighed = [(w, build) for weights, side in zip(sides, (old, new), strict=True)
               for w, build in zip(weights, side, strict=True)]  # fmt: skip
    codes = {build.code for build in new}
    same = None if 0 in codes or not old[-1].code else codes == {old[-1].code}
    return Contrast(
        shift=means[1] - means[0],
        pairs=sum(w**2 / build.pairs for w, build in weighed),
        luck=sum(w**2 for w, _ in weighed),
        nights=sum(w**2 / build.nights for w, build in weighed),
        cut=min(build.first for build in new),
        after=max(build.last for build in old),
        builds=len(new),
        same_code=same,
        inside=pool(_scatter(side) for side in (old, new)),
        inside_pairs=float(np.mean([1 / build.pairs for side in (old, new) if len(side) > 1 for build in side] or [0])),
    )


def _scatter(builds: Sequence[Build]) -> Spread:
    """Of builds that are of one level."""
    means = [build.mean for build in builds]
    return Spread(float(np.var(means, ddof=1)), len(means) - 1) if len(means) > 1 else Spread()


def _weights(builds: Sequence[Build]) -> list[float]:
    """One build's luck is as large as another's, so that many nights of one do not outweigh the others by far."""
    weights = [min(4.0, build.nights) for build in builds]
    return [weight / sum(weights) for weight in weights]


def _against_reference(history: RatioHistory, builds: Sequence[Build], start: int) -> list[Contrast]:
    """Where the reference is what the night before measured, its ratio is the step since then."""
    if len(builds) != 1 or not history.reference[-1]:
        return []
    before = np.isfinite(history.logs)
    before[builds[0].first - history.offset :] = False
    before[: max(0, start - history.offset)] = False
    columns = before.nonzero()[0]
    if not len(columns) or history.build[columns[-1]] != history.reference[-1]:
        return []
    new, after = builds[0], int(columns[-1])
    code = int(history.code[after])
    same = new.code == code if new.code and code else None
    return [
        Contrast(
            new.mean, 1 / new.pairs, 2.0, 1 / new.nights, new.first, after + history.offset, builds=1, same_code=same
        )
    ]


def pair_spread(history: RatioHistory) -> Spread:
    """The scatter of one pair of processes in this series."""
    known = np.isfinite(history.std) & (history.pairs > 1)
    freedom = history.pairs[known] - 1
    return pool(Spread(float(s) ** 2, float(f)) for s, f in zip(history.std[known], freedom, strict=True))


def luck_of_jumps(history: RatioHistory, pair: Spread) -> Spread:
    """How builds differ, going by the jumps from one to the next before tonight, steps that were told among them.

    The median of their squares, so that few true steps do not matter; nothing where there are too few jumps.
    """
    columns = _nights_of_stretch(history, history.tonight - REMEMBERED)
    builds = _builds(history, columns)[:-1]
    if len(builds) <= FEWEST_JUMPS:
        return Spread()
    squares = [(new.mean - old.mean) ** 2 / 2 for old, new in itertools.pairwise(builds)]
    errors = [build.error(pair) for build in builds]
    freedom = 0.4 * len(squares)
    return Spread(float(np.median(squares)) / _MEDIAN_OF_SQUARE - sum(errors) / len(errors), freedom)


def excursions_of(history: RatioHistory) -> list[float]:
    """How far each build before tonight's was from both the builds before it and those after it."""
    columns = _nights_of_stretch(history, history.tonight - REMEMBERED)
    means = [build.mean for build in _builds(history, columns)[:-1]]
    return [
        min(abs(mean - float(np.median(side))) for side in (means[max(0, at - 3) : at], means[at + 1 : at + 4]))
        for at, mean in enumerate(means)
        if 0 < at < len(means) - 1
    ]


def luck_of_night(contrasts: Sequence[tuple[Contrast, Spread]]) -> Spread:
    """How builds differ, from what several series do on tonight's newest build; robust against those that moved."""
    if len(contrasts) < FEWEST_OTHERS:
        return Spread()
    shifts = np.array([contrast.shift for contrast, _ in contrasts])
    errors = [_error(contrast, pair) for contrast, pair in contrasts]
    lucks = [contrast.luck for contrast, _ in contrasts]
    scatter = (MAD_TO_SD * float(np.median(np.abs(shifts - np.median(shifts))))) ** 2
    return Spread((scatter - sum(errors) / len(errors)) / (sum(lucks) / len(lucks)), 0.4 * len(shifts))


def _error(contrast: Contrast, pair: Spread) -> float:
    return contrast.pairs * pair.variance + contrast.nights * NIGHT_VARIANCE


def decide(histories: Mapping[str, RatioHistory], starts: Mapping[str, int]) -> dict[str, RatioDecision]:
    """What the ratios of one experiment say tonight; nothing of a series of which only one build is known."""
    own_pairs = {name: pair_spread(history) for name, history in histories.items()}
    together = pool([*own_pairs.values(), PAIR_PRIOR])
    pairs = {name: pool([own, together.limited(PAIR_FREEDOM)]) for name, own in own_pairs.items()}
    found = {name: contrasts_of(history, starts.get(name, 0)) for name, history in histories.items()}
    jumps = {name: luck_of_jumps(history, pairs[name]) for name, history in histories.items()}
    precedent = max((far for history in histories.values() for far in excursions_of(history)), default=0.0)
    decisions = {}
    for name, contrasts in found.items():
        if contrasts:
            kin = _luck_of_kin(name, found, jumps, pairs)
            decisions[name] = decide_by(
                RatioEvidence(tuple(contrasts), pairs[name], jumps[name], kin, len(found), precedent)
            )
    return decisions


def _luck_of_kin(
    name: str, found: Mapping[str, list[Contrast]], jumps: Mapping[str, Spread], pairs: Mapping[str, Spread]
) -> Spread:
    """How builds differ in the experiment's other series whose generated code did tonight what this one's did."""
    same = found[name][0].same_code is True
    kin = [other for other in found if other != name and found[other] and (found[other][0].same_code is True) == same]
    tonight = luck_of_night([(found[other][0], pairs[other]) for other in kin])
    known = pool([pool(jumps[other] for other in kin).limited(LUCK_FREEDOM), tonight.limited(LUCK_FREEDOM)])
    return pool([known, LUCK_OF_SAME_CODE if same else LUCK_PRIOR])


def with_again(decision: RatioDecision, again: Sequence[tuple[float, int]]) -> RatioDecision:
    """The decision with the newest build and the last one before it measured in turn again.

    again: the mean log ratio of each run, and over how many pairs.
    """
    evidence = decision.evidence
    best = next(contrast for contrast in evidence.contrasts if contrast.builds == decision.builds)
    pairs = sum(count for _, count in again)
    weights = (1 / best.pairs, float(pairs))
    mean = sum(log * count for log, count in again) / pairs
    shift = (best.shift * weights[0] + mean * weights[1]) / sum(weights)
    combined = replace(best, shift=shift, pairs=1 / sum(weights))
    return decide_by(replace(evidence, contrasts=(combined,), pairs_again=pairs))


def decide_by(evidence: RatioEvidence) -> RatioDecision:
    """The decision that the evidence brings, which has one contrast or more."""
    rarest, best = min(((evidence.rarity(contrast), contrast) for contrast in evidence.contrasts), key=_first)
    error, newest = evidence.error(best), evidence.error(evidence.contrasts[0])
    tries = len(evidence.contrasts) ** 0.5
    allowed = TELL_AGAIN_P if evidence.pairs_again else TELL_P
    needed, z = _normal(allowed / tries), _normal(rarest)
    reach = _points(error.freedom) * error.sd
    effect = math.expm1(best.shift)
    lasting = best.builds > 1 or abs(best.shift) > PRECEDENT * evidence.precedent
    large = abs(effect) >= LEAST_EFFECT
    return RatioDecision(
        is_told=large and lasting and z >= needed,
        is_suspect=large and rarest * evidence.series * tries <= SUSPECT_P,
        effect=effect,
        low=math.expm1(best.shift - reach),
        high=math.expm1(best.shift + reach),
        z=math.copysign(z, best.shift),
        needed=needed,
        visible=math.expm1((needed * _points(newest.freedom) / 1.96 + 1.28) * newest.sd),
        error=error.sd,
        cut=best.cut,
        after=best.after,
        builds=best.builds,
        same_code=best.same_code,
        evidence=evidence,
    )


def _first(item: tuple[float, Contrast]) -> float:
    return item[0]


def _points(freedom: float) -> float:
    return t_975(_whole_freedom(freedom))


def _whole_freedom(freedom: float) -> int:
    return max(1, round(min(freedom, _MOST_FREEDOM)))


def _normal(rarity: float) -> float:
    """The standard errors of a normal distribution that are as rare, at most 30."""
    return -NormalDist().inv_cdf(max(rarity, 1e-190) / 2)


@dataclass(frozen=True)
class Standing:
    """How tonight's artifact stands to the reference, over all its nights. effect, low, high: a fraction, 95 %.

    differs: beyond what one of all the experiment's series would do by chance in one night of twenty. is_itself: the
    reference is tonight's own artifact. visible: the difference that would have been seen in nine of ten cases.
    """

    effect: float
    low: float
    high: float
    differs: bool
    is_itself: bool
    visible: float


def compare_with_reference(histories: Mapping[str, RatioHistory]) -> dict[str, Standing]:
    """By series, for those with a ratio tonight; the luck of the two builds is theirs, and not in the interval."""
    own = {name: pair_spread(history) for name, history in histories.items()}
    together = pool([*own.values(), PAIR_PRIOR])
    present = [name for name, history in histories.items() if len(history.logs) and math.isfinite(history.logs[-1])]
    return {
        name: _stand(histories[name], pool([own[name], together.limited(PAIR_FREEDOM)]), len(present))
        for name in present
    }


def _stand(history: RatioHistory, pair: Spread, series: int) -> Standing:
    build = _builds(history, _nights_of_stretch(history, 0))[-1]
    error = add((1 / build.pairs, pair), (1 / build.nights, Spread(NIGHT_VARIANCE)))
    reach = _points(error.freedom) * error.sd
    rarity = two_sided(build.mean / error.sd, _whole_freedom(error.freedom))
    effect = math.expm1(build.mean)
    return Standing(
        effect,
        math.expm1(build.mean - reach),
        math.expm1(build.mean + reach),
        differs=rarity * series <= SUSPECT_P and abs(effect) >= LEAST_EFFECT,
        is_itself=bool(history.build[-1]) and history.build[-1] == history.reference[-1],
        visible=math.expm1(1.65 * reach),
    )
