"""By how much one way is faster than another over several workloads: a geometric mean, its interval, its words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tvmdash.errors import DashboardError
from tvmdash.stats.means import exp_interval
from tvmdash.stats.student import mean_interval

_WIDEST = 1e4
"""An interval whose ends are further apart says nothing to anybody."""


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of `n` ratios and its 95 % interval, None where one ratio cannot tell."""

    value: float
    low: float | None
    high: float | None
    n: int


def geometric_mean_ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The geometric mean of before / after over `pairs` of (before, after), above 1 where after is smaller.

    The interval is Student's t for the mean of the logarithms, so it speaks about workloads like these.
    """
    for index, pair in enumerate(pairs):
        if not all(math.isfinite(number) and number > 0 for number in pair):
            raise DashboardError(f"pair {index}: {pair} has no ratio. Use two numbers above 0, or omit the pair.")
    if not pairs:
        raise DashboardError("geometric_mean_ratio: no pairs given. Give at least one.")
    logs = [math.log(before) - math.log(after) for before, after in pairs]
    low, high = exp_interval(mean_interval(logs)) if len(logs) > 1 else (None, None)
    return Ratio(math.exp(fmean(logs)), low, high, len(logs))


def format_ratio(ratio: Ratio, *, more: str = "faster", less: str = "slower") -> str:
    """As in "1.23x faster (1.18 to 1.29, 5 workloads)"; `more` is said above 1, `less` (with the inverse) below."""
    workloads = f"{ratio.n} workload{'' if ratio.n == 1 else 's'}"
    turned = ratio.value < 1
    value = 1 / ratio.value if turned else ratio.value
    text = f"{_times(value)}x {less if turned else more}"
    if ratio.low is None or ratio.high is None:
        return f"{text} ({workloads})"
    if ratio.high > _WIDEST * ratio.low:
        return f"{text} ({workloads}, too few or too different for an interval)"
    low, high = (1 / ratio.high, 1 / ratio.low) if turned else (ratio.low, ratio.high)
    doubt = ", possibly no difference" if low <= 1 <= high else ""
    return f"{text} ({_times(low)} to {_times(high)}, {workloads}{doubt})"


def _times(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"
