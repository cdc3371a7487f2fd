"""From the samples of a point to a median with its interval, the ratio of two builds, and doubts.

Code and data lie elsewhere in every process, and the difference stays for its life, so a process is the unit that
repeats: intervals rest on processes, or pairs of them, never on the samples of one (Kalibera & Jones 2013, "Rigorous
benchmarking in reasonable time"; Mytkowicz et al. 2009; Abedi & Brecht 2017; Bulej et al. 2020).
"""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.judge.student import exp_interval, mean_interval
from tvmdash.measure.under_load import THROTTLED, was_watched

TRIM = 0.2
"""Share of the turns of a pair that is trimmed from their mean at each end."""
WIDEST = 0.5
"""Largest reach of an interval, as a share of the median; a wider one is not given."""
UNSTABLE_SHARE = 0.10
BUSY_LOAD_PER_CORE = 0.7
CLOCK_SHARE = 0.10
THROTTLED_SHARE = 0.10
"""Share of the time, in the middle process, from which on throttling makes a number doubtful."""
LEAST_APART = 0.02
"""Levels and processes that differ by less than this share of the median are not told apart."""
DISAGREE_TIMES = 3.0
"""Processes disagree where their medians spread this many times as far as their own samples explain."""
MODE_GAP_TIMES = 4.0
MODE_LEAST = 0.2
_FEWEST = 20


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
    """Reduce the samples in ms of each process, at least one in all. Outliers are kept: medians are compared.

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
    """Return Student's t interval of two or more medians' logarithms, widened where `median` lies outside.

    On logarithms no time is below 0; two processes that differ ninefold give twelve powers of ten.
    """
    if min(medians) <= 0:
        return None, None
    low, high = exp_interval(mean_interval([math.log(each) for each in medians]))
    return min(median, low), max(median, high)


def median_interval(ordered: Sequence[float]) -> tuple[float | None, float | None]:
    """Return the narrowest symmetric pair of order statistics that holds the median with at least 95 % probability.

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


@dataclass(frozen=True)
class PairedRatio:
    """A ratio of times with its 95 % interval, None with one pair; log_ratios: one natural logarithm for each pair."""

    log_ratios: tuple[float, ...]
    ratio: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float:
        """Return half the interval's length as a share of the ratio; infinite where there is none."""
        return math.inf if self.low is None or self.high is None else (self.high - self.low) / 2 / self.ratio


def log_ratio_of_turns(tonight: Sequence[float], reference: Sequence[float]) -> float:
    """Return the natural logarithm of tonight / reference over the turns of one pair of processes, times above 0."""
    ratios = sorted(math.log(new / old) for new, old in zip(tonight, reference, strict=True))
    out = int(len(ratios) * TRIM)
    return statistics.fmean(ratios[out : len(ratios) - out])


def combine_pairs(log_ratios: Sequence[float]) -> PairedRatio:
    """Return the ratio over one or more pairs of processes."""
    low, high = exp_interval(mean_interval(log_ratios)) if len(log_ratios) > 1 else (None, None)
    return PairedRatio(tuple(log_ratios), math.exp(statistics.fmean(log_ratios)), low, high)


class DoubtKind(enum.StrEnum):
    """Kinds of doubts."""

    UNSTABLE = "unstable"
    FEW_SAMPLES = "few_samples"
    ONE_PROCESS = "one_process"
    PROCESSES_DISAGREE = "processes_disagree"
    TWO_LEVELS = "two_levels"
    BUSY_MACHINE = "busy_machine"
    CHANGING_CLOCK = "changing_clock"
    THROTTLED = "throttled"


@dataclass(frozen=True)
class Doubt:
    """A reason to doubt a number, with its size in words."""

    kind: DoubtKind
    words: str


def find_doubts(
    reduced: Reduced, processes: Sequence[Sequence[float]], facts: Sequence[Mapping[str, Any]]
) -> list[Doubt]:
    """Return the doubts about a point with these samples in ms and these facts, of each of its processes."""
    return [
        *_judge_spread(reduced),
        *_judge_processes(reduced, processes),
        *_judge_levels(reduced, processes),
        *_judge_machine(facts),
        *_judge_device(facts),
    ]


