"""How TVM, tuned and untuned, stands to each rival tonight, in words."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tvmdash.exp_templates import History
from tvmdash.experiment import engine_text
from tvmdash.experiment.plots import measured_tonight
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio

_SAME = ("workload", "workload_args", "runtime_config")
"""The columns on which two engines agree where they did the same."""


def summary(default: Summary, history: History) -> Summary:
    """`default`, its lines on TVM at its best replaced by a line for each of TVM's variants and each rival."""
    devices = engine_text.compare_devices(measured_tonight(history, {"run_time"}))
    lines = [*summarize_history(history), *devices]
    return default.without(SectionKind.ENGINES).with_lines(lines, before=SectionKind.EXTREMES)


def summarize_history(history: History) -> list[str]:
    """A line for each pair of a TVM variant and a rival that have workloads in common."""
    times: dict[str, dict[str, float]] = {}
    for series in measured_tonight(history, {"run_time"}):
        workload = json.dumps([series.labels.get(column) for column in _SAME], sort_keys=True)
        times.setdefault(_engine(series), {})[workload] = series.values[-1]
    ours = sorted((name for name in times if name.startswith("tvm")), reverse=True)
    lines = [_line(times, our) for our in ours]
    if len(ours) == 2 and (pairs := _pairs(times["tvm untuned"], times["tvm tuned"])):
        lines.append(f"- TVM tuned against untuned: {format_ratio(geometric_mean_ratio(pairs))}")
    return [line for line in lines if line]


def _line(times: Mapping[str, Mapping[str, float]], our: str) -> str:
    ratios = []
    for their in sorted(times):
        pairs = [] if their.startswith("tvm") else _pairs(times[their], times[our])
        if pairs:
            ratios.append(f"{format_ratio(geometric_mean_ratio(pairs))} than {their}")
    return f"- TVM {our.partition(' ')[2]}: {', '.join(ratios)}" if ratios else ""


def _pairs(before: Mapping[str, float], after: Mapping[str, float]) -> list[tuple[float, float]]:
    return [(before[workload], after[workload]) for workload in before if workload in after]


def _engine(series: Series) -> str:
    variant = str(series.labels.get("build_config", {}).get("variant", ""))
    engine = str(series.labels.get("engine", ""))
    return engine if variant == "default" else f"{engine} {variant}"
