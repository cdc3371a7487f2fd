"""Differences of pairs that were measured in turn: the interval of their median, and whether it is more than chance.

Between equal builds each difference is as likely to be positive as negative, whatever the noise is like. Nothing else
is taken for granted here, so that a disturbed run costs little.

Sources: Fisher 1935 (sign flips); Hodges & Lehmann 1963 (the median of all means of two, which the test rests on);
Westfall & Young 1993 (the greatest of all series, step by step); Thompson 1936 (order statistics).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
