"""Models with real weights on real inputs: what TVM can import, how near it is to ONNX Runtime, how fast."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import making
import models
import numpy as np
from models import MODELS, Model

from tvmdash import common, relax_util
from tvmdash.devices import CPU, device_of
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Engine, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import plots, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.measure.phases import phase
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.relax_util import CompileOptions, workloads
from tvmdash.summary_util import Summary
from tvmdash.text import format_list
from tvmdash.trial_util import python_timer

TVM = Engine(workloads.TVM.name, models.ONNX, workloads.TVM.facts, pairable=True)
"""With onnx, which TVM's ONNX frontend reads models with."""
PIPELINE = "zero_decompose"
TOLERANCE = 1e-4
"""Of the largest error against ONNX Runtime. Both compute in float32, hundreds of operators deep, so the reference is
itself some 1e-5 off: the tolerance for a float64 reference would judge its error too."""
Call = Callable[..., Sequence[Array]]


@dataclass(frozen=True, kw_only=True)
class RealModelsConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    models: tuple[str, ...]
    forms: tuple[str, ...]
    threads: int
    mcpu: str
    device: tuple[str, ...]


class RealModels(Experiment[RealModelsConfig]):
    """Every model on each engine, TVM in each form; a process for each, as a compilation takes long or crashes."""

    engines = (TVM, reference_engines.ONNXRUNTIME, models.PACKAGES)
    inputs_engine = models.PACKAGES.name
    axes = (Axis("form", "build_config"), Axis("batch", "workload_args"), Axis("threads", "runtime_config"), AXIS)

    def points(self, config: RealModelsConfig) -> list[Point]:
        target = workloads.target_text(config)
        shared, points = {"batch": 1, "threads": config.threads}, []
        for name in config.models:
            points += [
                Point(f"model.{name}", {**shared, "form": form}, f"{name} {form}", target, TVM.name)
                for form in config.forms
            ]
            points.append(Point(f"model.{name}", shared, name, "cpu", reference_engines.ONNXRUNTIME.name))
        return points

    def make_inputs(self, config: RealModelsConfig, folder: Path, seed: int) -> None:
        """For each model a folder of its name."""
        for name in config.models:
            making.make(name, MODELS[name], folder / name, seed)

    def prepare(self, point: Point, config: RealModelsConfig, seed: int) -> Prepared:
        name = point.workload.partition(".")[2]
        given = Given(MODELS[name], self.inputs / name)
        if point.engine == reference_engines.ONNXRUNTIME.name:
            return _on_onnxruntime(given, config.threads)
        return _on_tvm(given, point, CompileOptions(json.loads(point.target), PIPELINE), config.threads)

    def summary(self, history: History) -> Summary:
        """The usual words, and how many models TVM runs in each form."""
        usual = super().summary(history)
        return usual.with_lines(imported(history))


def imported(history: History) -> list[str]:
    """A line: of the models that TVM was asked for tonight, how many it ran in each form on the processor."""
    timed = plots.measured_tonight(history, {"run_time"})
    tonight = [series for series in timed if device_of(series.labels) == CPU]
    failures = [failure for failure in history.failures if AXIS.name not in failure.values]
    counts = []
    for form in making.FORMS:
        good = sum(series.labels["build_config"].get("form") == form for series in tonight)
        asked = good + sum(failure.values.get("form") == form for failure in failures)
        counts += [f"{good} of {asked} {form}"] if asked else []
    return [f"- Models that TVM runs: {format_list(counts, 2)}"] if counts else []


class Given:
    """What setup left of a model: calls with their feeds and ONNX Runtime's answers, and facts."""

    def __init__(self, model: Model, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.facts: dict[str, Any] = common.read_json(folder / making.FACTS_FILE)
        with np.load(folder / making.CALLS_FILE) as arrays:
            named = {name: arrays[name] for name in arrays.files}
        self.calls = [
            {name.partition("/")[2]: array for name, array in named.items() if name.startswith(f"{index}/")}
            for index in range(self.facts["calls"])
        ]

    def file(self, form: str) -> Path:
        return self.folder / f"{form}.onnx"

    @property
    def details(self) -> dict[str, Any]:
        """For the record."""
        names = ("package", "file", "licence", "calls")
        return {f"model_{name}": self.facts[name] for name in names}

    @property
    def last(self) -> dict[str, Array]:
        """The feeds of the last call, which is the one that is timed."""
        return {name: array for name, array in self.calls[-1].items() if name in self.model.shapes}

    def check(self, call: Callable[[Mapping[str, Array]], Sequence[Array]]) -> dict[str, Any]:
        """All calls one after the other, each with what the engine's own last one carried over."""
        carried: dict[str, Array] = {}
        answers: list[Array] = []
        errors = [0.0]
        for recorded in self.calls:
            feeds = {name: array for name, array in recorded.items() if name in self.model.shapes}
            outputs = call({**feeds, **carried})
            carried = {name: outputs[index] for name, index in self.model.carried.items()}
            answers.append(outputs[0])
            errors += [accuracy.max_error(output, recorded[f"out{index}"]) for index, output in enumerate(outputs)]
        if max(errors) > TOLERANCE:
            problem = f"the largest error {max(errors):.2g} against ONNX Runtime is beyond {TOLERANCE:g}"
            raise DashboardError(f"wrong answer: {problem}.")
        reads = self.model.read(answers, self.facts["labels"])
        if reads != self.facts["reads"]:
            raise DashboardError(f"wrong answer: it reads {reads!r}, ONNX Runtime {self.facts['reads']!r}.")
        return {"max_error": max(errors), "tolerance": TOLERANCE, "reads": reads}


def _on_tvm(given: Given, point: Point, options: CompileOptions, threads: int) -> Prepared:
    module = _imported(given, point.values["form"])
    compiled = relax_util.compile_module(module, options)
    loaded = relax_util.load(compiled, threads, point.device)
    order = [_name_of(variable) for variable in module["main"].params]

    def call(feeds: Mapping[str, Array]) -> Sequence[Array]:
        return loaded.outputs(*(feeds[name] for name in order))

    inputs = [given.last[name] for name in order]
    return workloads.make_prepared(
        compiled,
        loaded.timer(*inputs),
        lambda: given.check(call),
        details={**given.details, "called_from": loaded.called_from},
        inputs=inputs,
        on=loaded,
    )


def _imported(given: Given, form: str) -> Any:
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    shapes = {name: list(shape) for name, shape in given.model.shapes.items()}
    with phase("frontend"):
        try:
            return from_onnx(onnx.load(given.file(form)), shape_dict=shapes)
        except Exception as error:  # the frontend raises anything for what it does not know
            lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            raise DashboardError(f"TVM's ONNX frontend cannot import the {form} model: {lines[-1]}") from error


def _name_of(variable: Any) -> str:
    return str(getattr(variable, "name_hint", None) or variable.name)  # its place has moved between versions


def _on_onnxruntime(given: Given, threads: int) -> Prepared:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    file = str(given.file(making.SHIPPED))
    session = onnxruntime.InferenceSession(file, options, providers=making.PROVIDERS)
    binding = session.io_binding()
    for name, array in given.last.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(array))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    return Prepared(
        timer=python_timer(lambda: session.run_with_iobinding(binding)),
        check=lambda: given.check(lambda feeds: session.run(None, dict(feeds))),
        inputs=tuple(given.last.values()),
        details={**given.details, "called_from": "Python"},
    )


if __name__ == "__main__":
    raise SystemExit(RealModels().main())
