"""A character-level generator of names: a loop around a compiled cell, a recursive Relax function, PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from generator import CATEGORIES, END, LETTERS, GeneratorTask, Size, Start, checked, spelled, task

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared
from tvmdash.experiment import configuration_text, reference_engines
from tvmdash.plot_util.specs import Bar, BarValue, Plot
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.series.store import Series
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer


@dataclass(frozen=True, kw_only=True)
class CharRnnConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    ways: tuple[str, ...]
    hidden: int
    names: int
    longest: int
    threads: int
    mcpu: str


class CharRnn(Experiment[CharRnnConfig]):
    """Every way of generating the same names; one process for each engine."""

    engines = (workloads.TVM, reference_engines.TORCH)
    axes = (
        Axis("hidden", "workload_args"),
        Axis("names", "workload_args"),
        Axis("letters", "workload_args"),
        Axis("program", "build_config"),
        Axis("mode", "build_config"),
        Axis("threads", "runtime_config"),
    )

    def points(self, config: CharRnnConfig) -> list[Point]:
        asked = _task(config, config.data_seed)
        sizes = {"hidden": asked.size.hidden, "names": asked.size.names, "letters": asked.letters}
        shared = {**sizes, "threads": config.threads}
        return [_point(way, shared, config) for way in config.ways]

    def prepare(self, point: Point, config: CharRnnConfig, seed: int) -> Prepared:
        asked, threads = _task(config, seed), config.threads
        if point.engine == "torch":
            names = make_torch(asked, threads)
            return Prepared(python_timer(names), lambda: checked(names(), asked.names))
        made = make(asked, point, threads)
        compiled = made.compiled
        return Prepared(
            timer=python_timer(made.names),
            check=lambda: checked(made.names(), asked.names),
            compile_ms=compiled.compile_ms,
            compile_cpu_ms=compiled.compile_cpu_ms,
            code_size_bytes=compiled.code_size_bytes,
            passes_ms=compiled.pass_times_ms,
            details={"module_hash": compiled.module_hash},
        )

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Add letters per second to the default graphs."""
        return {**super().plots(history), "letters_per_second": letters_plot(history)}

    def summary(self, history: History) -> Summary:
        """Add the fastest way, and how many letters a second each gives, to the default words."""
        summary = configuration_text.summary(super().summary(history), history)
        rates = [f"{bar.label} {bar.value:,.0f}" for bar in letters_plot(history).bars]
        return summary.with_lines([f"- letters per second: {'; '.join(rates)}"])


def letters_plot(history: History) -> Bar:
    """Draw tonight's letters per second of each way, with the run time's interval turned round."""
    bars = [
        BarValue(way, *(_rate(series, ms) for ms in (series.values[-1], series.high[-1], series.low[-1])))
        for ways in configuration_text.group_cases(history).values()
        for way, series in ways.items()
    ]
    title = f"{history.experiment}, night {history.stamps[-1]}: letters per second"
    return Bar(title, "letters per second", tuple(bars), lower_is_better=False)


def _rate(series: Series, ms: float | None) -> float | None:
    return 1e3 * series.labels["workload_args"]["letters"] / ms if ms else None


def _task(config: CharRnnConfig, seed: int) -> GeneratorTask:
    return task(Size(config.hidden, config.names, config.longest), seed)


def _point(way: str, shared: Mapping[str, Any], config: CharRnnConfig) -> Point:
    engine, program, *mode = way.split()
    values = {**shared, "program": program, **dict(zip(("mode",), mode, strict=False))}
    target = workloads.target_text(config) if engine == "tvm" else "cpu"
    return Point("char_rnn.names", values, "names", target, engine)


WEIGHTS = ("hidden_w", "hidden_b", "output_w", "output_b", "letter_w", "letter_b")
SOURCE = """
@I.ir_module
class Generator:
    @R.function
    def cell(
        category: R.Tensor((1, {categories}), "float32"), letter: R.Tensor((), "int64"),
        hidden: R.Tensor((1, {hidden}), "float32"), {parameters}
    ) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((1, {hidden}), "float32")):
        with R.dataflow():
            one = R.astype(R.equal(R.arange(0, {letters}, 1, dtype="int64"), letter), "float32")
            both = R.concat([category, R.reshape(one, (1, {letters})), hidden], axis=1)
            after = R.add(R.matmul(both, hidden_w), hidden_b)
            output = R.concat([after, R.add(R.matmul(both, output_w), output_b)], axis=1)
            scores = R.nn.log_softmax(R.add(R.matmul(output, letter_w), letter_b))
            given = (R.argmax(R.reshape(scores, ({letters},)), axis=0), after)
            R.output(given)
        return given

    @R.function
    def name(
        category: R.Tensor((1, {categories}), "float32"), letter: R.Tensor((), "int64"),
        hidden: R.Tensor((1, {hidden}), "float32"), place: R.Tensor((), "int64"),
        text: R.Tensor(({longest},), "int64"), {parameters}
    ) -> R.Tensor(({longest},), "int64"):
        full = R.equal(place, R.const({longest}, "int64"))
        done = R.logical_or(full, R.equal(letter, R.const({end}, "int64")))
        if done:
            out = text
        else:
            given = Generator.cell(category, letter, hidden, {arguments})
            here = R.equal(R.arange(0, {longest}, 1, dtype="int64"), place)
            longer = R.where(here, given[0], text)
            out = Generator.name(
                category, given[0], given[1], R.add(place, R.const(1, "int64")), longer, {arguments}
            )
        return out
"""


