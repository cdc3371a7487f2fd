"""Means over several workloads or machines: a geometric mean of ratios and its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.errors import DashboardError
from tvmdash.judge.student import exp_interval, mean_interval


@dataclass(frozen=True)
class Ratio:
    """A geometric mean of `n` ratios and its 95 % interval, None where one ratio cannot tell."""

    value: float
    low: float | None
    high: float | None
    n: int

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of what has one."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high


def combine_ratios(ratios: Sequence[float]) -> Ratio:
    """The geometric mean of one or more ratios above 0.

    The interval is Student's t for the mean of the logarithms: it speaks of workloads, or machines, like these, each of
    which counts once however well its own ratio is known.
    """
    logs = [math.log(ratio) for ratio in ratios]
    low, high = exp_interval(mean_interval(logs)) if len(logs) > 1 else (None, None)
    return Ratio(math.exp(math.fsum(logs) / len(logs)), low, high, len(logs))


def geometric_mean_ratio(pairs: Sequence[tuple[float, float]]) -> Ratio:
    """The geometric mean of before / after over `pairs` of (before, after), above 1 where after is smaller."""
    for index, pair in enumerate(pairs):
        if not all(math.isfinite(number) and number > 0 for number in pair):
            raise DashboardError(f"pair {index}: {pair} has no ratio. Use two numbers above 0, or omit the pair.")
    if not pairs:
        raise DashboardError("geometric_mean_ratio: no pairs given. Give at least one.")
    return combine_ratios([before / after for before, after in pairs])
