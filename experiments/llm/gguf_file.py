"""The weights as a GGUF file, version 3, for llama.cpp: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from network import EPSILON, GROUP, THETA, ZERO, Llama, Packed, Weights

from tvmdash.networks.ops import Array

ALIGNMENT = 32
_UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_F32, _F16, _Q4_0 = 0, 1, 2
_ZERO_OF_Q4_0 = 8
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
"""Kinds of tokens. The vocabulary is a dummy, because llama.cpp's server does not start without one."""


def write(file: Path, model: Llama, weights: Weights) -> None:
    """Write the very weights: 4-bit ones as Q4_0, whose zero is 8 and not 7."""
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
    """The rows of queries or keys in llama.cpp's order: it rotates neighbours, and not halves."""
    return rows.reshape(heads, 2, -1).swapaxes(1, 2).ravel()


def _tensor(name: str, part: Array | Packed) -> Tensor:
    if isinstance(part, Packed):
        return f"{name}.weight", (len(part.words), part.words.shape[1] * 8), _Q4_0, _make_q4_0(part)
    floats, kind = (np.float16, _F16) if part.dtype == np.float16 and part.ndim > 1 else (np.float32, _F32)
    return f"{name}.weight", part.shape, kind, np.ascontiguousarray(part, floats).tobytes()


def _make_q4_0(part: Packed) -> bytes:
    """Blocks of a float16 scale and 16 bytes, each with a number of the first half below one of the second."""
    numbers = (part.numbers() + (_ZERO_OF_Q4_0 - ZERO)).astype(np.uint8)
    low, high = numbers[..., : GROUP // 2], numbers[..., GROUP // 2 :]
    scales = part.scales.astype(np.float16)[..., None].view(np.uint8)
    blocks: Array = np.concatenate([scales, low | (high << 4)], axis=-1)
    return blocks.tobytes()
