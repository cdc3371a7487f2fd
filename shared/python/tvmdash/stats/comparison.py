"""Two builds measured in alternation: by how much each series differs, and which of the differences are real."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.stats import signs
from tvmdash.stats.student import mean_interval, t_975, two_sided

LEAST_ROUNDS = 3
"""Fewer say nothing of how much one round differs from the next."""
NAMED_ROUNDS = 6
"""Of fewer, only what differs by the same in each is named: of five, equal builds all agree by chance too often."""
ERROR = 0.05
HOLDS, DOES_NOT_HOLD, CANNOT_TELL = "holds", "does not hold", "cannot tell"
"""What can be said of an old number that was measured again."""
_SAME = 1e-12


@dataclass(frozen=True)
class Difference:
    """B against A, from rounds that measured both: `effect` is a fraction (0.05: B is 5 % larger).

    The median of the rounds' ratios, `low` and `high` bound it with 95 % confidence; of fewer than NAMED_ROUNDS no
    interval of the median can, and Student's t of their mean stands there. `p`: how often equal builds would have any
    series this clear in the comparison. `real`: beyond chance, all series considered.
    """

    effect: float
    low: float
    high: float
    p: float
    rounds: int
    real: bool = False


def find_differences(series: Sequence[Sequence[tuple[float, float]]]) -> list[Difference | None]:
    """For each series' rounds, as (A, B), its difference; None where a value is not positive or rounds are too few.

    Real is what a permutation test of the ratios' signs, round by round and over all series at once, admits at 5 %:
    equal builds have any real difference in at most one of twenty comparisons, whatever the noise is like (see
    `tvmdash.stats.signs`). A ratio that is the same in every round has no noise: it is real where it is not 1.
    """
    ratios = {
        at: [math.log(after / before) for before, after in rounds]
        for at, rounds in enumerate(series)
        if len(rounds) >= LEAST_ROUNDS and all(min(pair) > 0 for pair in rounds)
    }
    noisy = {at: logs for at, logs in ratios.items() if max(logs) - min(logs) > _SAME}
    chances = dict(zip(noisy, signs.chances(list(noisy.values())), strict=True))
    p = {at: chances.get(at, 0.0 if abs(logs[0]) > _SAME else 1.0) for at, logs in ratios.items()}
    return [_make_difference(ratios[at], p[at]) if at in ratios else None for at in range(len(series))]


def _make_difference(ratios: Sequence[float], p: float) -> Difference:
    middle = statistics.median(ratios)
    low, high = signs.interval(ratios) if len(ratios) >= NAMED_ROUNDS else mean_interval(ratios)
    return Difference(math.expm1(middle), math.expm1(low), math.expm1(high), p, len(ratios), real=p <= ERROR)


def _holm(p: Mapping[int, float]) -> set[int]:
    """Which of these are beyond chance, all of them considered."""
    admitted: set[int] = set()
    for rank, at in enumerate(sorted(p, key=p.__getitem__)):
        if p[at] > ERROR / (len(p) - rank):
            break
        admitted.add(at)
    return admitted


@dataclass(frozen=True)
class Repeated:
    """An old value against new ones: `effect` of new over old, and the bounds within which old may lie by noise alone.

    `holds`: the old value is inside the noise, all series considered. low and high are of one series by itself.
    """

    old: float
    new: float
    effect: float
    low: float
    high: float
    holds: bool = True


def judge_repeated(old: Sequence[float], new: Sequence[Sequence[float]]) -> list[Repeated | None]:
    """Whether each old value could be one more of its new ones; None where a value is not positive or new are too few.

    A prediction interval of Student's t on logarithms (Whitmore 1986, "Prediction limits for a univariate normal
    observation"), and Holm's procedure over all of them.
    """
    results: list[Repeated | None] = []
    p: dict[int, float] = {}
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if len(after) < LEAST_ROUNDS or before <= 0 or min(after) <= 0:
            results.append(None)
            continue
        logs = [math.log(value) for value in after]
        middle, error = statistics.fmean(logs), statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
        away, degrees = math.log(before) - middle, len(logs) - 1
        p[at] = _p(away if abs(away) > _SAME else 0.0, error, degrees)
        reach = t_975(degrees) * error
        level = math.exp(middle)
        bounds = math.exp(middle - reach), math.exp(middle + reach)
        results.append(Repeated(before, level, level / before - 1, *bounds))
    admitted = _holm(p)
    return [
        replace(difference, holds=at not in admitted) if difference else None for at, difference in enumerate(results)
    ]


def _p(middle: float, error: float, degrees: int) -> float:
    if not error:
        return 0.0 if middle else 1.0
    return two_sided(middle / error, degrees)
