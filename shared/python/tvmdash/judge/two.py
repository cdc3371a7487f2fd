"""Two builds measured in turn outside the nights: how each of many series differs, by the judgement of a night.

Who measured B beside A asks here, whatever the rounds were called, and is told what a night would tell of these pairs.
"""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.judge.home import Decision, Judgement, Scope, decide, interval, judge
from tvmdash.judge.model import FoundStep, Shift, log_of_any
from tvmdash.judge.noise import HomeNoise, learn
from tvmdash.judge.rules import RULES

A, B = "A", "B"
"""The names of the two builds."""
PLACES = {A: 0, B: 1}
SIGNS = {"lower": 1, "higher": -1, "none": 0}
"""By the direction of a metric, `Evidence.sign`."""
# Logarithms of equal ratios differ by rounding alone.
_SAME = 1e-12
_MOST_ODDS = 1e9
"""More is as good as certain."""


class PairStanding(enum.StrEnum):
    """The standing of B against A.

    worse, better, changed: told; changed is of a number without a better way. suspected: likely worse, not sure enough
    to be told. undecided: a change is neither told nor excluded. blind: too little was measured to say anything.
    """

    WORSE = "worse"
    BETTER = "better"
    CHANGED = "changed"
    SUSPECTED = "suspected"
    UNDECIDED = "undecided"
    UNCHANGED = "unchanged"
    BLIND = "blind"

    @property
    def is_told(self) -> bool:
        """True where B differs."""
        return self in {PairStanding.WORSE, PairStanding.BETTER, PairStanding.CHANGED}

    @property
    def is_open(self) -> bool:
        """True where more pairs might tell."""
        return self in {PairStanding.SUSPECTED, PairStanding.UNDECIDED, PairStanding.BLIND}


@dataclass(frozen=True)
class Difference:
    """B against A. effect: a fraction; low, high: its 95 % interval, None where too few pairs were measured.

    odds: for a change against none. within: how far the interval would reach if builds had no luck, which is what more
    pairs would narrow. visible: the least change that would have been told in nine of ten cases.
    """

    standing: PairStanding
    effect: float = 0.0
    low: float | None = None
    high: float | None = None
    odds: float = 0.0
    pairs: int = 0
    within: float = math.inf
    visible: float = math.inf

    @property
    def is_told(self) -> bool:
        """True where B differs."""
        return self.standing.is_told

    @property
    def is_bounded(self) -> bool:
        return self.low is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of what has one."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high


def make_evidence(
    experiment: str,
    pairs: Sequence[Pairs],
    direction: str,
    *,
    is_of_device: bool = False,
    is_control: bool = False,
    metric: str = "",
) -> Evidence:
    """One series of the two; its pairs are of B and A, or of either with what joins them. direction: as metrics say."""
    sign = SIGNS[direction]
    return Evidence(
        experiment, pairs, PLACES, B, sign=sign, is_control=is_control, is_of_device=is_of_device, metric=metric,
        window=len(pairs),
    )  # fmt: skip


def make_pairs(logs: Sequence[float], night: int = 0) -> Pairs:
    """Combine the pairs of one go. logs: the natural logarithm of B / A, one for each pair of processes."""
    std = statistics.stdev(logs) if len(logs) > 1 else 0.0
    return Pairs(night, B, A, statistics.fmean(logs), std, len(logs))


@dataclass(frozen=True)
class RoundSeries:
    """One series that whole runs of an experiment measured, first on one of the two, then on the other.

    rounds: by the name of the round, the natural logarithm of B / A. What disturbed one of the runs is in all series
    of that round, which pairs of processes in turn do not have.
    """

    experiment: str
    rounds: Mapping[str, float]
    direction: str

    @classmethod
    def of(cls, experiment: str, values: Mapping[str, tuple[float, float]], direction: str) -> Self | None:
        """Make it of each round's values of A and B; None where it measured nothing, or a value is not positive."""
        if not values or min(map(min, values.values())) <= 0:
            return None
        return cls(experiment, {name: math.log(b / a) for name, (a, b) in values.items()}, direction)


def compare_rounds(series: Mapping[str, RoundSeries]) -> dict[str, Difference]:
    """Compare each series by rounds, as `compare` does; by name."""
    held = {
        name: dict(zip(each.rounds, hold(list(each.rounds.values())), strict=True)) for name, each in series.items()
    }
    evidence = {
        name: make_evidence(each.experiment, [make_pairs(list(held[name].values()))], each.direction)
        for name, each in series.items()
        if each.rounds
    }
    of_experiment: dict[str, list[Mapping[str, float]]] = {}
    for name, each in evidence.items():
        if _find_exact(each.pairs) is None:
            of_experiment.setdefault(each.experiment, []).append(held[name])
    common = max(map(_measure_common, of_experiment.values()), default=0.0)
    noise = replace(learn(evidence), common=common)
    return compare(evidence, noise)


def hold(logs: Sequence[float]) -> list[float]:
    """Hold what lies far out at the edge: a disturbed round is no evidence of its size."""
    if len(logs) < RULES.fewest_pairs:
        return list(logs)
    middle = statistics.median(logs)
    reach = RULES.odd_round * statistics.median(abs(log - middle) for log in logs)
    return [min(middle + reach, max(middle - reach, log)) for log in logs]