def _judge_spread(reduced: Reduced) -> Iterator[Doubt]:
    if reduced.mean and reduced.std / reduced.mean > UNSTABLE_SHARE:
        text = f"may be unstable: standard deviation is {reduced.std / reduced.mean:.0%} of the mean"
        yield Doubt(DoubtKind.UNSTABLE, text)
    if reduced.low is None:
        yield Doubt(DoubtKind.FEW_SAMPLES, f"only {reduced.count} samples, too few for a 95 % interval of the median")
    if reduced.processes == 1:
        yield Doubt(
            DoubtKind.ONE_PROCESS, "measured in one process; other processes may differ by more than the interval"
        )


def _judge_processes(reduced: Reduced, processes: Sequence[Sequence[float]]) -> Iterator[Doubt]:
    if reduced.between is None or reduced.within is None or reduced.between < LEAST_APART:
        return
    count = statistics.fmean(len(samples) for samples in processes if samples)
    # a median of normal samples has π/2 times the variance of their mean
    explained = reduced.within * math.sqrt(math.pi / 2 / count)
    if reduced.between > DISAGREE_TIMES * explained:
        medians = sorted(statistics.median(samples) for samples in processes if samples)
        text = f"its {reduced.processes} processes disagree: medians from {medians[0]:.4g} to {medians[-1]:.4g} ms"
        yield Doubt(DoubtKind.PROCESSES_DISAGREE, text)


def _judge_levels(reduced: Reduced, processes: Sequence[Sequence[float]]) -> Iterator[Doubt]:
    """Find two levels within the processes, in all samples divided by their process's median."""
    filled = [(samples, statistics.median(samples) or 1.0) for samples in processes if samples]
    levels = find_two_levels([sample / middle for samples, middle in filled for sample in samples])
    if levels:
        low, high = (level * reduced.median for level in levels)
        yield Doubt(DoubtKind.TWO_LEVELS, f"two levels within a process: near {low:.4g} and near {high:.4g} ms")


def find_two_levels(samples: Sequence[float]) -> tuple[float, float] | None:
    """Return the medians of two clusters of samples with a wide gap between them, each a fifth of all or more.

    With fewer than 20 samples chance makes such gaps.
    """
    ordered = sorted(samples)
    least = max(2, math.ceil(MODE_LEAST * len(ordered)))
    if len(ordered) < _FEWEST:
        return None
    cut = max(range(least, len(ordered) - least + 1), key=lambda index: ordered[index] - ordered[index - 1])
    low, high = ordered[:cut], ordered[cut:]
    gap = ordered[cut] - ordered[cut - 1]
    inner = max(statistics.pstdev(low), statistics.pstdev(high))
    if gap > MODE_GAP_TIMES * inner and gap > LEAST_APART * statistics.median(ordered):
        return statistics.median(low), statistics.median(high)
    return None


def _judge_machine(facts: Sequence[Mapping[str, Any]]) -> Iterator[Doubt]:
    cores = facts[0]["cores"]  # all of them, because the load is that of all
    busiest = max(fact["load_before"]["load_1_min"] for fact in facts)
    if busiest > BUSY_LOAD_PER_CORE * cores + 1:
        text = f"the machine was busy: load {busiest:.1f} on {cores} cores before the trial"
        yield Doubt(DoubtKind.BUSY_MACHINE, text)
    clocks = [fact[when].get("cpu_mhz") for fact in facts for when in ("load_before", "load_after")]
    known = [clock for clock in clocks if clock]
    if known and min(known) < (1 - CLOCK_SHARE) * max(known):
        text = f"the processor's clock was between {min(known):.0f} and {max(known):.0f} MHz: perhaps throttled"
        yield Doubt(DoubtKind.CHANGING_CLOCK, text)


def _judge_device(facts: Sequence[Mapping[str, Any]]) -> Iterator[Doubt]:
    found = [fact.get(THROTTLED, {}) for fact in facts if was_watched(fact)]
    for reason in dict.fromkeys(reason for shares in found for reason in shares):
        share = statistics.median(shares.get(reason, 0.0) for shares in found)
        if share >= THROTTLED_SHARE:
            yield Doubt(DoubtKind.THROTTLED, f"its device was throttled by {reason} for {share:.0%} of the time")
