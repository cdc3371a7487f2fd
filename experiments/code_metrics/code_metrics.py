"""The content of TVM's code on eight targets, none of which has to be here: exact numbers, without noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import code_workloads
import comparing
import cuda
import measuring
from code_workloads import Workload
from generated import Generated
from keeping import Keep
from targets import TARGETS

from tvmdash import common
from tvmdash.common import structured
from tvmdash.exp_templates import Axis, Engine, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import plots as series_plots
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.records import code_changes, data_stamps
from tvmdash.records.code_changes import CodeChanges
from tvmdash.relax_util.workloads import PASSES_TOLD, engine_facts
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_exact, format_list

TVM = Engine("tvm", facts=engine_facts)
IMPOSSIBLE = frozenset({("webgpu", "code.decoder")})
"""WGSL has no 64-bit integers, which are what the decoder's tokens are."""


@dataclass(frozen=True, kw_only=True)
class CodeMetricsConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    targets: tuple[str, ...]
    networks: tuple[str, ...]
    operators: tuple[str, ...]
    shapes: int
    dtypes: tuple[str, ...]
    models: tuple[str, ...]
    phases: tuple[str, ...]
    lengths: tuple[int, ...]
    counted: tuple[str, ...]
    threads: int


class CodeMetrics(Experiment[CodeMetricsConfig]):
    """Every workload on every target; a process for each target. What is timed is the compilation."""

    engines = (TVM,)
    axes = (Axis("target", "build_config"), *(Axis(name, "workload_args") for name in code_workloads.ARGUMENTS))

    def packages(self, config: CodeMetricsConfig) -> Sequence[Engine]:
        return (cuda.COMPILERS,) if any(TARGETS[target]["kind"] == "cuda" for target in config.targets) else ()

    def points(self, config: CodeMetricsConfig) -> list[Point]:
        return [
            Point(workload.name, {"target": target, **workload.args}, group=target, target=_text(target))
            for target in config.targets
            for workload in _workloads(config)
            if (target, workload.name) not in IMPOSSIBLE
        ]

    def prepare(self, point: Point, config: CodeMetricsConfig, seed: int) -> Prepared:
        """Make the point's one compilation; its numbers go into the record, and what it took is told by the timer."""
        generated = measuring.measure(point, seed, is_counted=_is_counted(point, config))
        keep = Keep.of_environment()
        if keep is None:
            return _make_prepared(generated, {})
        keep.begin(comparing.reference_key())
        wanted = [_describe(other, config) for other in self.points(config) if other.group == point.group]
        kept = keep.write(point, generated)
        return _make_prepared(generated, comparing.describe_others(keep, point, kept, wanted, seed))

    def leave_files(self, data: Path, destination: Path) -> None:
        """Write `code_changes.json`, if anything changed tonight, with TIR and generated code of both sides."""
        keep, stamps = Keep.of_environment(), data_stamps(data)
        if keep is not None and stamps:
            night = common.read_json(data / f"data_{stamps[-1]}.json")
            points = list(comparing.read_changes(keep, night["records"]))
            if points:
                changes = structured.to_json(CodeChanges(stamps[-1], code_changes.bound_texts(points)))
                value = {"schema_version": code_changes.SCHEMA_VERSION, **changes}
                common.write_json(destination / code_changes.FILE, value)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw tonight's numbers as tables of workloads and targets, and their lines over nights."""
        return plots(super().plots(history), history)

    def summary(self, history: History) -> Summary:
        """Replace the fastest and slowest compilation of the default words by the totals of each target."""
        return summary(super().summary(history), history)


def _workloads(config: CodeMetricsConfig) -> Iterator[Workload]:
    return itertools.chain(
        code_workloads.of_networks(config.networks),
        code_workloads.of_operators(config.operators, config.shapes, config.dtypes),
        code_workloads.of_transformer(config.models, config.phases, config.lengths),
    )


