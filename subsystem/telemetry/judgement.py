"""Disturbances of a run, in sentences; none where all was well."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmdash.machine.telemetry import Telemetry
from tvmdash.text import format_bytes, three_digits

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]

STEADY_S = 10.0
"""A clock counts as fallen where its median over this time is low; shorter dips are not judged."""
BUSY_SHARE = 0.1
_FEWEST = 5
_GPU_LEVEL_PERCENT = 25.0


@dataclass(frozen=True)
class Limits:
    """Values from which on something is abnormal."""

    throttle_percent: float
    others_cores: float
    stolen_cores: float
    memory_percent: float


@dataclass(frozen=True)
class Fall:
    """A clock that was `high_mhz` and later, under the same load, `low_mhz`."""

    high_mhz: float
    low_mhz: float
    at_s: float

    @property
    def percent(self) -> float:
        return (1 - self.low_mhz / self.high_mhz) * 100


def abnormal(run: Telemetry, limits: Limits) -> list[str]:
    """Write a sentence for each thing that may have disturbed the measurement."""
    if len(run.seconds) < _FEWEST:
        return []
    found = (_throttled(run, limits), _slowed(run), _lost(run), _others(run, limits), _stolen(run, limits))
    return [*itertools.chain.from_iterable(found), *_memory(run, limits)]


def _throttled(run: Telemetry, limits: Limits) -> Iterator[str]:
    busy = [
        _sum(own, others)
        for own, others in zip(run.column("busy_cores.own"), run.column("busy_cores.others"), strict=True)
    ]
    clocks = {"The processor": (run.column("cpu_mhz_max"), busy)}
    for number, clock in run.named("gpu_mhz").items():
        used = run.column(f"gpu_percent.{number}")
        clocks[f"GPU {number}"] = (clock, [None if value is None else value / _GPU_LEVEL_PERCENT for value in used])
    for name, (clock, load) in clocks.items():
        fall = deepest_fall(run.seconds, clock, load)
        if fall is not None and fall.percent > limits.throttle_percent:
            yield (
                f"{name} was throttled: {three_digits(fall.at_s)} s into the run its clock was {fall.percent:.0f} %"
                f" lower than before under the same load ({fall.high_mhz:.0f} to {fall.low_mhz:.0f} MHz)."
            )


def _slowed(run: Telemetry) -> Iterator[str]:
    """Report the throttling that GPUs announce themselves."""
    for name, column in run.named("gpu_throttled").items():
        number, _, by = name.partition(" ")
        known = [value for value in column if value is not None]
        share = sum(known) / len(known) if known else 0.0
        if share >= BUSY_SHARE:
            yield f"GPU {number} was throttled by {by} during {share:.0%} of the run."


def _lost(run: Telemetry) -> Iterator[str]:
    for number, column in run.named("gpu_temperature_c").items():
        seconds = [second for second, value in zip(run.seconds, column, strict=True) if value is not None]
        if seconds and column[-1] is None:
            yield f"GPU {number} stopped responding {three_digits(seconds[-1])} s into the run."


def _sum(left: float | None, right: float | None) -> float | None:
    return None if left is None or right is None else left + right


def deepest_fall(seconds: Sequence[float], clock: Sequence[float | None], load: Sequence[float | None]) -> Fall | None:
    """Find the deepest fall of `clock` below what it was earlier at the same load; None without two loaded moments.

    The clock is its median over `STEADY_S` of steady load: nine tenths of its readings round to the same whole number.
    A load below one half is idle, and an idle core may clock down as it likes.
    """
    import numpy as np

    step = float(np.median(np.diff(seconds))) if len(seconds) > 1 else STEADY_S
    width = max(3, round(STEADY_S / step)) if step > 0 else 3
    if len(seconds) < 2 * width:
        return None
    steady, level = np.median(_windows(clock, width), axis=1), _levels(load, width)
    ends = np.asarray(seconds)[width - 1 :]
    worst: Fall | None = None
    for wanted in np.unique(level[np.isfinite(level) & (level >= 1)]):
        at = np.flatnonzero((level == wanted) & np.isfinite(steady))
        if not len(at):
            continue
        before = np.maximum.accumulate(steady[at])
        deepest = int(np.argmin(steady[at] / before))
        fall = Fall(float(before[deepest]), float(steady[at][deepest]), float(ends[at][deepest]))
        if worst is None or fall.percent > worst.percent:
            worst = fall
    return worst


def _windows(column: Sequence[float | None], width: int) -> Floats:
    """Return each `width` readings in a row, as rows; NaN where a reading is missing."""
    import numpy as np

    return np.lib.stride_tricks.sliding_window_view(np.array(column, dtype=float), width)


def _levels(load: Sequence[float | None], width: int) -> Floats:
    """Return the whole number of each window that nine tenths of its readings round to; NaN where there is none."""
    import numpy as np

    low, high = np.round(np.quantile(_windows(load, width), (0.1, 0.9), axis=1))
    return np.where(low == high, low, np.nan)


def _others(run: Telemetry, limits: Limits) -> Iterator[str]:
    known = [value for value in run.column("busy_cores.others") if value is not None]
    least = min(limits.others_cores, run.cores / 2)  # on one core, a whole one is more than others can take
    busy = [value for value in known if value >= least]
    if known and len(busy) >= BUSY_SHARE * len(known):
        kept, share = three_digits(sum(busy) / len(busy)), len(busy) / len(known)
        cores = f"{run.cores} core{'' if run.cores == 1 else 's'}"
        yield f"Other programs kept {kept} of {cores} busy during {share:.0%} of the run."


def _stolen(run: Telemetry, limits: Limits) -> Iterator[str]:
    known = [value for value in run.column("stolen_cores") if value is not None]
    mean = sum(known) / len(known) if known else 0.0
    if mean >= limits.stolen_cores:
        yield f"The hypervisor gave the time of {three_digits(mean)} cores on average to other machines during the run."


def _memory(run: Telemetry, limits: Limits) -> Iterator[str]:
    known = [value for value in run.column("memory_available_bytes") if value is not None]
    least = min(known, default=None)
    if least is not None and least < run.memory_total_bytes * limits.memory_percent / 100:
        total = format_bytes(run.memory_total_bytes)
        yield f"Memory ran low: at one point only {format_bytes(least)} of {total} were available."
