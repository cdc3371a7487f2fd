"""A Llama-shaped decoder with TVM's paged KV cache: time to the first token, time per output token, beside rivals."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import answers
import network
import numpy as np
from answers import Answers
from calls import DECODE, P99_FROM, PREFILL, DecoderSession, PointCall, make_tokens
from decoding import Decoder
from llama_cpp import TOLERANCES, LlamaCpp, LlamaCppCall
from torch_rival import TorchDecoder

from tvmdash import relax_util
from tvmdash.exp_templates import Axis, Declared, Experiment, ExperimentConfig, History, Point, Prepared, Record
from tvmdash.experiment import plots, reference_engines
from tvmdash.experiment.engines import Engine
from tvmdash.experiment.on_devices import AXIS
from tvmdash.machine.devices import CPU, device_of
from tvmdash.networks.ops import Array
from tvmdash.plot_util.specs import Longitudinal, Plot
from tvmdash.relax_util import Compiled, CompileOptions, workloads
from tvmdash.relax_util.build import hash_program
from tvmdash.relax_util.targets import make_target
from tvmdash.series.store import Series
from tvmdash.summary_util import SectionKind, Summary
from tvmdash.text import format_list, three_digits

OURS = "ours"
PIPELINES = {"default": "default", "recipe": "zero", OURS: "llm_ours"}
"""By variant, the pipeline that compiles it."""


@dataclass(frozen=True, kw_only=True)
class LlmConfig(ExperimentConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    networks: tuple[str, ...]
    dtypes: tuple[str, ...]
    variants: tuple[str, ...]
    engines: tuple[str, ...]
    prompts: tuple[int, ...]
    depths: tuple[int, ...]
    batches: tuple[int, ...]
    tokens: int
    max_call_s: float
    threads: int
    mcpu: str
    device: tuple[str, ...]


LLAMA_CPP = Engine("llama.cpp", ("xllamacpp==2026.10.11549",))
MOST_TOKENS = 1024
"""That llama.cpp decodes in a row, after the longest depth."""
_FLOATS_OF_TORCH = frozenset({"float32", "float16"})


class Llm(Experiment[LlmConfig]):
    """Prefill by prompt, decode by depth and batch; a module and a process for each network, dtype and variant."""

    engines = (workloads.TVM, reference_engines.TORCH, LLAMA_CPP)
    compiles_ahead = True
    axes = (
        *(Axis(name, "workload_args") for name in ("phase", "prompt", "depth", "batch", "dtype")),
        Axis("variant", "build_config"),
        Axis("threads", "runtime_config"),
        AXIS,
    )

    def points(self, config: LlmConfig) -> list[Point]:
        steps = [{"phase": PREFILL, "prompt": prompt, "batch": 1} for prompt in config.prompts]
        steps += [
            {"phase": DECODE, "depth": depth, "batch": batch} for depth in config.depths for batch in config.batches
        ]
        values = [
            (name, {**step, "dtype": dtype, "threads": config.threads})
            for name in config.networks
            for dtype in config.dtypes
            for step in steps
        ]
        return [point for name, step in values for point in _list_points(name, step, config)]

    def runs_on_devices(self, point: Point, config: LlmConfig) -> bool:
        """Admit what TVM schedules by itself: our schedule is for processors."""
        return super().runs_on_devices(point, config) and point.values["variant"] != OURS

    def make_inputs(self, config: LlmConfig, folder: Path, seed: int) -> None:
        """Compute the right answers, by numpy: for each network and dtype a file."""
        for name in config.networks:
            for dtype in config.dtypes:
                model, rows = network.NETWORKS[name], max(config.batches)
                made = answers.make(model, dtype, config.prompts, config.depths, rows, seed)
                np.savez(answers.file_of(folder, name, dtype), allow_pickle=False, **made)

    def prepare(self, point: Point, config: LlmConfig, seed: int) -> Prepared:
        """Make the point's call, on an engine that all points of the process share."""
        values, model = point.values, network.NETWORKS[point.name]
        known = Answers.read(answers.file_of(self.inputs, point.name, values["dtype"]))
        if point.engine == LLAMA_CPP.name:
            return _prepare_llama_cpp(point, config, seed, known)
        compiled = _compiled(point) if point.engine == workloads.TVM.name else None
        tokens = make_tokens(model, values, seed)

        @functools.cache
        def call() -> PointCall:
            session = _share(point, lambda: _open(point, config, seed, known, compiled))
            return PointCall(model, values, session, tokens, seed)

        def time_calls(number: int, repeat: int) -> list[int]:
            return call().time(number, repeat)

        def check() -> Mapping[str, float]:
            return {**call().session.checked, **call().check(known, config.max_call_s)}

        def find_facts() -> Mapping[str, float]:
            return {**(call().session.facts if is_first else {}), **call().find_facts(config.tokens)}

        is_first = values["phase"] == PREFILL and values["prompt"] == min(config.prompts)
        has_p99 = values["phase"] == DECODE and config.tokens >= P99_FROM
        own = Prepared(
            time_calls,
            check,
            inputs=(tokens,),
            after=find_facts,
            details={"called_from": "Python"},
            metrics={"token_p99": Declared(unit="ms", direction="lower", kind="time")} if has_p99 else {},
        )
        if compiled is None:
            return own
        program = functools.partial(_hash, compiled, tokens, call) if point.device == CPU else None
        # The module is the same at all points of the process: what compiling it took belongs to one of them.
        passes = {"passes_ms": workloads.list_longest_passes(compiled)} if is_first else {}
        made = workloads.make_prepared(compiled, time_calls, check, details={**own.details, **passes})
        ready = replace(made, inputs=own.inputs, after=own.after, program=program, metrics=own.metrics)
        if is_first:
            return ready
        return replace(ready, compile_ms=None, compile_cpu_ms=None, code_size_bytes=None, passes_ms=())

    def derive(self, records: Sequence[Record]) -> Sequence[Mapping[str, Any]]:
        """Derive tokens per second: of a prefill all tokens of the prompt, of a step one for each sequence."""
        return [find_rate(record) for record in records]

    def plots(self, history: History) -> Mapping[str, Plot]:
        """Draw a graph for each phase: each engine beside the others, by length or depth."""
        return make_plots(super().plots(history), history)

    def summary(self, history: History) -> Summary:
        """Add each phase's times on each engine to the default words."""
        return summarize(super().summary(history), history)


