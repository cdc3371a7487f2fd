"""Fields of every experiment's config, as dataclasses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.config_util import JobConfig
from tvmdash.measure.reduction import PairedRatio, Reduced
from tvmdash.trial_util import Timing

INTERVAL, PROCESSES, MINUTES, BROKEN = "interval", "max_processes", "max_minutes", "a process that did not end well"
ONCE, KILLED, UNCHANGED = "once", "the run was ended in the middle", "unchanged"
"""Reasons for the end of a point's measurement."""


@dataclass(frozen=True)
class Precision:
    """Precision goal of medians and ratios, and its price.

    `processes` at least and `max_processes` at most for each point; no more once half the 95 % interval is at most
    `interval_percent` of the median; no further process where the run would then be older than `max_minutes`. Beside a
    reference, `pairs` of processes at least and `max_pairs` at most; no more once half the interval of the ratio is at
    most `pair_percent` of it.
    """

    processes: int
    max_processes: int
    interval_percent: float
    max_minutes: float
    pairs: int
    max_pairs: int
    pair_percent: float

    @property
    def rounds(self) -> int:
        """Return the most rounds of a point that is measured alone."""
        return max(self.processes, self.max_processes)

    @property
    def pair_rounds(self) -> int:
        """Return the most rounds beside a reference."""
        return max(self.pairs, self.max_pairs)

    def pairs_reached(self, ratio: PairedRatio | None) -> bool:
        """Return True where the ratio is known well enough, after enough pairs."""
        enough = ratio is not None and len(ratio.log_ratios) >= self.pairs
        return enough and ratio is not None and ratio.half_width * 100 <= self.pair_percent

    def reached(self, reduced: Reduced) -> bool:
        """Return True where the median is known well enough, after enough processes."""
        return reduced.processes >= self.processes and reduced.half_width * 100 <= self.interval_percent

    def ended_by(self, reduced: Reduced, ratio: PairedRatio | None = None, *, broken: bool) -> str:
        """Return why a point has no more processes; `ratio`: of a point that was measured beside a reference."""
        known = self.reached(reduced) if ratio is None else self.pairs_reached(ratio)
        if known:
            return INTERVAL
        if reduced.processes >= (self.rounds if ratio is None else self.pair_rounds):
            return PROCESSES
        return BROKEN if broken else MINUTES


@dataclass(frozen=True, kw_only=True)
class MeasuringConfig:
    """Config fields that measuring itself reads: those of `"include": ["timing"]`, but `threads`."""

    number: int
    repeat: int
    min_repeat_ms: float
    warmup: int
    max_seconds: float
    processes: int
    max_processes: int
    paired: bool
    interval_percent: float
    pairs: int
    max_pairs: int
    pair_percent: float
    max_minutes: float
    process_minutes: float
    data_seed: int

    @property
    def timing(self) -> Timing:
        return Timing(self.number, self.repeat, self.min_repeat_ms, self.warmup, self.max_seconds)

    @property
    def precision(self) -> Precision:
        alone = (self.processes, self.max_processes, self.interval_percent, self.max_minutes)
        return Precision(*alone, self.pairs, self.max_pairs, self.pair_percent)


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig(MeasuringConfig, JobConfig):
    """Fields of an experiment's config besides its own; `threads` is missing, as some experiments have a list of it."""

    tvm_remote: Any
    tvm_branch: str | None
    tvm_options: Mapping[str, str] | None
    tvms: tuple[str, ...] | None
    hosts: tuple[str, ...] | None
    size: str
    rerun_setup: bool
    sandbox: bool
