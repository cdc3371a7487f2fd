"""What TVM's code consists of on eight targets, none of which has to be here: exact numbers, without noise."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import counting
import cuda
import metrics_text
import workloads
from generated import Generated, generate
from targets import TARGETS
from workloads import Workload

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Engine, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import engine_store
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util.workloads import PASSES_TOLD, engine_facts
from tvmdash.summary_util import Summary

TVM = Engine("tvm", facts=engine_facts)
COUNTED_TARGET = "x86_64"
"""The one whose code is executed."""
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

    engines = (TVM, cuda.COMPILERS)
    axes = (Axis("target", "build_config"), *(Axis(name, "workload_args") for name in workloads.ARGUMENTS))

    def points(self, config: CodeMetricsConfig) -> list[Point]:
        return [
            Point(workload.name, {"target": target, **workload.args}, group=target, target=_text(target))
            for target in config.targets
            for workload in _workloads(config)
            if (target, workload.name) not in IMPOSSIBLE
        ]

    def prepare(self, point: Point, config: CodeMetricsConfig, seed: int) -> Prepared:
        """The point's one compilation; its numbers go into the record, and what it took is told by the timer."""
        target, workload = str(point.values["target"]), _find(point, config)
        self._see_cuda_compilers(target)
        module, inputs = workload.make(seed)
        generated = generate(module, target)
        return _make_prepared(_count(generated, inputs) if _is_counted(point, config) else generated)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Tonight's numbers as tables of workloads and targets, and their lines over nights."""
        return metrics_text.plots(super().plots(history), history)

    def summary(self, history: History) -> Summary:
        """The default words without the fastest and slowest compilation, and the totals of each target."""
        return metrics_text.summary(super().summary(history), history)

    def _see_cuda_compilers(self, target: str) -> None:
        """Let this process find NVIDIA's compilers where setup installed them; without them registers are missing."""
        if TARGETS[target]["kind"] != "cuda":
            return
        engine = engine_store.find(self.folder / "setup", cuda.COMPILERS)
        if not engine.reason and engine.path not in sys.path:
            sys.path.append(engine.path)


def _workloads(config: CodeMetricsConfig) -> Iterator[Workload]:
    return itertools.chain(
        workloads.of_networks(config.networks),
        workloads.of_operators(config.operators, config.shapes, config.dtypes),
        workloads.of_transformer(config.models, config.phases, config.lengths),
    )


def _find(point: Point, config: CodeMetricsConfig) -> Workload:
    args = {name: value for name, value in point.values.items() if name != "target"}
    for workload in _workloads(config):
        if (workload.name, workload.args) == (point.workload, args):
            return workload
    raise DashboardError(f"there is no {point.workload} with {args} in this config.")


def _is_counted(point: Point, config: CodeMetricsConfig) -> bool:
    return point.values["target"] == COUNTED_TARGET and point.name in config.counted


def _count(generated: Generated, inputs: Sequence[Array]) -> Generated:
    """With the instructions that each function executes in one call of `main`, or why they were not counted."""
    try:
        found = counting.count(generated.executable, inputs)
    except counting.NotCountedError as error:
        return replace(generated, missing={**generated.missing, counting.INSTRUCTIONS: str(error)})
    if found.by_processor is not None:
        generated = replace(generated, facts={**generated.facts, "processor_instructions": found.by_processor})
    return generated.counted(counting.INSTRUCTIONS, found.instructions)


def _text(target: str) -> str:
    described = {name: value for name, value in TARGETS[target].items() if name != "host"}
    return " ".join(f"{name}={value}" for name, value in described.items())


def _make_prepared(generated: Generated) -> Prepared:
    """One sample, taken already: the compilation's time."""
    elapsed_ns = round(generated.compile_ms * 1e6)
    details: dict[str, Any] = {
        **generated.numbers,
        **generated.facts,
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
