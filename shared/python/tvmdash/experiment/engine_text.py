"""TVM against each other engine tonight, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tvmdash.machine.devices import CPU, FIELD, device_of
from tvmdash.series.store import Series
from tvmdash.summary_util import format_ratio, geometric_mean_ratio

_SAME = ("workload", "workload_args", "runtime_config")
"""Columns on which two engines must agree for the same work."""


def compare_with_each(series: Sequence[Series], ours: str = "tvm") -> list[str]:
    """Return a line for each engine beside `ours`: the geometric mean over their common work, each at its best.

    `series` are run times whose last values are tonight's.
    """
    return [f"- {line}" for line in describe(((item.labels, item.values[-1]) for item in series), ours)]


def describe(times: Iterable[tuple[Mapping[str, Any], float]], ours: str = "tvm") -> list[str]:
    """Compare as `compare_with_each`, from labels and values, without list marks; each device by itself."""
    of_device: dict[str, dict[str, dict[str, float]]] = {}
    for labels, value in times:
        workload = json.dumps([labels.get(column) for column in _SAME], sort_keys=True)
        best = of_device.setdefault(device_of(labels), {})
        of_engine = best.setdefault(str(labels.get("engine", "")), {})
        of_engine[workload] = min(value, of_engine.get(workload, value))
    return [
        _format_line(engine, best[ours], theirs) + ("" if device == CPU else f", on {device}")
        for device, best in of_device.items()
        if ours in best
        for engine, theirs in sorted(best.items())
        if engine != ours
    ]


def compare_devices(series: Sequence[Series]) -> list[str]:
    """Return a line for each device: the geometric mean over what one engine ran there and on the processor."""
    by_device: dict[str, dict[str, float]] = {}
    for item in series:
        device = device_of(item.labels)
        runtime = {name: value for name, value in item.labels.get("runtime_config", {}).items() if name != FIELD}
        same = [item.labels.get(column) for column in ("workload", "workload_args", "build_config", "engine")]
        by_device.setdefault(device, {})[json.dumps([*same, runtime], sort_keys=True)] = item.values[-1]
    here, lines = by_device.pop(CPU, {}), []
    for device, times in by_device.items():
        both = [(here[point], ms) for point, ms in times.items() if point in here]
        lines += [f"- {device} against {CPU}: {format_ratio(geometric_mean_ratio(both))}"] if both else []
    return lines


def _format_line(engine: str, ours: dict[str, float], theirs: dict[str, float]) -> str:
    both = [(theirs[workload], ours[workload]) for workload in ours if workload in theirs]
    missing = len(ours.keys() ^ theirs.keys())
    without = f"; {missing} more only one of them did" if missing else ""
    if not both:
        return f"TVM and {engine} have no workload in common{without}"
    return f"TVM at its best against {engine}: {format_ratio(geometric_mean_ratio(both))}{without}"
