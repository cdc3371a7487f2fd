"""What the config of every experiment holds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.config_util import JobConfig
from tvmdash.experiment.rounds import Precision
from tvmdash.trial_util import Timing


@dataclass(frozen=True, kw_only=True)
class MeasuringConfig:
    """What measuring itself reads of an experiment's config: the fields of `"include": ["timing"]`, but `threads`."""

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
        """How a point is timed."""
        return Timing(self.number, self.repeat, self.min_repeat_ms, self.warmup, self.max_seconds)

    @property
    def precision(self) -> Precision:
        """How sure a median is to be."""
        alone = (self.processes, self.max_processes, self.interval_percent, self.max_minutes)
        return Precision(*alone, self.pairs, self.max_pairs, self.pair_percent)


@dataclass(frozen=True, kw_only=True)
class ExperimentConfig(MeasuringConfig, JobConfig):
    """What an experiment's config holds beside its own fields and `threads`, of which some experiments have a list."""

    tvm_remote: Any
    tvm_branch: str | None
    tvm_options: Mapping[str, str] | None
    tvms: tuple[str, ...] | None
    hosts: tuple[str, ...] | None
    size: str
    rerun_setup: bool
    sandbox: bool
