"""What a call costs: call-heavy programs in the virtual machine's bytecode, compiled, and out of a shared library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import costs
from executors import MODES, executor
from programs import Sizes, arguments, program

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import SectionKind, Summary


@dataclass(frozen=True, kw_only=True)
class ExecutorOverheadConfig(Sizes, ExperimentConfig):
    """As fields.json describes it."""

    programs: tuple[str, ...]
    executors: tuple[str, ...]
    threads: int
    mcpu: str


class ExecutorOverhead(Experiment[ExecutorOverheadConfig]):
    """Every program on every executor; a process for each program, as deep recursion may end one."""

    engines = (workloads.TVM,)
    axes = (
        Axis("executor", "build_config"),
        *(Axis(name, "workload_args") for name in ("calls", "operators", "arguments", "n", "batch")),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: ExecutorOverheadConfig) -> list[Point]:
        target = workloads.target_text(config)
        return [
            Point(_workload(name), {"executor": executor, **arguments(name, config), **shared}, name, target)
            for shared in [{"threads": config.threads}]
            for name in config.programs
            for executor in config.executors
        ]

    def prepare(self, point: Point, config: ExecutorOverheadConfig, seed: int) -> Prepared:
        what, how = program(point.group, arguments(point.group, config), seed), point.values["executor"]
        options = CompileOptions(json.loads(point.target), what.pipeline, exec_mode=MODES[how][0])
        compiled = relax_util.compile_module(what.build(), options)
        made = executor(how, compiled, what.inputs, config.threads)
        ready = workloads.make_prepared(
            compiled, made.timer, lambda: _checked(made.run(), what.expected), details=made.facts
        )
        return replace(ready, inputs=what.inputs)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """The default graphs, and what one call costs."""
        return {**super().plots(history), "cost_of_a_call": costs.cost_plot(history)}

    def summary(self, history: History) -> Summary:
        """The default words without each program's fastest and slowest: instead what a call costs on each executor."""
        return super().summary(history).without(SectionKind.EXTREMES).with_lines(costs.summarize_history(history))


def _workload(name: str) -> str:
    return f"network.{name}" if name == "mlp" else f"executor.{name}"


def _checked(answer: Array, expected: Array) -> dict[str, float]:
    """Whole numbers exactly, float32 within its tolerance."""
    if answer.dtype.kind != "i":
        return accuracy.check_answer(answer, expected)
    return {**accuracy.check_answer(answer, expected, "float64"), "tolerance": 0.0}


if __name__ == "__main__":
    raise SystemExit(ExecutorOverhead().main())
