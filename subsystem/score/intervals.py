"""Intervals of a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Protocol

FEWEST_RESAMPLED = 3
"""With fewer workloads, resampling them says nothing."""


@dataclass(frozen=True)
class Resampling:
    """How an interval is made."""

    count: int = 2000
    seed: int = 0


class ScoreEstimate(Protocol):
    """A value with the interval of its measurement."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def resampled(values: Sequence[float], resampling: Resampling) -> tuple[float | None, float | None]:
    """The 95 % percentile bootstrap interval (Efron 1979) of the geometric mean, workloads resampled.

    It speaks about workloads like these, not about the clock's noise; of few workloads it is too narrow.
    """
    import numpy as np

    if len(values) < FEWEST_RESAMPLED:
        return None, None
    logs = np.log(np.asarray(values, dtype=float))
    picks = np.random.default_rng(resampling.seed).integers(0, len(logs), (resampling.count, len(logs)))
    low, high = np.exp(np.percentile(logs[picks].mean(axis=1), (2.5, 97.5)))
    return float(low), float(high)


def measurement_interval(there: Sequence[ScoreEstimate]) -> tuple[float | None, float | None]:
    """The 95 % interval of a geometric mean of times that follows from their own measurement intervals.

    The workloads are taken as given: to resample those whose times differ a thousandfold answers nobody's question.
    """
    squares = 0.0
    for item in there:
        if not item.low or not item.high:
            return None, None
        squares += (math.log(item.high / item.low) / 2) ** 2
    reach = math.sqrt(squares) / len(there)
    mean = math.log(geometric_mean([item.value for item in there]))
    return math.exp(mean - reach), math.exp(mean + reach)
