"""Llama-shaped decoders as data: sizes, seeded weights, 4-bit groups, and the right answer in plain numpy.

RMSNorm, rotary positions in halves, grouped queries, SwiGLU, a head of its own. With a tied head greedy decoding
repeats one token, and an equal token proves nothing; so the head is untied, and its weights are twice as large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.networks.ops import Array

EPSILON, THETA = 1e-5, 10000.0
GROUP = 32
"""Weights of a row that share one scale where they have 4 bits."""
ZERO = 7
"""The 4-bit number that means 0, as in MLC's q4f16_1."""
FLOATS: Mapping[str, str] = {"float32": "float32", "float16": "float16", "q4f32": "float32", "q4f16": "float16"}
"""By dtype of the experiment, what activations and the weights that are not quantised have."""


@dataclass(frozen=True)
class Llama:
    """The sizes of a network. A head is 64 numbers wide in all of `NETWORKS` but the smallest."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads

    @property
    def qkv_heads(self) -> int:
        """Queries, keys and values come out of one product, in this order."""
        return self.heads + 2 * self.kv_heads

    @property
    def scale(self) -> float:
        """Of the attention scores."""
        return 1.0 / math.sqrt(self.head_width)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shape of each weight by its name; a matrix is (outputs, inputs)."""
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            shapes |= {f"{layer}.attention_norm": (self.hidden,), f"{layer}.inner_norm": (self.hidden,)}
            shapes |= {f"{layer}.qkv": (self.qkv_heads * self.head_width, self.hidden)}
            shapes |= {f"{layer}.out": (self.hidden, self.hidden)}
            shapes |= {f"{layer}.gate_up": (2 * self.inner, self.hidden), f"{layer}.down": (self.hidden, self.inner)}
        return {**shapes, "norm": (self.hidden,), "head": (self.vocabulary, self.hidden)}

    @property
    def parameters(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes().values())

    def kv_bytes(self, tokens: int, dtype: str) -> int:
        """Return the bytes of the keys and values of so many tokens."""
        return 2 * self.layers * self.kv_heads * self.head_width * tokens * np.dtype(FLOATS[dtype]).itemsize


NETWORKS: Mapping[str, Llama] = {
    "tiny": Llama(hidden=64, layers=2, heads=4, kv_heads=2, inner=96, vocabulary=256),
    "15M": Llama(hidden=256, layers=9, heads=4, kv_heads=2, inner=704, vocabulary=16000),
    "110M": Llama(hidden=768, layers=10, heads=12, kv_heads=6, inner=2048, vocabulary=32000),
    "1.1B": Llama(hidden=2048, layers=16, heads=32, kv_heads=8, inner=8192, vocabulary=32000),
}


@dataclass(frozen=True)
class Packed:
    """A matrix of 4-bit numbers: 8 in a word, lowest first; a weight is (number - ZERO) * its group's scale.

    The scales are float16 numbers whatever their dtype is, so that llama.cpp's Q4_0 can hold the very same weights.
    """

    words: Array
    scales: Array

    def numbers(self) -> Array:
        """Return the 4-bit numbers, (outputs, groups, GROUP)."""
        parts = np.stack([(self.words >> np.uint32(4 * at)) & np.uint32(15) for at in range(8)], axis=2)
        return parts.reshape(len(self.words), -1, GROUP)

    def unpack(self) -> Array:
        """Return the weights that it stands for."""
        wide = (self.numbers().astype(np.float32) - ZERO) * self.scales.astype(np.float32)[:, :, None]
        return wide.reshape(len(self.words), -1)


Weights = Mapping[str, Array | Packed]
Cache = Sequence[tuple[Array, Array]]
"""For each layer the rotated keys and the values, (kv_heads, tokens, head_width)."""


def make_weights(model: Llama, dtype: str, seed: int) -> Weights:
    """Draw the weights by name, each of its own stream of numbers; matrices but the embedding are packed in 4 bits."""
    made = {name: _weight(name, shape, [seed, at]) for at, (name, shape) in enumerate(model.shapes().items())}
    floats = FLOATS[dtype]
    return {
        name: pack(array, floats) if dtype.startswith("q4") and is_product(name) else array.astype(floats)
        for name, array in made.items()
    }


def is_product(name: str) -> bool:
    """Tell the matrix of a product, which 4-bit types pack."""
    return not name.endswith("norm") and name != "embedding"


def _weight(name: str, shape: tuple[int, ...], seed: list[int]) -> Array:
    made: Array = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed))).random(shape, dtype=np.float32)
    if name.endswith("norm"):
        return made * np.float32(0.5) + np.float32(0.75)
    deviation = 1.0 if name == "embedding" else (2.0 if name == "head" else 1.0) / math.sqrt(shape[1])
    # a uniform number of width 1 deviates by 1 / sqrt(12)
    return (made - np.float32(0.5)) * np.float32(math.sqrt(12.0) * deviation)