def _measure_common(rounds: Sequence[Mapping[str, float]]) -> float:
    """The variance of what the mean over all rounds has in common with those of the experiment's other series."""
    own = [{name: log - statistics.fmean(each.values()) for name, log in each.items()} for each in rounds]
    together = [
        [each[name] for each in own if name in each] for name in dict.fromkeys(name for each in own for name in each)
    ]
    count, series = len(together), statistics.fmean(map(len, together))
    seen = 0.0
    if count > 1 and series > 1:
        total = sum(log**2 for logs in together for log in logs) / (series * (count - 1))
        of_means = sum(statistics.fmean(logs) ** 2 for logs in together) / (count - 1)
        seen = max(0.0, (series * of_means - total) / (series - 1))
    freedom = count - 1 if series > 1 else 0
    guess = RULES.round_sd**2 * RULES.round_freedom
    return (seen * freedom + guess) / (freedom + RULES.round_freedom) / count


def compare(series: Mapping[str, Evidence], noise: HomeNoise | None = None) -> dict[str, Difference]:
    """Compare each series of these two builds, all considered, by name; those without pairs are left out.

    A ratio that all pairs agree on to the last digit, as that of sizes, has no noise: it is exact. noise: see `judge`.
    """
    exact = {name: log for name, each in series.items() if (log := _find_exact(each.pairs)) is not None}
    noisy = {name: each for name, each in series.items() if each.pairs and name not in exact}
    judged = judge(noisy, noise=noise) if noisy else None
    found = {}
    for name, each in series.items():
        if name in exact:
            found[name] = _make_exact(each, exact[name])
        elif judged is not None and each.pairs:
            found[name] = _describe(name, judged)
    return found


def weigh(shift: Shift, points: int, direction: str) -> Difference:
    """Judge a shift that rests on no pairs, one of `points` points, as `compare` decides."""
    sign, odds = SIGNS[direction], log_of_any(shift) + RULES.log_of_point(points)
    found = FoundStep(odds, shift.log, shift.error, PLACES[B])
    decision = decide(found, sign, RULES.fewest_pairs)
    standing = PairStanding.UNCHANGED
    if decision is Decision.SUSPECTED:
        standing = PairStanding.SUSPECTED
    elif decision is not None:
        standing = _name_told(sign, is_worse=shift.log * sign > 0)
    elif odds >= RULES.log("open") and abs(found.effect) >= RULES.least:
        standing = PairStanding.UNDECIDED
    return Difference(standing, found.effect, *interval(found), _exp(odds))


def _find_exact(pairs: Sequence[Pairs]) -> float | None:
    """The ratio (log) that all agree on; None where they do not, or where nothing says how they scatter."""
    if not pairs or any(each.count < 2 or each.std > _SAME for each in pairs):
        return None
    logs = [each.log for each in pairs]
    is_exact = max(logs) - min(logs) <= _SAME and all({each.build, each.base} == {A, B} for each in pairs)
    return logs[0] if is_exact else None


def _make_exact(each: Evidence, log: float) -> Difference:
    count = sum(pairs.count for pairs in each.pairs)
    if abs(log) <= _SAME:
        return Difference(PairStanding.UNCHANGED, 0.0, 0.0, 0.0, 0.0, count, 0.0, 0.0)
    effect = math.expm1(log)
    standing = _name_told(each.sign, is_worse=log * each.sign > 0)
    return Difference(standing, effect, effect, effect, _MOST_ODDS, count, 0.0, 0.0)


def _name_told(sign: int, *, is_worse: bool) -> PairStanding:
    if not sign:
        return PairStanding.CHANGED
    return PairStanding.WORSE if is_worse else PairStanding.BETTER


def _describe(name: str, judged: Judgement) -> Difference:
    model = judged.models[name]
    change = next((each for each in judged.changes if name in each.series), None)
    found = judged.found[name] if change is None else change.of(name)
    begin = PLACES[B]
    count = model.count_pairs(begin)
    if found is None:
        return Difference(PairStanding.BLIND, pairs=count)
    is_shared = change is not None and change.scope is not Scope.POINT
    is_bounded = is_shared or count >= RULES.fewest_pairs
    low, high = interval(found) if is_bounded else (None, None)
    within = math.expm1(RULES.errors_of_interval * model.error_of_pairs(begin)) if is_bounded else math.inf
    visible = model.visible(judged.prior) if is_bounded else math.inf
    if change is None:
        quiet = PairStanding.UNCHANGED if is_bounded else PairStanding.BLIND
        standing = PairStanding.UNDECIDED if name in judged.undecided else quiet
    elif change.decision is Decision.SUSPECTED:
        standing = PairStanding.SUSPECTED
    else:
        standing = _name_told(model.evidence.sign, is_worse=found.shift * model.evidence.sign > 0)
    return Difference(standing, found.effect, low, high, _exp(found.odds), count, within, visible)


def _exp(log_odds: float) -> float:
    return math.exp(min(log_odds, math.log(_MOST_ODDS)))
