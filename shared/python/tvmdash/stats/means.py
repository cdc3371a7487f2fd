"""Geometric means and their intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from tvmdash.stats.student import mean_interval

_LARGEST_POWER = 700.0
"""`exp` of more overflows."""


def geometric_mean(values: Sequence[float]) -> float:
    """Of one or more values, all above 0."""
    return math.exp(statistics.fmean(map(math.log, values)))


def geometric_mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the geometric mean of two or more values above 0: Student's t on their logarithms."""
    return exp_interval(mean_interval([math.log(value) for value in values]))


def exp_interval(logs: tuple[float, float]) -> tuple[float, float]:
    """The interval of the values whose logarithms lie in this one."""
    low, high = (math.exp(min(log, _LARGEST_POWER)) for log in logs)
    return low, high