def pack(matrix: Array, floats: str) -> Packed:
    """Pack the matrix in 4 bits, symmetric about 0 in each group."""
    rows = len(matrix)
    groups = matrix.reshape(rows, -1, GROUP)
    # a group of zeros has no scale to divide by
    scales = np.maximum(np.abs(groups).max(axis=2) / 7.0, 1e-6).astype(np.float16)
    numbers = np.rint(groups / scales.astype(np.float32)[:, :, None]) + ZERO
    numbers = np.clip(numbers, 0, 2 * ZERO).astype(np.uint32).reshape(rows, -1, 8)
    words = np.zeros(numbers.shape[:2], np.uint32)
    for at in range(8):
        words |= numbers[:, :, at] << np.uint32(4 * at)
    return Packed(words, scales.astype(floats))


def unpack(weights: Weights) -> dict[str, Array]:
    return {name: part.unpack() if isinstance(part, Packed) else part for name, part in weights.items()}


def list_arrays(weights: Weights) -> Iterator[tuple[str, Array]]:
    """Yield each array with the name of the compiled module's parameter, in the module's order."""
    for name, part in weights.items():
        if isinstance(part, Packed):
            yield f"{name}.weight", part.words
            yield f"{name}.scales", part.scales
        else:
            yield name if name == "embedding" else f"{name}.weight", part


def make_tokens(model: Llama, count: int, *seed: int) -> list[int]:
    """Draw `count` tokens; a prompt of another length or row has others."""
    drawn: list[int] = np.random.default_rng([*seed, count]).integers(0, model.vocabulary, count).tolist()
    return drawn


def make_past(model: Llama, depth: int, dtype: str, *seed: int) -> Array:
    """Draw queries, keys, values of `depth` tokens, (1, depth, qkv_heads, head_width), for every layer's cache."""
    drawn = np.random.default_rng([*seed, depth]).standard_normal((1, depth, model.qkv_heads, model.head_width))
    return drawn.astype(FLOATS[dtype])


class NumpyDecoder:
    """The network in float64 numpy, which shares no code with a compiler."""

    def __init__(self, model: Llama, weights: Weights) -> None:
        self.model, self._weights = model, {name: part.astype(np.float64) for name, part in unpack(weights).items()}

    def forward(self, tokens: Sequence[int], past: Cache = ()) -> tuple[Array, Cache]:
        """Return the logits after the last token, and the longer cache."""
        weights, count = self._weights, past[0][0].shape[1] if past else 0
        x, filled = weights["embedding"][list(tokens)], []
        positions = np.arange(count, count + len(tokens))
        for layer in range(self.model.layers):
            own = {name: weights[f"{layer}.{name}"] for name in ("qkv", "out", "gate_up", "down")}
            qkv = _norm(x, weights[f"{layer}.attention_norm"]) @ own["qkv"].T
            queries, keys, values = split(self.model, qkv.reshape(len(tokens), self.model.qkv_heads, -1), positions)
            if past:
                keys, values = (np.concatenate(pair, axis=1) for pair in zip(past[layer], (keys, values), strict=True))
            filled.append((keys, values))
            x = x + self._attend(queries, keys, values, positions) @ own["out"].T
            gate, up = np.split(_norm(x, weights[f"{layer}.inner_norm"]) @ own["gate_up"].T, 2, axis=-1)
            x = x + (gate / (1.0 + np.exp(-gate)) * up) @ own["down"].T
        return _norm(x[-1], weights["norm"]) @ weights["head"].T, filled

    def _attend(self, queries: Array, keys: Array, values: Array, positions: Array) -> Array:
        shared = self.model.heads // self.model.kv_heads
        keys, values = keys.repeat(shared, axis=0), values.repeat(shared, axis=0)
        scores = queries @ keys.transpose(0, 2, 1) * self.model.scale
        scores = np.where(np.arange(keys.shape[1]) > positions[:, None], -np.inf, scores)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed: Array = powers / powers.sum(axis=-1, keepdims=True) @ values
        return mixed.transpose(1, 0, 2).reshape(len(positions), -1)


def split_past(model: Llama, past: Array) -> tuple[Array, Array]:
    """Return the rotated keys and the values that `make_past` leaves in every layer of the cache, in float64."""
    _, keys, values = split(model, past[0].astype(np.float64), np.arange(past.shape[1]))
    return keys, values


def split(model: Llama, qkv: Array, positions: Array) -> tuple[Array, Array, Array]:
    """Return rotated queries and keys, and values, (heads, tokens, head_width), of (tokens, qkv_heads, head_width)."""
    parts = qkv.transpose(1, 0, 2)
    rotated = _rotate(parts[: model.heads + model.kv_heads], positions)
    return rotated[: model.heads], rotated[model.heads :], parts[model.heads + model.kv_heads :]


def _rotate(parts: Array, positions: Array) -> Array:
    width = parts.shape[-1]
    angles = np.outer(positions, THETA ** (-np.arange(0, width, 2) / width))
    cosines, sines = (np.concatenate([wave, wave], axis=-1) for wave in (np.cos(angles), np.sin(angles)))
    turned = np.concatenate([-parts[..., width // 2 :], parts[..., : width // 2]], axis=-1)
    rotated: Array = parts * cosines + turned * sines
    return rotated


def _norm(x: Array, weights: Array) -> Array:
    normed: Array = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON) * weights
    return normed