def _describe(point: Point, config: CodeMetricsConfig) -> dict[str, Any]:
    return {
        "workload": point.workload,
        "values": dict(point.values),
        "target": point.target,
        "is_counted": _is_counted(point, config),
    }


def _is_counted(point: Point, config: CodeMetricsConfig) -> bool:
    """Tell whether its instructions are: not in float16, each of whose operations is a call on such a processor."""
    return point.name in config.counted and point.values.get("dtype") != "float16"


def _text(target: str) -> str:
    described = {name: value for name, value in TARGETS[target].items() if name != "host"}
    return " ".join(f"{name}={value}" for name, value in described.items())


def _make_prepared(generated: Generated, others: Mapping[str, Any]) -> Prepared:
    """Make one sample, taken already: the compilation's time."""
    elapsed_ns = round(generated.compile_ms * 1e6)
    details: dict[str, Any] = {
        **generated.numbers,
        **generated.facts,
        **others,
        "functions": {name: function.to_json() for name, function in generated.functions.items()},
        "module_hash": generated.hash,
        "passes_ms": {name: round(ms, 3) for name, ms in generated.passes_ms[:PASSES_TOLD]},
    }
    if generated.missing:
        details["missing"] = dict(generated.missing)
    return Prepared(
        timer=lambda _number, repeat: [elapsed_ns] * max(1, repeat),
        memory_bytes=generated.planned_memory_bytes,
        passes_ms=generated.passes_ms,
        details=details,
    )


TOLD = ("kernels", "instructions", "registers", "spills", "shared_memory", "code_size", "source_size")

DRAWN = ("registers", "code_size", "source_size", "shared_memory", "instructions")
"""Those that have a graph of tonight."""


def plots(usual: Mapping[str, Plot], history: History) -> Mapping[str, Plot]:
    """Draw the lines over nights, and each of tonight's numbers of whole networks, by target."""
    lines = {name: plot for name, plot in usual.items() if name not in {"tonight", "tonight_map"}}
    return {**{metric: bars for metric in DRAWN if (bars := _draw(history, metric))}, **lines}


def _draw(history: History, metric: str) -> GroupedBar | None:
    found = {
        (str(series.labels["workload"]).partition(".")[2], str(series.labels["build_config"]["target"])): series
        for series in series_plots.measured_tonight(history, {metric})
        if "batch" in series.labels["workload_args"]
    }
    if not found:
        return None
    networks, targets = (tuple(dict.fromkeys(name[place] for name in found)) for place in (0, 1))
    rows = tuple(tuple(_estimate(found.get((network, target))) for target in targets) for network in networks)
    title = f"{history.experiment}, night {history.stamps[-1]}: {metric.replace('_', ' ')}"
    return GroupedBar(title, next(iter(found.values())).unit, networks, targets, rows, lower_is_better=True)


def _estimate(series: Series | None) -> Estimate | None:
    return None if series is None else Estimate(series.values[-1], None, None)


def summary(usual: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `usual` by what each target's code adds up to."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Write a line for each target: its numbers over all workloads."""
    totals: dict[str, dict[tuple[str, str], float]] = {}
    for series in series_plots.measured_tonight(history, set(TOLD)):
        of_target = totals.setdefault(str(series.labels["build_config"]["target"]), {})
        name = (series.metric, series.unit)
        of_target[name] = of_target.get(name, 0.0) + series.values[-1]
    lines = []
    for target, numbers in totals.items():
        ordered = sorted(numbers.items(), key=lambda item: TOLD.index(item[0][0]))
        told = [_format(metric, unit, value) for (metric, unit), value in ordered]
        lines.append(f"- {target}: {format_list(told, len(TOLD))}")
    return lines


def _format(metric: str, unit: str, value: float) -> str:
    number = format_exact(value, unit)
    return number if unit == metric else f"{number} of {metric.replace('_', ' ')}"


if __name__ == "__main__":
    raise SystemExit(CodeMetrics().main())
