"""Models with real weights on real inputs: what TVM can import, how near it is to ONNX Runtime, how fast."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import models
import numpy as np
from models import MODELS, RealModel

from tvmdash import common, relax_util
from tvmdash.errors import DashboardError
from tvmdash.exp_templates import Axis, Engine, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import plots, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.machine.devices import CPU, device_of
from tvmdash.measure import prebuilt
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
    compiles_ahead = True
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
        """Make for each model a folder of its name."""
        for name in config.models:
            make(name, MODELS[name], folder / name, seed)

    def prepare(self, point: Point, config: RealModelsConfig, seed: int) -> Prepared:
        name = point.workload.partition(".")[2]
        given = Given(MODELS[name], self.inputs / name)
        if point.engine == reference_engines.ONNXRUNTIME.name:
            return _on_onnxruntime(given, config.threads)
        return _on_tvm(given, point, CompileOptions(json.loads(point.target), PIPELINE), config.threads)

    def summary(self, history: History) -> Summary:
        """Add to the usual words how many models TVM runs in each form."""
        usual = super().summary(history)
        return usual.with_lines(imported(history))


def imported(history: History) -> list[str]:
    """Write of the models that TVM was asked for tonight how many it ran in each form on the processor."""
    timed = plots.measured_tonight(history, {"run_time"})
    tonight = [series for series in timed if device_of(series.labels) == CPU]
    failures = [failure for failure in history.failures if AXIS.name not in failure.values]
    counts = []
    for form in FORMS:
        good = sum(series.labels["build_config"].get("form") == form for series in tonight)
        asked = good + sum(failure.values.get("form") == form for failure in failures)
        counts += [f"{good} of {asked} {form}"] if asked else []
    return [f"- Models that TVM runs: {format_list(counts, 2)}"] if counts else []


class Given:
    """A model as setup left it: calls with their feeds and ONNX Runtime's answers, and facts."""

    def __init__(self, model: RealModel, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.facts: dict[str, Any] = common.read_json(folder / FACTS_FILE)
        with np.load(folder / CALLS_FILE) as arrays:
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
        """Check all calls one after the other, each with what the engine's own last one carried over."""
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
        decided = [self.model.decide(answer) for answer in answers]
        reads = self.model.read(decided, self.facts["labels"])
        if reads != self.facts["reads"]:
            raise DashboardError(f"wrong answer: it reads {reads!r}, ONNX Runtime {self.facts['reads']!r}.")
        same = [part == self.model.decide(call["out0"]) for part, call in zip(decided, self.calls, strict=True)]
        share = float(np.concatenate(same, axis=None).mean())
        return {"max_error": max(errors), "tolerance": TOLERANCE, "reads": reads, "validation_accuracy": share}


def _on_tvm(given: Given, point: Point, options: CompileOptions, threads: int) -> Prepared:
    make = functools.cache(lambda: _imported(given, point.values["form"]))
    order = prebuilt.keep("order", lambda: [_name_of(variable) for variable in make()["main"].params])
    compiled = relax_util.compile_module(make, options)
    loaded = relax_util.load(compiled, threads, point.device)

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
    file = str(given.file(SHIPPED))
    session = onnxruntime.InferenceSession(file, options, providers=PROVIDERS)
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


FORMS = SHIPPED, FOLDED = "shipped", "folded"
CALLS_FILE, FACTS_FILE = "calls.npz", "facts.json"
PROVIDERS = ["CPUExecutionProvider"]
PACKAGE: Mapping[str, str] = {
    "silero_vad": "silero-vad",
    "magika": "magika",
    "rapidocr_onnxruntime": "rapidocr-onnxruntime",
}


def make(name: str, model: RealModel, folder: Path, seed: int) -> None:
    """Make everything of one model in `folder`."""
    folder.mkdir(exist_ok=True)
    shipped = installed(model.file)
    shutil.copyfile(shipped, folder / f"{SHIPPED}.onnx")
    fold(model, folder)
    calls = answered(model, folder / f"{SHIPPED}.onnx", seed)
    arrays: dict[str, Any] = {
        f"{index}/{key}": array for index, call in enumerate(calls) for key, array in call.items()
    }
    np.savez(folder / CALLS_FILE, **arrays)
    labels = _labels(model, shipped)
    package = PACKAGE[model.file.partition("/")[0]]
    facts = {
        "model": name,
        "package": f"{package} {importlib.metadata.version(package)}",
        "file": model.file,
        "licence": model.licence,
        "calls": len(calls),
        "reads": model.read([model.decide(call["out0"]) for call in calls], labels),
        "labels": labels,
    }
    common.write_json(folder / FACTS_FILE, facts)


def installed(file: str) -> Path:
    """Find the file among the installed packages; their code is not imported."""
    for folder in sys.path:
        if (Path(folder) / file).is_file():
            return Path(folder) / file
    raise DashboardError(f"{file} is in none of the packages that setup installed.")


def fold(model: RealModel, folder: Path) -> None:
    """Write the folded model: input shapes fixed, then what is constant computed by ONNX Runtime."""
    import onnx
    import onnxruntime

    loaded = onnx.load(folder / f"{SHIPPED}.onnx")
    for value in loaded.graph.input:
        if value.name in model.shapes:
            sizes = value.type.tensor_type.shape
            del sizes.dim[:]
            for size in model.shapes[value.name]:
                sizes.dim.add().dim_value = size
    options = onnxruntime.SessionOptions()
    # higher levels fuse operators into ONNX Runtime's own, which no other importer knows
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(folder / f"{FOLDED}.onnx")
    options.log_severity_level = 3
    onnxruntime.InferenceSession(loaded.SerializeToString(), options, providers=PROVIDERS)


def answered(model: RealModel, file: Path, seed: int) -> list[dict[str, Array]]:
    """Return each call's feeds by name, what is carried among them, and its outputs as out0, out1 and so on."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=PROVIDERS)
    carried = {name: np.zeros(model.shapes[name], np.float32) for name in model.carried}
    calls = []
    for given in model.inputs(seed):
        feeds = {**given, **carried}
        outputs = session.run(None, feeds)
        calls.append({**feeds, **{f"out{index}": output for index, output in enumerate(outputs)}})
        carried = {name: outputs[index] for name, index in model.carried.items()}
    return calls


def _labels(model: RealModel, shipped: Path) -> list[str]:
    labels: list[str]
    if model.labels_in.endswith(".json"):
        labels = json.loads((shipped.parent / model.labels_in).read_text("utf-8"))["target_labels_space"]
        return labels
    if not model.labels_in:
        return []
    import onnx

    properties = {item.key: item.value for item in onnx.load(shipped).metadata_props}
    labels = properties[model.labels_in].splitlines()
    return labels


if __name__ == "__main__":
    raise SystemExit(RealModels().main())
