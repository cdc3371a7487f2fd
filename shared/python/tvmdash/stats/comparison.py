"""Two builds measured in alternation: by how much each series differs, and which of the differences are real."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

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
class ComparedDifference:
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


def find_differences(series: Sequence[Sequence[tuple[float, float]]]) -> list[ComparedDifference | None]:
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
    chance_of = dict(zip(noisy, chances(list(noisy.values())), strict=True))
    p = {at: chance_of.get(at, 0.0 if abs(logs[0]) > _SAME else 1.0) for at, logs in ratios.items()}
    return [_make_difference(ratios[at], p[at]) if at in ratios else None for at in range(len(series))]


def _make_difference(ratios: Sequence[float], p: float) -> ComparedDifference:
    middle = statistics.median(ratios)
    low, high = interval(ratios) if len(ratios) >= NAMED_ROUNDS else mean_interval(ratios)
    return ComparedDifference(math.expm1(middle), math.expm1(low), math.expm1(high), p, len(ratios), real=p <= ERROR)


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


# Between equal builds each difference is as likely to be positive as negative, whatever the noise is like. Nothing else
# is taken for granted here, so that a disturbed run costs little.
#
# Sources: Fisher 1935 (sign flips); Hodges & Lehmann 1963 (the median of all means of two, which the test rests on);
# Westfall & Young 1993 (the greatest of all series, step by step); Thompson 1936 (order statistics).
if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float64]

MOST_FLIPS = 512
"""All of ten pairs; of more pairs so many are drawn, always the same."""
FULL = 40
"""Of more pairs not all means of two are taken."""
_MEANS = 800
_TAIL = 0.025
_TINY = 1e-12


def interval(differences: Sequence[float]) -> tuple[float, float]:
    """Order statistics that bound the median with at least 95 % confidence; of fewer than six they have less."""
    count, ordered = len(differences), sorted(differences)
    tails = itertools.accumulate(math.comb(count, below) for below in range(count))
    index = max(0, sum(tail <= _TAIL * 2**count for tail in tails) - 1)
    return ordered[index], ordered[-1 - index]


def chances(series: Sequence[Sequence[float]]) -> list[float]:
    """For each series' differences, how often any series would be this clear if only chance gave the signs.

    The signs of a round are flipped for all series at once, as what disturbs a round may disturb them all.
    """
    import numpy

    if not series:
        return []
    flips = numpy.array(_flips(max(map(len, series))), float)
    clear = numpy.stack([_clearness(flips[:, : len(pairs)] * numpy.array(pairs, float)) for pairs in series])
    order = numpy.argsort(-clear[:, 0], kind="stable")
    greatest = numpy.maximum.accumulate(clear[order][::-1], axis=0)[::-1]
    share = numpy.mean(greatest >= clear[order, :1] * (1 - 1e-9), axis=1)
    shares = numpy.empty(len(series))
    shares[order] = numpy.maximum.accumulate(share)
    return [float(chance) for chance in shares]


def _flips(count: int) -> list[tuple[int, ...]]:
    """Signs of so many differences, the unchanged ones first; the first of each stays, as both directions count."""
    if 2 ** (count - 1) <= MOST_FLIPS:
        return [(1, *rest) for rest in itertools.product((1, -1), repeat=count - 1)]
    rng = random.Random(0)
    drawn = (tuple(rng.choice((1, -1)) for _ in range(count)) for _ in range(MOST_FLIPS - 1))
    return [(1,) * count, *drawn]


def _clearness(rows: FloatArray) -> FloatArray:
    """How far the median of each row's means of two is from 0, in units of their own scatter."""
    import numpy

    means = _means(rows)
    middle = _medians(means)
    scatter = _medians(numpy.abs(means - middle[:, None]))
    return numpy.asarray(numpy.abs(middle) / numpy.maximum(scatter, _TINY))


def _medians(rows: FloatArray) -> FloatArray:
    import numpy

    low, high = (rows.shape[1] - 1) // 2, rows.shape[1] // 2
    ordered = numpy.partition(rows, (low, high), axis=1)
    return numpy.asarray((ordered[:, low] + ordered[:, high]) / 2)


def _means(rows: FloatArray) -> FloatArray:
    """The means of any two of each row, each with itself included; of long rows those of neighbours."""
    import numpy

    count = rows.shape[1]
    first, second = numpy.triu_indices(count)
    near = second - first < (count if count <= FULL else math.ceil(_MEANS / count))
    return numpy.asarray((rows[:, first[near]] + rows[:, second[near]]) / 2)
