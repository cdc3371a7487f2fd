"""The network's weights in llama.cpp, through xllamacpp's server in this process; the times are llama.cpp's own.

So what the server does around a prompt and a token (slots, JSON) is in none of them. A depth is a real prompt, which
the server keeps from call to call.
"""

from __future__ import annotations

import json
import struct
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import network
import numpy as np
from answers import STEPS, Answers, Trace
from calls import PREFILL, read_peak_memory, reset_peak_memory
from network import EPSILON, GROUP, THETA, ZERO, Llama, Packed, Weights

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

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
        # a cache of prompts would answer what was asked before; without no_perf=False there are no timings
        parameters.cache_ram_mib, parameters.no_perf, parameters.verbosity = 0, False, 0
        with tempfile.TemporaryDirectory(prefix="tvmdash-") as folder:
            file = Path(folder) / "model.gguf"
            write_gguf(file, model, weights)
            parameters.model.path = str(file)
            begun = time.perf_counter()
            self._server = xllamacpp.Server(parameters)
            self.load_ms = (time.perf_counter() - begun) * 1e3

    def complete(self, prompt: Sequence[int], count: int, **asked: Any) -> dict[str, Any]:
        """Ask the server for `count` tokens after the prompt, each the likeliest."""
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
        """Return facts for the record; DashboardError where a token or its probability is not the reference's."""
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
        """Time prompts, or tokens in a row after a prompt that the server knows already."""
        return [self._time_prompts(number) if self._is_prefill else self._time_tokens(number) for _ in range(repeat)]

    def check(self) -> dict[str, float]:
        """Return facts of the answers, which are those of the traces at every point."""
        facts = self.engine.check(self.known.traces, self.values["dtype"])
        self.time(1, 1)
        reset_peak_memory()
        return facts

    def find_facts(self) -> dict[str, float]:
        return {"peak_memory": read_peak_memory()}

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


ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32, _F16, _Q4_0 = 0, 1, 2
_ZERO_OF_Q4_0 = 8
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
"""Kinds of tokens. The vocabulary is a dummy, because llama.cpp's server does not start without one."""


def write_gguf(file: Path, model: Llama, weights: Weights) -> None:
    """Write the very weights for llama.cpp: 4-bit ones as Q4_0, whose zero is 8 and not 7.

    GGUF, version 3: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
    """
    tensors = list(_list_tensors(model, weights))
    facts = list(_list_facts(model))
    with file.open("wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(facts)))
        for name, kind, value in facts:
            out.write(_text(name) + struct.pack("<I", kind) + value)
        offset = 0
        for name, shape, kind, data in tensors:
            out.write(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset))
            offset += len(data) + _padding(len(data))
        _pad(out)
        for *_, data in tensors:
            out.write(data)
            _pad(out)


def _pad(out: BinaryIO) -> None:
    out.write(bytes(_padding(out.tell())))


def _padding(size: int) -> int:
    return -size % ALIGNMENT


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _array(kind: int, count: int, data: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + data


def _list_facts(model: Llama) -> Iterator[tuple[str, int, bytes]]:
    yield "general.architecture", _STRING, _text("llama")
    numbers = {
        "context_length": 4096,
        "embedding_length": model.hidden,
        "block_count": model.layers,
        "feed_forward_length": model.inner,
        "attention.head_count": model.heads,
        "attention.head_count_kv": model.kv_heads,
        "rope.dimension_count": model.head_width,
        "vocab_size": model.vocabulary,
    }
    for name, number in numbers.items():
        yield f"llama.{name}", _UINT32, struct.pack("<I", number)
    for name, value in {"attention.layer_norm_rms_epsilon": EPSILON, "rope.freq_base": THETA}.items():
        yield f"llama.{name}", _FLOAT32, struct.pack("<f", value)
    size, special = model.vocabulary, ["<unk>", "<s>", "</s>"]
    tokens = [*special, *(f"w{at}" for at in range(len(special), size))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_NORMAL] * (size - len(special))]
    yield "tokenizer.ggml.model", _STRING, _text("llama")
    yield "tokenizer.ggml.tokens", _ARRAY, _array(_STRING, size, b"".join(map(_text, tokens)))
    yield "tokenizer.ggml.scores", _ARRAY, _array(_FLOAT32, size, bytes(4 * size))
    yield "tokenizer.ggml.token_type", _ARRAY, _array(_INT32, size, struct.pack(f"<{size}i", *kinds))
    for name, token in {"bos": 1, "eos": 2}.items():
        yield f"tokenizer.ggml.{name}_token_id", _UINT32, struct.pack("<I", token)
    yield "tokenizer.ggml.add_bos_token", _BOOL, struct.pack("<?", False)


Tensor = tuple[str, Sequence[int], int, bytes]


def _list_tensors(model: Llama, weights: Weights) -> Iterator[Tensor]:
    width = model.head_width
    queries, keys = model.heads * width, model.kv_heads * width
    for name, own in {"embedding": "token_embd", "head": "output", "norm": "output_norm"}.items():
        yield _tensor(own, weights[name])
    for layer in range(model.layers):
        of = {
            "attn_q": ("qkv", _pair(np.arange(queries), model.heads)),
            "attn_k": ("qkv", queries + _pair(np.arange(keys), model.kv_heads)),
            "attn_v": ("qkv", queries + keys + np.arange(keys)),
            "attn_output": ("out", np.arange(model.hidden)),
            "ffn_gate": ("gate_up", np.arange(model.inner)),
            "ffn_up": ("gate_up", model.inner + np.arange(model.inner)),
            "ffn_down": ("down", np.arange(model.hidden)),
            "attn_norm": ("attention_norm", np.arange(model.hidden)),
            "ffn_norm": ("inner_norm", np.arange(model.hidden)),
        }
        for own, (name, rows) in of.items():
            part = weights[f"{layer}.{name}"]
            taken = Packed(part.words[rows], part.scales[rows]) if isinstance(part, Packed) else part[rows]
            yield _tensor(f"blk.{layer}.{own}", taken)


def _pair(rows: Array, heads: int) -> Array:
    """Order the rows of queries or keys as llama.cpp does: it rotates neighbours, and not halves."""
    return rows.reshape(heads, 2, -1).swapaxes(1, 2).ravel()


def _tensor(name: str, part: Array | Packed) -> Tensor:
    if isinstance(part, Packed):
        return f"{name}.weight", (len(part.words), part.words.shape[1] * 8), _Q4_0, _make_q4_0(part)
    floats, kind = (np.float16, _F16) if part.dtype == np.float16 and part.ndim > 1 else (np.float32, _F32)
    return f"{name}.weight", part.shape, kind, np.ascontiguousarray(part, floats).tobytes()


def _make_q4_0(part: Packed) -> bytes:
    """Pack blocks of a float16 scale and 16 bytes, each with a number of the first half below one of the second."""
    numbers = (part.numbers() + (_ZERO_OF_Q4_0 - ZERO)).astype(np.uint8)
    low, high = numbers[..., : GROUP // 2], numbers[..., GROUP // 2 :]
    scales = part.scales.astype(np.float16)[..., None].view(np.uint8)
    blocks: Array = np.concatenate([scales, low | (high << 4)], axis=-1)
    return blocks.tobytes()
