"""What makes a number doubtful: its kind, and words."""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash.measure.reduction import Reduced
from tvmdash.measure.under_load import THROTTLED, was_watched

UNSTABLE_SHARE = 0.10
BUSY_LOAD_PER_CORE = 0.7
CLOCK_SHARE = 0.10
THROTTLED_SHARE = 0.10
"""From so much of the time on, in the middle process, a throttled device is doubtful."""
LEAST_APART = 0.02
"""Levels and processes that differ by less than this share of the median are not told apart."""
DISAGREE_TIMES = 3.0
"""Processes disagree where their medians spread this many times as far as their own samples explain."""
MODE_GAP_TIMES = 4.0
MODE_LEAST = 0.2
_FEWEST = 20


class DoubtKind(enum.StrEnum):
    """What speaks against a number."""

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
    """What speaks against a number, and the same in words with its size."""

    kind: DoubtKind
    words: str


def find_doubts(
    reduced: Reduced, processes: Sequence[Sequence[float]], facts: Sequence[Mapping[str, Any]]
) -> list[Doubt]:
    """What speaks against a point with these samples in ms, and these facts, of each of its processes."""
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
    explained = reduced.within * math.sqrt(math.pi / 2 / count)
    if reduced.between > DISAGREE_TIMES * explained:
        medians = sorted(statistics.median(samples) for samples in processes if samples)
        text = f"its {reduced.processes} processes disagree: medians from {medians[0]:.4g} to {medians[-1]:.4g} ms"
        yield Doubt(DoubtKind.PROCESSES_DISAGREE, text)


def _judge_levels(reduced: Reduced, processes: Sequence[Sequence[float]]) -> Iterator[Doubt]:
    """Two levels within the processes, whose samples are put together after each is divided by its process's median."""
    filled = [(samples, statistics.median(samples) or 1.0) for samples in processes if samples]
    levels = find_two_levels([sample / middle for samples, middle in filled for sample in samples])
    if levels:
        low, high = (level * reduced.median for level in levels)
        yield Doubt(DoubtKind.TWO_LEVELS, f"two levels within a process: near {low:.4g} and near {high:.4g} ms")


def find_two_levels(samples: Sequence[float]) -> tuple[float, float] | None:
    """The medians of two heaps of samples with a wide gap between them, each a fifth of all or more.

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
