"""Student's t: its points, its tails, and the interval of a mean."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

Z_975 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""
_LARGEST_POWER = 700.0
"""`exp` of more overflows."""


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the mean of two or more values."""
    mean = statistics.fmean(values)
    reach = t_975(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return mean - reach, mean + reach


def exp_interval(logs: tuple[float, float]) -> tuple[float, float]:
    """The interval of the values whose logarithms lie in this one."""
    low, high = (math.exp(min(log, _LARGEST_POWER)) for log in logs)
    return low, high


def t_975(degrees: int) -> float:
    """The 97.5 % point of Student's t, exact for 1 and 2 degrees, else within 0.2 % (Abramowitz and Stegun 26.7.5)."""
    if degrees <= 2:
        # The series is 11 % short at 1 degree and 1 % at 2, which have closed forms.
        return (math.tan(0.475 * math.pi), 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025)))[degrees - 1]
    x = Z_975
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / math.pow(degrees, power) for power, term in enumerate(terms, start=1))
