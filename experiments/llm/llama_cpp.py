"""The same weights in llama.cpp, through xllamacpp's server in this process; the times are llama.cpp's own.

So what the server does around a prompt and a token (slots, JSON) is in none of them. A depth is a real prompt, which
the server keeps from call to call.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf_file
import limits
import network
import numpy as np
from answers import STEPS, Answers, Trace
from calls import PREFILL
from network import Llama, Weights

from tvmdash.errors import DashboardError

TOLERANCES: Mapping[str, float] = {"float32": 0.05, "float16": 0.05, "q4f32": 0.5}
"""The largest error of a log-probability, of which llama.cpp tells the first `TOLD`; it multiplies 4-bit weights with
activations rounded to 8 bits."""
TOLD = 50


class LlamaCpp:
    """A server of one sequence. load_ms: what it took to read the file."""

    def __init__(self, model: Llama, weights: Weights, longest: int, threads: int) -> None:
        import xllamacpp

        parameters = xllamacpp.CommonParams()
        parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers = longest, 1, 0
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
        parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        parameters.cache_ram_mib, parameters.no_perf, parameters.verbosity = 0, False, 0
        with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
            file = Path(folder) / "model.gguf"
            gguf_file.write(file, model, weights)
            parameters.model.path = str(file)
            begun = time.perf_counter()
            self._server = xllamacpp.Server(parameters)
            self.load_ms = (time.perf_counter() - begun) * 1e3

    def complete(self, prompt: Sequence[int], count: int, **asked: Any) -> dict[str, Any]:
        """What the server answers: `count` tokens after the prompt, each the likeliest."""
        request = {
            "prompt": list(prompt),
            "n_predict": count,
            "temperature": 0.0,
            "samplers": ["top_k"],
            "top_k": 1,
            "cache_prompt": False,
            **asked,
        }
        given = self._server.handle_completions(request)
        answer: dict[str, Any] = json.loads(given) if isinstance(given, str | bytes) else given
        if "timings" not in answer:
            raise DashboardError(f"llama.cpp gave no timings for a prompt of {len(prompt)} tokens: {str(answer)[:300]}")
        return answer

    def check(self, traces: Sequence[Trace], dtype: str) -> dict[str, float]:
        """Facts for the record; DashboardError where a token or its probability is not the reference's."""
        worst, same = 0.0, 0
        for trace in traces:
            answer = self.complete(trace.prompt, STEPS, n_probs=TOLD)
            for token, logits, told in zip(trace.tokens, trace.logits, _list_steps(answer), strict=False):
                known = logits - logits.max()
                known = known - np.log(np.exp(known).sum())
                worst = max(worst, *(abs(entry["logprob"] - known[entry["id"]]) for entry in told["top_logprobs"]))
                if told["id"] != token:
                    break  # what comes after another token is not comparable
                same += 1
            _check_divergence(answer, trace, TOLERANCES[dtype])
        if worst > TOLERANCES[dtype]:
            raise DashboardError(
                f"wrong answer: a log-probability is off by {worst:.2g}, more than {TOLERANCES[dtype]:g}."
            )
        return {"max_error": worst, "tolerance": TOLERANCES[dtype], "same_tokens": same}


def _list_steps(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = answer["choices"][0]["logprobs"]["content"]
    return steps


def _check_divergence(answer: Mapping[str, Any], trace: Trace, tolerance: float) -> None:
    own = [step["id"] for step in _list_steps(answer)]
    step = next((at for at, pair in enumerate(zip(own, trace.tokens, strict=False)) if pair[0] != pair[1]), None)
    if step is not None and trace.margins[step] > 2 * tolerance:
        raise DashboardError(
            f"wrong answer: token {step + 1} after a prompt of {len(trace.prompt)} is {own[step]}, the reference's "
            f"{trace.tokens[step]}, by a margin of {trace.margins[step]:.2g}."
        )


@dataclass(frozen=True)
class LlamaCppCall:
    """The call of one point: a prompt, or tokens after it."""

    model: Llama
    values: Mapping[str, Any]
    engine: LlamaCpp
    known: Answers
    seed: int

    def time(self, number: int, repeat: int) -> list[int]:
        """A timer of prompts, or of so many tokens in a row after a prompt that the server knows already."""
        return [self._time_prompts(number) if self._is_prefill else self._time_tokens(number) for _ in range(repeat)]

    def check(self) -> dict[str, float]:
        """Facts of the answers, which are those of the traces at every point."""
        facts = self.engine.check(self.known.traces, self.values["dtype"])
        self.time(1, 1)
        limits.reset_peak_memory()
        return facts

    def find_facts(self) -> dict[str, float]:
        """Numbers beside the time."""
        return {"peak_memory": limits.read_peak_memory()}

    @property
    def _is_prefill(self) -> bool:
        return bool(self.values["phase"] == PREFILL)

    def _time_prompts(self, number: int) -> int:
        prompt = network.make_tokens(self.model, self.values["prompt"], self.seed)
        taken_ms = [self.engine.complete(prompt, 1)["timings"]["prompt_ms"] for _ in range(number)]
        return int(sum(taken_ms) * 1e6)

    def _time_tokens(self, number: int) -> int:
        prompt = network.make_tokens(self.model, self.values["depth"], self.seed)
        answer = self.engine.complete(prompt, number + 1, cache_prompt=True, ignore_eos=True)
        return int(answer["timings"]["predicted_per_token_ms"] * number * 1e6)
