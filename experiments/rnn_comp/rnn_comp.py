"""Recurrent layers and cells: TVM against PyTorch and ONNX Runtime, with the same weights and inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import on_onnx
import on_relax
import on_torch
from recurrence import Case, Problem, problem

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.on_devices import AXIS
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer

ONNXRUNTIME = Engine("onnxruntime", (*reference_engines.ONNXRUNTIME.requirements, "onnx==1.23.2"))
"""With the package that makes its models."""
RIVALS = {"onnxruntime": on_onnx.prepare, "torch": on_torch.prepare}
LAYOUT = "TNC"
"""Length, batch, features: that of x and of a layer's outputs on every engine."""


@dataclass(frozen=True, kw_only=True)
class RnnCompConfig(ExperimentConfig):
    """As fields.json describes it."""

    kinds: tuple[str, ...]
    forms: tuple[str, ...]
    hidden: tuple[int, ...]
    lengths: tuple[int, ...]
    batch: int
    engines: tuple[str, ...]
    threads: int
    mcpu: str
    device: tuple[str, ...]


class RnnComp(Experiment[RnnCompConfig]):
    """Every recurrence at every size on every engine; a process for the layers on an engine, one for the cells."""

    engines = (workloads.TVM, ONNXRUNTIME, reference_engines.TORCH)
    axes = (
        Axis("hidden", "workload_args"),
        Axis("length", "workload_args"),
        Axis("batch", "workload_args"),
        Axis("lowering", "build_config"),
        Axis("threads", "runtime_config"),
        AXIS,
    )

    def points(self, config: RnnCompConfig) -> list[Point]:
        return [_point(case, engine, config) for case in _cases(config) for engine in config.engines]

    def prepare(self, point: Point, config: RnnCompConfig, seed: int) -> Prepared:
        asked, threads = problem(_case(point), seed), config.threads
        if point.engine == "tvm":
            return _on_tvm(asked, CompileOptions(json.loads(point.target)), threads, point.device)
        call, answers = RIVALS[point.engine](asked, threads)
        inputs = (asked.x, *asked.state)
        return Prepared(python_timer(call), lambda: checked(answers(), asked), inputs=inputs, layout=LAYOUT)

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Tonight's engines by recurrence and size, and the lines over nights."""
        return {**super().plots(history), "tonight": configuration_text.plot(history)}

    def summary(self, history: History) -> Summary:
        """The default words, with the fastest engine at each size."""
        return configuration_text.summary(super().summary(history), history)


def _cases(config: RnnCompConfig) -> list[Case]:
    return [
        Case(kind, form, hidden, length, config.batch)
        for kind in config.kinds
        for form in config.forms
        for hidden in config.hidden
        for length in (config.lengths if form == "layer" else [1])
    ]


def _point(case: Case, engine: str, config: RnnCompConfig) -> Point:
    length = {"length": case.length} if case.form == "layer" else {}
    values = {"hidden": case.hidden, **length, "batch": case.batch, "threads": config.threads}
    ours = {"lowering": "unrolled"} if engine == "tvm" else {}
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point(f"rnn.{case.kind}_{case.form}", {**values, **ours}, f"{case.form}s", target, engine)


def _case(point: Point) -> Case:
    kind, _, form = point.workload.partition(".")[2].partition("_")
    return Case(kind, form, point.values["hidden"], point.values.get("length", 1), point.values["batch"])


def _on_tvm(asked: Problem, options: CompileOptions, threads: int, device: str) -> Prepared:
    compiled = relax_util.compile_module(on_relax.lower(asked), options)
    loaded = relax_util.load(compiled, threads, device)
    inputs = (asked.x, *asked.state)
    timer = loaded.python_timer(*inputs)
    return workloads.make_prepared(
        compiled, timer, lambda: checked(loaded.outputs(*inputs), asked), layout=LAYOUT, inputs=inputs, on=loaded
    )


def checked(answers: tuple[Array, ...], asked: Problem) -> dict[str, float]:
    """The largest error of the outputs and of the last state, each of which must be right."""
    facts = [accuracy.check_answer(given, expected) for given, expected in zip(answers, asked.expected, strict=True)]
    return max(facts, key=lambda fact: fact["max_error"])


if __name__ == "__main__":
    raise SystemExit(RnnComp().main())