def module(task: GeneratorTask) -> Any:
    """Make a module of `cell`, one step, and `name`, which calls itself until the name ends. Weights are arguments."""
    import tvm.script
    from tvm.script import ir, relax

    shapes = {name: task.weights[name].shape for name in WEIGHTS}
    source = SOURCE.format(
        categories=CATEGORIES,
        letters=LETTERS,
        end=END,
        hidden=task.size.hidden,
        longest=task.size.longest,
        parameters=", ".join(f'{name}: R.Tensor({shape}, "float32")' for name, shape in shapes.items()),
        arguments=", ".join(WEIGHTS),
    )
    return tvm.script.from_source(source, {"I": ir, "R": relax})


@dataclass(frozen=True)
class Made:
    """The compiled module, and a call that gives the names."""

    compiled: Compiled
    names: Callable[[], list[str]]


def make(task: GeneratorTask, point: Point, threads: int) -> Made:
    """Compile what the point asks for. The weights and all that a name starts from lie on the device already."""
    import tvm
    from tvm import relax

    mode = point.values["mode"]
    compiled = relax_util.compile_module(module(task), CompileOptions(json.loads(point.target), exec_mode=mode))
    relax_util.use_threads(threads)
    machine, tensor = relax.VirtualMachine(compiled.executable, tvm.cpu()), tvm.runtime.tensor
    weights = [tensor(task.weights[name]) for name in WEIGHTS]
    zeros = tensor(np.zeros((1, task.size.hidden), np.float32))
    run = {"loop": _loop, "recursion": _recursion}[point.values["program"]](machine, task, zeros, weights)
    starts = [(start, tensor(start.category), tensor(np.array(start.letter))) for start in task.starts]
    return Made(compiled, lambda: [run(*start) for start in starts])


Name = Callable[[Start, Any, Any], str]


def _loop(machine: Any, task: GeneratorTask, zeros: Any, weights: list[Any]) -> Name:
    cell, steps = machine["cell"], range(task.size.longest)

    def name(start: Start, category: Any, first: Any) -> str:
        letters, letter, hidden = [start.letter], first, zeros
        for _ in steps:
            letter, hidden = cell(category, letter, hidden, *weights)
            index = int(letter.numpy())
            if index == END:
                break
            letters.append(index)
        return spelled(letters)

    return name


def _recursion(machine: Any, task: GeneratorTask, zeros: Any, weights: list[Any]) -> Name:
    import tvm

    whole, position = machine["name"], tvm.runtime.tensor(np.array(0))
    # places that no letter takes end the name
    empty = tvm.runtime.tensor(np.full(task.size.longest, END))

    def name(start: Start, category: Any, first: Any) -> str:
        letters = whole(category, first, zeros, position, empty, *weights).numpy().tolist()
        return spelled([start.letter, *letters[: letters.index(END) if END in letters else None]])

    return name


def make_torch(task: GeneratorTask, threads: int) -> Callable[[], list[str]]:
    """Make a call that gives the names. The weights and all that a name starts from are tensors already."""
    import torch

    torch.set_num_threads(threads)
    cell, zeros, steps = _cell(task), torch.zeros(1, task.size.hidden), range(task.size.longest)

    def name(first: int, category: Any, letter: Any) -> str:
        letters, hidden = [first], zeros
        for _ in steps:
            letter, hidden = cell(category, letter, hidden)
            index = int(letter)
            if index == END:
                break
            letters.append(index)
        return spelled(letters)

    starts = [(start.letter, torch.from_numpy(start.category), torch.tensor([start.letter])) for start in task.starts]
    return lambda: [name(*start) for start in starts]


def _cell(task: GeneratorTask) -> Callable[[Any, Any, Any], tuple[Any, Any]]:
    """Make one step: the next letter's index (1,), and the hidden state (1, hidden)."""
    import torch
    from torch.nn import functional

    layers = {name: _linear(task, name) for name in ("hidden", "output", "letter")}

    def cell(category: Any, letter: Any, hidden: Any) -> tuple[Any, Any]:
        both = torch.cat((category, functional.one_hot(letter, LETTERS).float(), hidden), 1)
        after = layers["hidden"](both)
        scores = layers["letter"](torch.cat((after, layers["output"](both)), 1))
        return functional.log_softmax(scores, dim=1).argmax(1), after

    return cell


def _linear(task: GeneratorTask, name: str) -> Any:
    import torch

    weight = torch.from_numpy(task.weights[f"{name}_w"].T.copy())
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0])
    layer.load_state_dict({"weight": weight, "bias": torch.from_numpy(task.weights[f"{name}_b"])})
    return layer.requires_grad_(requires_grad=False)


if __name__ == "__main__":
    raise SystemExit(CharRnn().main())
