"""Two builds measured in turn by pairs of processes: the ratio of their times and how sure it is.

Code and data lie elsewhere in every process, and the difference stays for its life. So the interval rests on the pairs
of processes, never on the samples of one (Kalibera & Jones 2013; Abedi & Brecht 2017; Bulej et al. 2020).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.judge.student import exp_interval, mean_interval

TRIM = 0.2
"""The share of the turns of a pair of processes that is left out of their mean at each end."""


@dataclass(frozen=True)
class PairedRatio:
    """A ratio of times with its 95 % interval, None with one pair; log_ratios: one natural logarithm for each pair."""

    log_ratios: tuple[float, ...]
    ratio: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float:
        """Half the interval's length as a share of the ratio; infinite where there is none."""
        return math.inf if self.low is None or self.high is None else (self.high - self.low) / 2 / self.ratio


def log_ratio_of_turns(tonight: Sequence[float], reference: Sequence[float]) -> float:
    """The natural logarithm of tonight / reference over the turns of one pair of processes, times above 0."""
    ratios = sorted(math.log(new / old) for new, old in zip(tonight, reference, strict=True))
    out = int(len(ratios) * TRIM)
    return statistics.fmean(ratios[out : len(ratios) - out])


def combine_pairs(log_ratios: Sequence[float]) -> PairedRatio:
    """The ratio over one or more pairs of processes."""
    low, high = exp_interval(mean_interval(log_ratios)) if len(log_ratios) > 1 else (None, None)
    return PairedRatio(tuple(log_ratios), math.exp(statistics.fmean(log_ratios)), low, high)
