"""A run's telemetry as a picture, and in numbers for the page."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from outliers import MAX_TOLD, Outlier

from tvmdash.machine.telemetry import SECONDS, Telemetry
from tvmdash.plot_util.courses import Course, Panel, Span, Track

_MAX_CORES = 4
_LEAST_STOLEN = 0.01


def course(run: Telemetry, outliers: Sequence[Outlier]) -> Course:
    """Temperatures, clocks, load and memory of the run, with the trials shaded that have outlying samples."""
    cores = {f"core {name}": column for name, column in run.named("cpu_mhz").items()}
    spread = {name: run.column(f"cpu_mhz_{name}") for name in ("max", "median", "min")}
    panels = (
        _panel("°C", {**run.named("temperature_c"), **_of_gpus(run, "gpu_temperature_c")}),
        _panel(
            "MHz",
            cores if 0 < len(cores) <= _MAX_CORES else {f"core clock, {name}": item for name, item in spread.items()},
        ),
        _panel("cores", _load(run)),
        _panel("GPU MHz", _of_gpus(run, "gpu_mhz")),
        _panel("GPU %", _of_gpus(run, "gpu_percent")),
        _panel("GPU W", _of_gpus(run, "gpu_power_w")),
        _panel("slowed", _of_throttled_gpus(run)),
        _panel("GB", {"memory available": _in_gb(run.column("memory_available_bytes")), **_gpu_memory(run)}),
    )
    spans = tuple(
        Span(item.begin_s, item.end_s, f"{item.label}: {item.times:.1f}x")
        for item in sorted(outliers[:MAX_TOLD], key=lambda item: item.begin_s)
    )
    title = f"{run.experiment}, night {run.stamp}: the machine during the run"
    return Course(title, tuple(run.seconds), tuple(panel for panel in panels if panel.tracks), spans)


def _load(run: Telemetry) -> dict[str, list[float | None]]:
    stolen = run.column("stolen_cores")
    known = {
        "kept busy by the run": run.column("busy_cores.own"),
        "kept busy by others": run.column("busy_cores.others"),
        "load average, 1 min": run.column("load_1_min"),
    }
    shown = {"taken by the hypervisor": stolen} if any((value or 0.0) > _LEAST_STOLEN for value in stolen) else {}
    return {**known, **shown}


def _of_gpus(run: Telemetry, prefix: str) -> dict[str, list[float | None]]:
    return {f"GPU {number}": column for number, column in run.named(prefix).items()}


def _of_throttled_gpus(run: Telemetry) -> dict[str, list[float | None]]:
    """1 where something slowed a GPU down, of what ever did."""
    return {
        f"GPU {number}, by {by}": column
        for name, column in run.named("gpu_throttled").items()
        for number, _, by in (name.partition(" "),)
        if any(column)
    }


def _gpu_memory(run: Telemetry) -> dict[str, list[float | None]]:
    used = _of_gpus(run, "gpu_memory_used_bytes")
    return {f"{name}, memory in use": _in_gb(column) for name, column in used.items()}


def _in_gb(column: Iterable[float | None]) -> list[float | None]:
    return [None if value is None else value / 1e9 for value in column]


def _panel(unit: str, columns: Mapping[str, Sequence[float | None]]) -> Panel:
    there = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    return Panel(unit, tuple(Track(name, tuple(column)) for name, column in there.items()))


def ranges(run: Telemetry) -> dict[str, tuple[float, float, float]]:
    """Least, median and greatest of each column."""
    known = {name: [value for value in column if value is not None] for name, column in run.columns.items()}
    return {
        name: (min(values), statistics.median(values), max(values))
        for name, values in known.items()
        if values and name != SECONDS
    }
