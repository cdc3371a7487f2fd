"""The samples of one point, taken in several processes, in a few numbers.

Layout and allocation differ from process to process and stay within one, so a process is the unit that repeats
(Kalibera & Jones 2013, "Rigorous benchmarking in reasonable time"; Mytkowicz et al. 2009).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.judge.student import exp_interval, mean_interval

WIDEST = 0.5
"""An interval that reaches further, as a share of the median, is given by nobody: the number is not known."""


@dataclass(frozen=True)
class Reduced:
    """All times in ms. `low` and `high` bound the median with 95 % confidence, None where that is not known.

    `half_width` is half their distance as a share of the median, also where it is too wide for them to be given;
    infinite where nothing can be said.

    `between` is the standard deviation of the processes' medians, `within` that of a process's samples (the middle one
    of the processes), both as a share of the median; None with one process, with one sample each.
    """

    median: float
    mean: float
    std: float
    min: float
    low: float | None
    high: float | None
    count: int
    processes: int
    between: float | None
    within: float | None
    half_width: float


def reduce_processes(processes: Sequence[Sequence[float]]) -> Reduced:
    """Reduce the samples in ms of each process, at least one in all. Outliers are kept; the median is what is compared.

    The interval is `processes_interval` of several processes. One process can speak for itself alone: its interval is
    `median_interval`, and knows nothing of how another would differ.
    """
    filled = [list(samples) for samples in processes if samples]
    every = sorted(sample for samples in filled for sample in samples)
    median = statistics.median(every)
    medians = [statistics.median(samples) for samples in filled]
    several = len(filled) > 1
    low, high = processes_interval(median, medians) if several else median_interval(every)
    half_width = (high - low) / 2 / median if low is not None and high is not None and median else math.inf
    if several and low is not None and high is not None and max(median - low, high - median) > WIDEST * median:
        low = high = None
    inner = [statistics.stdev(samples) for samples in filled if len(samples) > 1]
    return Reduced(
        median=median,
        mean=statistics.fmean(every),
        std=statistics.stdev(every) if len(every) > 1 else 0.0,
        min=every[0],
        low=low,
        high=high,
        count=len(every),
        processes=len(filled),
        between=statistics.stdev(medians) / median if several and median else None,
        within=statistics.median(inner) / median if inner and median else None,
        half_width=half_width,
    )


def processes_interval(median: float, medians: Sequence[float]) -> tuple[float | None, float | None]:
    """Student's t on the logarithms of the medians of two or more processes, widened where `median` lies outside.

    On logarithms no time is below 0; two processes that differ ninefold give twelve powers of ten.
    """
    if min(medians) <= 0:
        return None, None
    low, high = exp_interval(mean_interval([math.log(each) for each in medians]))
    return min(median, low), max(median, high)


def median_interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """The narrowest symmetric pair of order statistics that holds the median with at least 95 % probability.

    Distribution-free (Hettmansperger & Sheather 1986 without the interpolation). Fewer than six samples give none.
    """
    count = len(ordered)
    outside, below = 0.0, 0
    while below < count // 2:
        outside += 2 * math.comb(count, below) / 2**count
        if outside > 0.05:
            break
        below += 1
    return (ordered[below - 1], ordered[count - below]) if below else (None, None)
