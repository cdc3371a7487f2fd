"""A Llama's times on each engine, as a table: `tests/python.sh tests/benchmarks/llm_rivals.py HOME [--network 15M]`.

HOME has had a night of `llm`, whose setup installed the rivals. Times are CPU time of one thread, medians of `CALLS`:
other load moves them little. What llama.cpp's server does around a prompt is in its first token; a token is the
difference of long and short answers. Nothing is printed of an engine whose answers are wrong.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests import artifact_for_tests
from tests.experiments.trying import modules
from tvmdash.relax_util import CompileOptions, compile_module, load, workloads
from tvmdash.relax_util.targets import make_target

PROMPTS, DEPTHS, DTYPES = (32, 128), (32, 512), ("float32", "q4f32")
CALLS, TOKENS, SEED = 9, 32, 0


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("home", type=Path)
    arguments.add_argument("--network", default="15M")
    asked = arguments.parse_args()
    artifact = artifact_for_tests.find()
    assert artifact, "run tests/run.sh once: it gets the TVM of the tests"
    sys.path[:0] = [*map(str, artifact.pythonpath), *map(str, (asked.home / "setup" / ".engines").iterdir())]
    own = modules("llm", with_tvm=True)
    columns = [f"first token of {length}" for length in PROMPTS] + [f"token at {depth}" for depth in DEPTHS]
    print(f"| {asked.network}, TVM {artifact.version}, CPU ms | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for dtype in DTYPES:
        for engine, times in _measure(own, own.network.NETWORKS[asked.network], dtype):
            print(
                f"| {dtype}, {engine} | {' | '.join(f'{ms:,.{1 if ms < 100 else 0}f}' for ms in times)} |", flush=True
            )


def _measure(own: SimpleNamespace, model: Any, dtype: str) -> Iterator[tuple[str, list[float]]]:
    """Each engine with its times in the order of the columns."""
    weights = own.network.make_weights(model, dtype, SEED)
    with tempfile.TemporaryDirectory() as folder:
        file = own.answers.file_of(Path(folder), "model", dtype)
        np.savez(file, **own.answers.make(model, dtype, PROMPTS, DEPTHS, 1, SEED))
        known = own.answers.Answers.read(file)
    arrays, longest = [array for _, array in own.network.list_arrays(weights)], max(PROMPTS + DEPTHS) + TOKENS
    target = workloads.make_target(1, "")
    for variant, pipeline in own.llm.PIPELINES.items():
        kind = own.relax_llama.ModuleKind(model, dtype, variant, make_target(target))
        loaded = load(compile_module(own.relax_llama.lower(kind), CompileOptions(target, pipeline)), 1)
        decoder = own.decoding.Decoder(loaded, arrays, 2, longest)
        yield f"TVM `{variant}`", list(_time_decoder(own, model, dtype, decoder, known))
    if dtype == "float32":
        decoder = own.torch_rival.TorchDecoder(model, weights, 2, longest, 1)
        yield "torch eager", list(_time_decoder(own, model, dtype, decoder, known))
    yield "llama.cpp", list(_time_llama_cpp(own, model, dtype, weights, known))


def _time_decoder(own: SimpleNamespace, model: Any, dtype: str, decoder: Any, known: Any) -> Iterator[float]:
    own.answers.check_alone(decoder, known.traces, dtype)
    session = own.calls.DecoderSession(decoder, 0, np.zeros(1, np.uint8), {}, {})
    steps = [{"phase": "prefill", "prompt": length} for length in PROMPTS]
    steps += [{"phase": "decode", "depth": depth} for depth in DEPTHS]
    for step in steps:
        values = {**step, "batch": 1, "dtype": dtype, "threads": 1}
        call = own.calls.PointCall(model, values, session, own.calls.make_tokens(model, values, SEED), SEED)
        call.check(known, 60.0)
        yield _time(call.step, call.go_back)


def _time_llama_cpp(own: SimpleNamespace, model: Any, dtype: str, weights: Any, known: Any) -> Iterator[float]:
    engine = own.llama_cpp.LlamaCpp(model, weights, max(DEPTHS) + 2 * TOKENS, 1)
    engine.check(known.traces, dtype)
    for length in PROMPTS:
        prompt = own.network.make_tokens(model, length, SEED)
        yield _time(lambda prompt=prompt: engine.complete(prompt, 1))
    for depth in DEPTHS:
        prompt = own.network.make_tokens(model, depth, SEED)
        times = [
            _time(lambda count=count, prompt=prompt: engine.complete(prompt, count, cache_prompt=True, ignore_eos=True))
            for count in (1, 1 + TOKENS)
        ]
        yield (times[1] - times[0]) / TOKENS


def _time(call: Callable[[], object], after: Callable[[], object] = lambda: None) -> float:
    """The CPU milliseconds of the process, the median after a call that is not counted."""
    taken = []
    for _ in range(1 + CALLS):
        begun = time.process_time()
        call()
        taken.append((time.process_time() - begun) * 1e3)
        after()
    return statistics.median(taken[1:])


if __name__ == "__main__":
    main()
