"""Attention and a small decoder: prefill and decoding, compiled for one length and for any, in tokens per second."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Experiment, ExperimentConfig, History, Point, Prepared, Record
from tvmdash.experiment import on_cuda, plots, reference_engines
from tvmdash.experiment.on_devices import AXIS
from tvmdash.machine.devices import CPU, device_of
from tvmdash.measure import prebuilt
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.networks.transformer import EPSILON, Model, Step, make_step, make_weights
from tvmdash.plot_util.specs import Estimate, GroupedBar, Plot
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.relax_util import transformer as relax_transformer
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary, format_ratio, geometric_mean_ratio
from tvmdash.text import format_list, three_digits
from tvmdash.trial_util import python_timer, waiting_timer

SIZES = ("layers", "width", "heads", "vocabulary")


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

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
    compiles_ahead = True
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
        step = prebuilt.keep("step", lambda: _step(model, phase, length, seed))
        if point.engine in {reference_engines.TORCH.name, reference_engines.TORCH_CUDA.name}:
            device = on_cuda.find_rival_device(point.device)
            wait = on_cuda.use_torch(device)
            call = call_of(model, _weights(model, seed), step, config.threads, device.place)
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
        return [
            {"tokens_per_second": tokens_per_second(record.workload_args, record.additional_info[MEDIAN])}
            for record in records
        ]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Add tokens per second to the default graphs."""
        return {**super().plots(history), "tokens_per_second": plot(history)}

    def summary(self, history: History) -> Summary:
        """Tell tokens per second instead of the fastest and slowest, and what dynamic shapes cost."""
        return summary(super().summary(history), history)


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


def _compiled(model: Model, phase: str, length: int | None, target: str, seed: int) -> Compiled:
    """Compile a module for one length, or with the length as a symbol."""
    return relax_util.compile_module(
        lambda: relax_transformer.lower(model, _weights(model, seed), phase, length),
        CompileOptions(json.loads(target)),
    )


def _checked(outputs: Sequence[Array], step: Step) -> Mapping[str, float]:
    """Return the worst of result and cache."""
    errors = [accuracy.check_answer(actual, expected) for actual, expected in zip(outputs, step.expected, strict=True)]
    return max(errors, key=lambda answer: answer["max_error"])


STATIC, DYNAMIC = "tvm static", "tvm dynamic"
Cells = Mapping[tuple[str, str, int], Mapping[str, Series]]
"""Tonight's run times by model, phase and length, then by engine and kind of shapes."""


def tokens_per_second(args: Mapping[str, Any], ms: float) -> float:
    """Return tokens per second: a prefill does all tokens of its prompt in one call, a decoding step one."""
    return (args["length"] if args["phase"] == "prefill" else 1) / ms * 1e3


def cells(history: History) -> Cells:
    series_of: dict[tuple[str, str, int], dict[str, Series]] = {}
    for series in plots.measured_tonight(history, {"run_time"}):
        args = series.labels["workload_args"]
        model = str(series.labels["workload"]).partition(".")[2]
        device = device_of(series.labels)
        parts = (series.labels["engine"], series.labels["build_config"].get("shapes"), f"on {device}")
        how = " ".join(map(str, filter(None, parts[:2] if device == CPU else parts)))
        series_of.setdefault((model, args["phase"], args["length"]), {})[how] = series
    return series_of


def plot(history: History) -> GroupedBar:
    """Draw tokens per second tonight."""
    series_of = cells(history)
    names = tuple(dict.fromkeys(how for row in series_of.values() for how in row))
    rows = tuple(tuple(_estimate(row.get(how)) for how in names) for row in series_of.values())
    groups = tuple(f"{model}, {phase}, {length}" for model, phase, length in series_of)
    title = f"{history.experiment}, night {history.stamps[-1]}"
    return GroupedBar(title, "tokens/s", groups, names, rows, lower_is_better=False)


