"""Attention and a small decoder: prefill and decoding, compiled for one length and for any, in tokens per second."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import on_torch
import throughput

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared, Record
from tvmdash.experiment import on_cuda, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.networks.transformer import Model, Step, make_step, make_weights
from tvmdash.plot_util.specs import Plot
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.relax_util import transformer as relax_transformer
from tvmdash.summary_util import Summary
from tvmdash.trial_util import python_timer, waiting_timer

SIZES = ("layers", "width", "heads", "vocabulary")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ExperimentConfig):
    """As fields.json describes it."""

    models: tuple[str, ...]
    phases: tuple[str, ...]
    lengths: tuple[int, ...]
    shapes: tuple[str, ...]
    layers: int
    width: int
    heads: int
    vocabulary: int
    threads: int
    mcpu: str
    device: tuple[str, ...]


class Transformer(Experiment[TransformerConfig]):
    """Every model, phase and length on each engine; a process for each model and phase."""

    engines = (workloads.TVM, reference_engines.TORCH, reference_engines.TORCH_CUDA)
    axes = (
        *(Axis(name, "workload_args") for name in ("phase", "length", *SIZES)),
        Axis("shapes", "build_config"),
        Axis("threads", "runtime_config"),
        AXIS,
    )

    def points(self, config: TransformerConfig) -> list[Point]:
        target = workloads.target_text(config)
        points = []
        for name in config.models:
            for phase in config.phases:
                for length in config.lengths:
                    values = {"phase": phase, "length": length, **_sizes(name, config), "threads": config.threads}
                    names = (f"transformer.{name}", f"{name} {phase}")
                    points += [
                        Point(names[0], {**values, "shapes": shapes}, names[1], target) for shapes in config.shapes
                    ]
                    points.append(Point(names[0], values, names[1], "cpu", reference_engines.TORCH.name))
        return points

    def prepare(self, point: Point, config: TransformerConfig, seed: int) -> Prepared:
        model, phase, length = _model(point.values, config), point.values["phase"], point.values["length"]
        step = _step(model, phase, length, seed)
        if point.engine in {reference_engines.TORCH.name, reference_engines.TORCH_CUDA.name}:
            device = on_cuda.find_rival_device(point.device)
            wait = on_cuda.use_torch(device)
            call = on_torch.call_of(model, _weights(model, seed), step, config.threads, device.place)
            return Prepared(
                timer=waiting_timer(call, wait) if device.card else python_timer(call),
                check=lambda: _checked(tuple(part.cpu().numpy() for part in call()), step),
                inputs=(*step.inputs, *step.cache),
                details={"called_from": "Python"},
                after=functools.partial(device.watch, call, wait),
            )
        compiled_for = None if point.values["shapes"] == "dynamic" else length
        compiled = _compiled(model, phase, compiled_for, point.target, seed)
        loaded, arrays = relax_util.load(compiled, config.threads, point.device), (*step.inputs, *step.cache)
        return workloads.make_prepared(
            compiled,
            loaded.timer(*arrays),
            lambda: _checked(loaded.outputs(*arrays), step),
            details={"called_from": loaded.called_from},
            inputs=arrays,
            on=loaded,
        )

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        """Tokens per second."""
        return [
            {"tokens_per_second": throughput.tokens_per_second(record.workload_args, record.additional_info[MEDIAN])}
            for record in records
        ]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """The default graphs, and tokens per second."""
        return {**super().plots(history), "tokens_per_second": throughput.plot(history)}

    def summary(self, history: History) -> Summary:
        """The default words, with tokens per second for the fastest and slowest, and what dynamic shapes cost."""
        return throughput.summary(super().summary(history), history)


MEDIAN = "execution_elapsed_ms_median"


def _sizes(name: str, config: TransformerConfig) -> dict[str, int]:
    block = {"width": config.width, "heads": config.heads}
    return {"layers": config.layers, **block, "vocabulary": config.vocabulary} if name == "decoder" else block


def _model(values: Mapping[str, Any], config: TransformerConfig) -> Model:
    positions = max(config.lengths) + 1
    return Model(values.get("layers", 1), values["width"], values["heads"], values.get("vocabulary", 0), positions)


@functools.cache
def _weights(model: Model, seed: int) -> Mapping[str, Array]:
    return make_weights(model, seed)


@functools.cache
def _step(model: Model, phase: str, length: int, seed: int) -> Step:
    return make_step(model, _weights(model, seed), phase, length, seed)


@functools.cache
def _compiled(model: Model, phase: str, length: int | None, target: str, seed: int) -> Compiled:
    """Once in a process: all lengths share the module with the length as a symbol."""
    module = relax_transformer.lower(model, _weights(model, seed), phase, length)
    return relax_util.compile_module(module, CompileOptions(json.loads(target)))


def _checked(outputs: Sequence[Array], step: Step) -> Mapping[str, float]:
    """The worst of result and cache."""
    errors = [accuracy.check_answer(actual, expected) for actual, expected in zip(outputs, step.expected, strict=True)]
    return max(errors, key=lambda answer: answer["max_error"])


if __name__ == "__main__":
    raise SystemExit(Transformer().main())
