"""What TVM's code consists of on eight targets, none of which has to be here: exact numbers, without noise."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import comparing
import cuda
import measuring
import metrics_text
import workloads
from generated import Generated
from keeping import Keep
from targets import TARGETS
from workloads import Workload

from tvmdash import common, structured
from tvmdash.contracts import code_changes
from tvmdash.contracts.code_changes import CodeChanges
from tvmdash.exp_templates import Axis, Engine, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.plot_util.specs import Plot
from tvmdash.records import data_stamps
from tvmdash.relax_util.workloads import PASSES_TOLD, engine_facts
from tvmdash.summary_util import Summary

TVM = Engine("tvm", facts=engine_facts)
IMPOSSIBLE = frozenset({("webgpu", "code.decoder")})
"""WGSL has no 64-bit integers, which are what the decoder's tokens are."""


@dataclass(frozen=True, kw_only=True)
class CodeMetricsConfig(ExperimentConfig):
    """As fields.json describes it."""

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
    axes = (Axis("target", "build_config"), *(Axis(name, "workload_args") for name in workloads.ARGUMENTS))

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
        """The point's one compilation; its numbers go into the record, and what it took is told by the timer."""
        generated = measuring.measure(point, seed, is_counted=_is_counted(point, config))
        keep = Keep.of_environment()
        if keep is None:
            return _make_prepared(generated, {})
        keep.begin(comparing.reference_key())
        wanted = [_describe(other, config) for other in self.points(config) if other.group == point.group]
        kept = keep.write(point, generated)
        return _make_prepared(generated, comparing.describe_others(keep, point, kept, wanted, seed))

    def leave_files(self, data: Path, destination: Path) -> None:
        """`code_changes.json`, where there is any: what changed tonight, with TIR and generated code of both sides."""
        keep, stamps = Keep.of_environment(), data_stamps(data)
        if keep is not None and stamps:
            night = common.read_json(data / f"data_{stamps[-1]}.json")
            points = list(comparing.read_changes(keep, night["records"]))
            if points:
                changes = structured.to_json(CodeChanges(stamps[-1], code_changes.bound_texts(points)))
                value = {"schema_version": code_changes.SCHEMA_VERSION, **changes}
                common.write_json(destination / code_changes.FILE, value)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Tonight's numbers as tables of workloads and targets, and their lines over nights."""
        return metrics_text.plots(super().plots(history), history)

    def summary(self, history: History) -> Summary:
        """The default words without the fastest and slowest compilation, and the totals of each target."""
        return metrics_text.summary(super().summary(history), history)


def _workloads(config: CodeMetricsConfig) -> Iterator[Workload]:
    return itertools.chain(
        workloads.of_networks(config.networks),
        workloads.of_operators(config.operators, config.shapes, config.dtypes),
        workloads.of_transformer(config.models, config.phases, config.lengths),
    )


def _describe(point: Point, config: CodeMetricsConfig) -> dict[str, Any]:
    """The point as another process is asked for it."""
    return {
        "workload": point.workload,
        "values": dict(point.values),
        "target": point.target,
        "is_counted": _is_counted(point, config),
    }


def _is_counted(point: Point, config: CodeMetricsConfig) -> bool:
    """Whether its instructions are: not in float16, each of whose operations is a call on such a processor."""
    return point.name in config.counted and point.values.get("dtype") != "float16"


def _text(target: str) -> str:
    described = {name: value for name, value in TARGETS[target].items() if name != "host"}
    return " ".join(f"{name}={value}" for name, value in described.items())


def _make_prepared(generated: Generated, others: Mapping[str, Any]) -> Prepared:
    """One sample, taken already: the compilation's time."""
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


if __name__ == "__main__":
    raise SystemExit(CodeMetrics().main())