MEDIAN = "execution_elapsed_ms_median"


def find_rate(record: Record) -> dict[str, float]:
    """Return tokens in a second: of a prefill the whole prompt, of a step one for each sequence."""
    args = record.workload_args
    tokens = args["prompt"] if args["phase"] == PREFILL else args["batch"]
    return {"tokens_per_second": tokens / record.additional_info[MEDIAN] * 1e3}


TITLES = {PREFILL: "time to first token", DECODE: "time per output token"}
Rows = Mapping[tuple[str, str], Mapping[str, Series]]
"""Tonight's run times by phase and what is computed, then by engine, variant and device."""


def make_plots(usual: Mapping[str, Plot], history: History) -> dict[str, Plot]:
    """Draw tonight's times of each phase, each engine beside the others, and lines over nights for each phase.

    `usual` has lines for each network: of prompts that take seconds and of tokens that take milliseconds.
    """
    rows, title = _find_rows(history), f"{history.experiment}, night {history.stamps[-1]}"
    made: dict[str, Plot] = {name: plot for name, plot in usual.items() if not isinstance(plot, Longitudinal)}
    for name, phase in {"tonight": PREFILL, DECODE: DECODE}.items():
        shown = {what: rows[of, what] for of, what in rows if of == phase}
        made[name] = plots.compare_ways(f"{title}: {TITLES[phase]}", shown)
        timed = [
            series
            for series in history.series
            if series.metric == "run_time" and series.labels["workload_args"]["phase"] == phase
        ]
        if timed:
            made.update(plots.longitudinal_plots(history, TITLES[phase], timed))
    return made


def summarize(usual: Summary, history: History) -> Summary:
    """Replace the fastest and slowest of `usual`, which are of unlike work, by each row's times."""
    lines = []
    for (phase, what), row in _find_rows(history).items():
        times = [f"{how} {three_digits(series.values[-1])}" for how, series in row.items()]
        lines.append(f"- {TITLES[phase]}, {what}: {format_list(times, 8)} ms")
    return usual.without(SectionKind.EXTREMES).with_lines(lines)


def _find_rows(history: History) -> Rows:
    """Group tonight's times, the prompts first, then the depths."""
    tonight = plots.measured_tonight(history, {"run_time"})
    rows: dict[tuple[str, str], dict[str, Series]] = {}
    for series in sorted(tonight, key=lambda series: series.labels["workload_args"]["phase"] != PREFILL):
        device, args = device_of(series.labels), series.labels["workload_args"]
        place = "" if device == CPU else f"on {device}"
        how = " ".join(filter(None, (series.labels["engine"], series.labels["build_config"].get("variant"), place)))
        rows.setdefault((args["phase"], _describe(str(series.labels["workload"]), args)), {})[how] = series
    return rows


