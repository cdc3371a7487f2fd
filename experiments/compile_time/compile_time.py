"""A compiler's own nightly: how long import, frontend, passes and code generation take, and how much memory."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import phase_text
from compilation import IMPORT, PHASES, TOTAL, Cost, Source, compile_once, import_tvm, timed_facts

from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import engine_store
from tvmdash.experiment.engines import Engine
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import Summary

TVM = Engine("tvm", facts=timed_facts)
ONNX = Engine("onnx", requirements=("onnx==1.23.2", "protobuf==7.36.2"))
"""It measures nothing: setup installs it, and TVM's ONNX frontend reads models with it."""


@dataclass(frozen=True, kw_only=True)
class CompileTimeConfig(ExperimentConfig):
    """As fields.json describes it."""

    networks: tuple[str, ...]
    frontends: tuple[str, ...]
    pipeline: str
    batch: int
    threads: int
    mcpu: str


class CompileTime(Experiment[CompileTimeConfig]):
    """Every phase of every network's compilation; a process for each compilation, so that each is its first."""

    engines = (TVM,)
    axes = (
        Axis("phase", "build_config"),
        Axis("frontend", "build_config"),
        Axis("pipeline", "build_config"),
        Axis("batch", "workload_args"),
        Axis("threads", "runtime_config"),
    )

    def packages(self, config: CompileTimeConfig) -> Sequence[Engine]:
        return (ONNX,) if "onnx" in config.frontends else ()

    def points(self, config: CompileTimeConfig) -> list[Point]:
        target = workloads.target_text(config)
        shared = {"threads": config.threads}
        imported = Point("compile.import_tvm", {"phase": IMPORT, **shared}, group=IMPORT, target=target)
        more = {"pipeline": config.pipeline, "batch": config.batch, **shared}
        return [imported] + [
            Point(
                f"compile.{network}",
                {"phase": phase, "frontend": frontend, **more},
                group=f"{network} from {frontend}",
                target=target,
            )
            for network in config.networks
            for frontend in config.frontends
            for phase in PHASES
        ]

    def prepare(self, point: Point, config: CompileTimeConfig, seed: int) -> Prepared:
        """The process's one compilation, done when its first phase is asked for; the timer tells what it took."""
        phase = point.values["phase"]
        if phase == IMPORT:
            return _make_prepared(phase, import_tvm())
        if point.values["frontend"] == "onnx":
            self._see_onnx()
        source = Source(point.workload.partition(".")[2], point.values["frontend"], config.batch, seed)
        options = CompileOptions(json.loads(point.target), config.pipeline)
        done = compile_once(source, options, config.threads)
        if phase != TOTAL:
            return _make_prepared(phase, Cost(done.cost.phases_ms, {}, {}), check=done.check)
        return _make_prepared(
            phase,
            done.cost,
            check=done.check,
            code_size_bytes=done.compiled.code_size_bytes,
            memory_bytes=done.compiled.planned_memory_bytes,
            passes_ms=done.compiled.pass_times_ms,
        )

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Each network's lines over nights, the totals of tonight, and what they consist of."""
        return {**super().plots(history), **phase_text.plots(history)}

    def summary(self, history: History) -> Summary:
        """The default words, but of each compilation what it consisted of instead of its shortest phase."""
        return phase_text.summary(super().summary(history), history)

    def _see_onnx(self) -> None:
        """Let this process import onnx, from where setup installed it."""
        engine = engine_store.find(self.folder / "setup", ONNX)
        if engine.reason:
            raise DashboardError(f"the package onnx, which TVM's ONNX frontend needs, is not here: {engine.reason}")
        if engine.path not in sys.path:
            sys.path.insert(0, engine.path)


def _make_prepared(phase: str, cost: Cost, **known: Any) -> Prepared:
    """One sample, taken already: a process has only one first time."""
    elapsed_ns = round(cost.phases_ms[phase] * 1e6)
    return Prepared(
        timer=lambda _number, repeat: [elapsed_ns] * max(1, repeat), details={**cost.memory, **cost.told}, **known
    )


if __name__ == "__main__":
    raise SystemExit(CompileTime().main())
