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
    lines = [*summarize_history(history), *summarize_kinds(history), *devices]
    return default.without(SectionKind.ENGINES).with_lines(lines, before=SectionKind.EXTREMES)


def summarize_history(history: History) -> list[str]:
    """A line for each pair of a TVM variant and a rival that have workloads in common."""
    times: dict[str, dict[str, float]] = {}
    for series in measured_tonight(history, {"run_time"}):
        workload = json.dumps([series.labels.get(column) for column in _SAME], sort_keys=True)
        times.setdefault(_engine(series), {})[workload] = series.values[-1]
    ours = sorted((name for name in times if name.startswith("tvm")), reverse=True)
    lines = [_line(times, our) for our in ours]
    if {"tvm untuned", "tvm tuned"} <= times.keys() and (pairs := _pairs(times["tvm untuned"], times["tvm tuned"])):
        lines.append(f"- TVM tuned against untuned: {format_ratio(geometric_mean_ratio(pairs))}")
    return [line for line in lines if line]


def summarize_kinds(history: History) -> list[str]:
    """A line for each data type and kind of shapes: TVM's times and largest error there against float32, static."""
    times: dict[str, dict[str, float]] = {}
    errors: dict[str, float] = {}
    for series in measured_tonight(history, {"run_time", "largest_error"}):
        kind, point = _kind(series)
        if series.metric == "run_time":
            times.setdefault(kind, {})[point] = series.values[-1]
        else:
            errors[kind] = max(series.values[-1], errors.get(kind, 0.0))
    usual, lines = times.pop("", {}), []
    for kind, own in times.items():
        pairs = _pairs(usual, own)
        if pairs:
            ratio = format_ratio(geometric_mean_ratio(pairs))
            lines.append(f"- TVM in {kind} against float32: {ratio}; largest error {errors.get(kind, 0.0):.2g}")
    return lines


def _kind(series: Series) -> tuple[str, str]:
    """The data type and kind of shapes where they are not the usual ones, and the point without them."""
    labels = series.labels
    args, build = dict(labels.get("workload_args", {})), dict(labels.get("build_config", {}))
    dtype, shapes = str(args.pop("dtype", "")), build.pop("shapes", "")
    kind = " with ".join(filter(None, [dtype, f"{shapes} shapes" if shapes else ""]))
    same = [labels.get("workload"), labels.get("engine"), args, build, labels.get("runtime_config")]
    return kind, json.dumps(same, sort_keys=True)


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
    build = series.labels.get("build_config", {})
    variant = " ".join(filter(None, [str(build.get("variant", "")), str(build.get("shapes", ""))]))
    engine = str(series.labels.get("engine", ""))
    return engine if variant == "default" else f"{engine} {variant}"
