"""Networks on TVM, untuned and tuned, and on its rivals: same weights, same input, same threads, same clock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import runners

from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import engine_text, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.experiment.plots import measured_tonight
from tvmdash.experiment.reference_engines import with_onnx
from tvmdash.networks import accuracy
from tvmdash.relax_util import workloads
from tvmdash.relax_util.lowering import FLOAT32
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio

ONNXRUNTIME, ONNXRUNTIME_CUDA = map(with_onnx, (reference_engines.ONNXRUNTIME, reference_engines.ONNXRUNTIME_CUDA))
RIVALS = (ONNXRUNTIME, ONNXRUNTIME_CUDA, reference_engines.TORCH, reference_engines.TORCH_CUDA)
VARIANTS: Mapping[str, tuple[str, str]] = {
    "tvm untuned": ("tvm", "untuned"),
    "tvm tuned": ("tvm", "tuned"),
    "onnxruntime": ("onnxruntime", "default"),
    "torch eager": ("torch", "eager"),
    "torch compile": ("torch", "compile"),
}
"""Engine and variant by the names that the config has for them."""
UNTUNED = "tvm untuned"
APART = ("tuned", "compile")
"""Variants with processes of their own: a database of the wrong version, or a C++ compiler, may end theirs."""
SLOW = {("vgg16", UNTUNED)}
"""Points that take many seconds a call: measured once."""


@dataclass(frozen=True, kw_only=True)
class CnnCompConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    threads: tuple[int, ...]
    networks: tuple[str, ...]
    engines: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]
    batches: tuple[int, ...]
    pipeline: str
    mcpu: str
    device: tuple[str, ...]
    per_operator: bool


class CnnComp(Experiment[CnnCompConfig]):
    """Every network on every engine; a process for each network and engine."""

    engines = (workloads.TVM, *RIVALS)
    compiles_ahead = True
    axes = (
        Axis("variant", "build_config"),
        Axis("batch", "workload_args"),
        Axis("dtype", "workload_args"),
        Axis("shapes", "build_config"),
        Axis("threads", "runtime_config"),
        AXIS,
    )

    def points(self, config: CnnCompConfig) -> list[Point]:
        return [
            self._point_of(network, named, {**kind, "batch": batch, "threads": threads}, config)
            for network in config.networks
            for named in config.engines
            for kind in _kinds(named, config)
            for batch in config.batches
            for threads in config.threads
        ]

    def _point_of(self, network: str, named: str, values: Mapping[str, Any], config: CnnCompConfig) -> Point:
        engine, variant = VARIANTS[named]
        threads = values["threads"]
        target = workloads.make_target(threads, config.mcpu) if engine == "tvm" else {"kind": "cpu"}
        return Point(
            f"network.{network}",
            {"variant": variant, **values},
            group=f"{network} {variant}" if variant in APART else network,
            target=json.dumps(target, sort_keys=True),
            engine=engine,
            once=(network, named) in SLOW,
        )

    def environment(self, point: Point, config: CnnCompConfig) -> dict[str, str]:
        """Have inductor compile in its own process."""
        return {**super().environment(point, config), "TORCHINDUCTOR_COMPILE_THREADS": "1"}

    def is_paired(self, point: Point, config: CnnCompConfig) -> bool:
        """Leave out what is tuned: the database belongs to the TVM that wrote it."""
        return super().is_paired(point, config) and point.values["variant"] != "tuned"

    def runs_on_devices(self, point: Point, config: CnnCompConfig) -> bool:
        """Admit what TVM schedules by itself: the databases of the experiment tuning are of the processor."""
        return super().runs_on_devices(point, config) and point.values["variant"] != "tuned"

    def prepare(self, point: Point, config: CnnCompConfig, seed: int) -> Prepared:
        problem = runners.problem(point.workload.partition(".")[2], point.values["batch"], seed)
        ready, answer = runners.RUNNERS[point.engine](problem, point, config.pipeline)
        return replace(
            ready,
            profile=ready.profile if config.per_operator else None,
            check=lambda: accuracy.check_answer(answer(), problem.expected, point.values.get("dtype", FLOAT32)),
            inputs=ready.inputs or (problem.x,),
            layout="NCHW",
        )

    def summary(self, history: History) -> Summary:
        """Add TVM tuned and untuned against each rival by itself to the default words."""
        return summary(super().summary(history), history)


def _kinds(named: str, config: CnnCompConfig) -> list[dict[str, str]]:
    """List the data types and kinds of shapes that this engine is measured in; what is usual is not named."""
    if named != UNTUNED:
        return [{}]
    usual = {FLOAT32, "static"}
    chosen = [{"dtype": dtype, "shapes": shapes} for dtype in config.dtypes for shapes in config.shapes]
    return [{name: value for name, value in kind.items() if value not in usual} for kind in chosen]


_SAME = ("workload", "workload_args", "runtime_config")
"""The columns on which two engines agree where they did the same."""


def summary(default: Summary, history: History) -> Summary:
    """Replace the lines of `default` on TVM at its best by one for each of TVM's variants and each rival."""
    devices = engine_text.compare_devices(measured_tonight(history, {"run_time"}))
    lines = [*summarize_history(history), *summarize_kinds(history), *devices]
    return default.without(SectionKind.ENGINES).with_lines(lines, before=SectionKind.EXTREMES)


def summarize_history(history: History) -> list[str]:
    """Write a line for each pair of a TVM variant and a rival that have workloads in common."""
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
    """Write a line for each data type and kind of shapes: TVM's times and largest error against float32, static."""
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
    """Split off the data type and kind of shapes where they are not the usual ones."""
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


if __name__ == "__main__":
    raise SystemExit(CnnComp().main())