def _describe(workload: str, args: Mapping[str, Any]) -> str:
    """Name a call as in `15M float32, prompt 32` and `15M q4f32, depth 512, batch 4`."""
    model = f"{workload.partition('.')[2]} {args['dtype']}"
    if args["phase"] == PREFILL:
        return f"{model}, prompt {args['prompt']}"
    return f"{model}, depth {args['depth']}" + (f", batch {args['batch']}" if args["batch"] > 1 else "")


def _list_points(name: str, values: Mapping[str, Any], config: LlmConfig) -> Iterator[Point]:
    """Yield the network's call on each engine that has its dtype and its batch."""
    workload, group, target = f"llm.{name}", f"{name} {values['dtype']}", workloads.target_text(config)
    if workloads.TVM.name in config.engines:
        for variant in config.variants:
            yield Point(workload, {**values, "variant": variant}, f"{group} {variant}", target)
    if reference_engines.TORCH.name in config.engines and values["dtype"] in _FLOATS_OF_TORCH:
        yield Point(workload, values, group, "cpu", reference_engines.TORCH.name)
    if LLAMA_CPP.name in config.engines and values["dtype"] in TOLERANCES and values["batch"] == 1:
        yield Point(workload, values, group, "cpu", LLAMA_CPP.name)


def _compiled(point: Point) -> Compiled:
    """Compile the module that all points of a group share."""
    dtype, variant, target = point.values["dtype"], point.values["variant"], json.loads(point.target)

    def lower() -> Any:
        import relax_llama

        kind = relax_llama.ModuleKind(network.NETWORKS[point.name], dtype, variant, make_target(target))
        return relax_llama.lower(kind)

    return relax_util.compile_module(lower, CompileOptions(target, PIPELINES[variant]), shared=point.group)


def _hash(compiled: Compiled, tokens: Array, call: Callable[[], PointCall]) -> str:
    """Hash code, tokens and weights."""
    return hash_program(compiled, (tokens, call().session.digest))


Made = TypeVar("Made")
_made: dict[str, Any] = {}


def _share(point: Point, make: Callable[[], Made]) -> Made:
    """Make once what all points of the process share: its engine, loaded, with its answers checked."""
    key = f"{point.engine} {point.group}"
    if key not in _made:
        _made[key] = make()
    made: Made = _made[key]
    return made


def _open(point: Point, config: LlmConfig, seed: int, known: Answers, compiled: Compiled | None) -> DecoderSession:
    """Load the network with its weights, on TVM where it is compiled, else on torch; check its answers."""
    model, dtype = network.NETWORKS[point.name], point.values["dtype"]
    weights = network.make_weights(model, dtype, seed)
    arrays = [array for _, array in network.list_arrays(weights)]
    rows = max(len(known.traces), *config.batches)
    longest = max(*config.prompts, *config.depths, answers.LONGEST) + config.tokens + 1
    begun = time.perf_counter()
    loaded = relax_util.load(compiled, config.threads, point.device) if compiled else None
    times = {"load_time": (time.perf_counter() - begun) * 1e3} if loaded else {}
    begun = time.perf_counter()
    decoder: Decoder | TorchDecoder
    decoder = (
        Decoder(loaded, arrays, rows, longest)
        if loaded
        else TorchDecoder(model, weights, rows, longest, config.threads)
    )
    times |= {
        "weights_time": (time.perf_counter() - begun) * 1e3,
        "first_call": answers.time_first_call(decoder, known),
    }
    checked = answers.check_alone(decoder, known.traces, dtype)
    if isinstance(decoder, Decoder):
        answers.check_together(decoder, known.traces, dtype)
    digest = hashlib.blake2b()
    for array in arrays:
        digest.update(array.data)
    size_bytes = sum(array.nbytes for array in arrays)
    count = decoder.count_kernels if isinstance(decoder, Decoder) else None
    describe = loaded.describe_device if loaded and point.device != CPU else None
    return DecoderSession(
        decoder, size_bytes, np.frombuffer(digest.digest(), np.uint8), checked, times, count, describe
    )


def _prepare_llama_cpp(point: Point, config: LlmConfig, seed: int, known: Answers) -> Prepared:
    model, longest = network.NETWORKS[point.name], max(*config.prompts, *config.depths) + MOST_TOKENS

    def make() -> LlamaCpp:
        return LlamaCpp(model, network.make_weights(model, point.values["dtype"], seed), longest, config.threads)

    call = LlamaCppCall(model, point.values, _share(point, make), known, seed)
    return Prepared(call.time, call.check, after=call.find_facts, details={"called_from": "llama.cpp"})


if __name__ == "__main__":
    raise SystemExit(Llm().main())