def _estimate(series: Series | None) -> Estimate | None:
    if series is None:
        return None
    args = series.labels["workload_args"]
    value, low, high = (
        tokens_per_second(args, ms) if ms else None for ms in (series.values[-1], series.high[-1], series.low[-1])
    )
    return Estimate(value, low, high)


def summary(usual: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `usual`, which are of unlike work, by rates and the cost of dynamic shapes."""
    return usual.without(SectionKind.EXTREMES).with_lines(summarize_history(history))


def summarize_history(history: History) -> list[str]:
    """Write tokens per second of each model and phase at the longest prompt; compare dynamic and static shapes."""
    series_of = cells(history)
    lines = []
    for model, phase in dict.fromkeys(key[:2] for key in series_of):
        length = max(key[2] for key in series_of if key[:2] == (model, phase))
        row = series_of[model, phase, length]
        rates = [f"{how} {_rate(series)}" for how, series in row.items()]
        lines.append(f"- {model}, {phase} {_of(phase, length)}: {format_list(rates, 6)} tokens/s")
    for phase in dict.fromkeys(key[1] for key in series_of):
        pairs = [
            (row[STATIC].values[-1], row[DYNAMIC].values[-1])
            for key, row in series_of.items()
            if key[1] == phase and {STATIC, DYNAMIC} <= row.keys()
        ]
        if pairs:
            lines.append(f"- dynamic against static, {phase}: {format_ratio(geometric_mean_ratio(pairs))}")
    return lines


def _of(phase: str, length: int) -> str:
    return f"of {length} tokens" if phase == "prefill" else f"after {length} tokens"


def _rate(series: Series) -> str:
    return three_digits(tokens_per_second(series.labels["workload_args"], series.values[-1]))


Call = Callable[[], Sequence[Any]]


def call_of(model: Model, weights: Mapping[str, Array], step: Step, threads: int, place: str) -> Call:
    """Make a call that gives the result and the longer cache as torch tensors; all that it needs is tensors already."""
    import torch

    torch.set_num_threads(threads)
    tensors = {name: torch.from_numpy(array).to(place) for name, array in weights.items()}
    inputs, cache = ([torch.from_numpy(array).to(place) for array in part] for part in (step.inputs, step.cache))

    def call() -> Sequence[Any]:
        with torch.inference_mode():
            return _forward(model, tensors, inputs, cache)

    return call


def _forward(model: Model, weights: Mapping[str, Any], inputs: Sequence[Any], cache: Sequence[Any]) -> list[Any]:
    from torch.nn import functional

    if model.is_decoder:
        x = functional.embedding(inputs[0], weights["token"]) + functional.embedding(inputs[1], weights["position"])
    else:
        x = inputs[0]
    filled: list[Any] = []
    for layer in range(model.layers):
        normed = _norm(x, weights[f"{layer}.attention_norm"])
        added, *kept = _attention(model, weights, normed, layer, cache[2 * layer : 2 * layer + 2])
        x, filled = x + added, [*filled, *kept]
        if model.is_decoder:
            inner = functional.gelu(_norm(x, weights[f"{layer}.inner_norm"]) @ weights[f"{layer}.up"])
            x = x + inner @ weights[f"{layer}.down"]
    result = _norm(x[-1:], weights["norm"]) @ weights["token"].T if model.is_decoder else x
    return [result, *filled]


def _attention(model: Model, weights: Mapping[str, Any], x: Any, layer: int, past: Sequence[Any]) -> list[Any]:
    import torch
    from torch.nn import functional

    count = x.shape[0]
    parted = (x @ weights[f"{layer}.qkv"]).reshape(count, 3, model.heads, model.head_width)
    queries, keys, values = parted.permute(1, 2, 0, 3)
    if past:
        keys, values = torch.cat([past[0], keys], dim=1), torch.cat([past[1], values], dim=1)
    # a token that follows a past sees all of it
    mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=not past)
    return [mixed.permute(1, 0, 2).reshape(count, model.width) @ weights[f"{layer}.out"], keys, values]


def _norm(x: Any, weights: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], weights[0], weights[1], EPSILON)


if __name__ == "__main__":
    raise SystemExit(Transformer().main())
