"""The transformer as data: sizes, seeded weights and inputs, and its answer in plain numpy.

The blocks are GPT-2's (layer norm before attention and before the inner layers, learned positions, GELU with the error
function, the head tied to the token table) without biases in the projections. Batch 1. The cache is plain tensors: for
each layer keys and values (heads, tokens, width / heads).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

EPSILON = 1e-5
INNER = 4
"""Ratio of a block's inner width to its outer one."""


@dataclass(frozen=True)
class Model:
    """Sizes. A model with `vocabulary` 0 is one attention block on vectors, without inner layers and head."""

    layers: int
    width: int
    heads: int
    vocabulary: int
    positions: int

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise DashboardError(f"width {self.width} is not divisible by {self.heads} heads. Change one of them.")

    @property
    def is_decoder(self) -> bool:
        return self.vocabulary > 0

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def scale(self) -> float:
        """Return the factor of the attention scores."""
        return 1.0 / math.sqrt(self.head_width)


@dataclass(frozen=True)
class Step:
    """One call: inputs, cache, and expected outputs (in float64).

    `inputs` are token numbers and positions of the decoder, vectors of the attention block. `cache` and `expected` have
    a layer's keys, its values, the next layer's keys and so on; in `expected` the result is before them. An empty
    `cache` is a prefill.
    """

    inputs: tuple[Array, ...]
    cache: tuple[Array, ...]
    expected: tuple[Array, ...]


def make_weights(model: Model, seed: int) -> dict[str, Array]:
    """Return float32 weights by name, scaled so that vectors keep their size from layer to layer."""
    rng = np.random.default_rng([seed, 0])
    width, inner = model.width, INNER * model.width
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(model.layers):
        shapes |= {f"{layer}.attention_norm": (2, width), f"{layer}.qkv": (width, 3 * width)}
        shapes |= {f"{layer}.out": (width, width)}
        if model.is_decoder:
            shapes |= {f"{layer}.inner_norm": (2, width), f"{layer}.up": (width, inner)}
            shapes |= {f"{layer}.down": (inner, width)}
    if model.is_decoder:
        shapes |= {"norm": (2, width), "token": (model.vocabulary, width), "position": (model.positions, width)}
    return {name: _weight(name, shape, rng) for name, shape in shapes.items()}


def _weight(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    if name.endswith("norm"):  # scale and shift
        made = np.stack([rng.uniform(0.5, 1.0, shape[1]), rng.normal(0.0, 0.1, shape[1])])
    else:
        fan_in = shape[1] if name in {"token", "position"} else shape[0]
        made = rng.standard_normal(shape) / math.sqrt(fan_in)
    return made.astype(np.float32)


def make_step(model: Model, weights: Mapping[str, Array], phase: str, length: int, seed: int) -> Step:
    """Make the prefill of `length` tokens, or the decoding of one token after them; the seed determines the tokens."""
    rng = np.random.default_rng([seed, 1])
    ids = rng.integers(0, max(1, model.vocabulary), length + 1)
    vectors = rng.standard_normal((length + 1, model.width)).astype(np.float32)
    positions = np.arange(length + 1)
    sequence = (ids, positions) if model.is_decoder else (vectors,)
    prompt = tuple(part[:length] for part in sequence)
    filled = forward(model, weights, prompt, ())
    if phase == "prefill":
        return Step(prompt, (), filled)
    cache = tuple(part.astype(np.float32) for part in filled[1:])
    last = tuple(part[length:] for part in sequence)
    return Step(last, cache, forward(model, weights, last, cache))


def forward(
    model: Model, weights: Mapping[str, Array], inputs: Sequence[Array], cache: Sequence[Array]
) -> tuple[Array, ...]:
    """Return the result and the longer cache, in float64. The decoder's result is the logits after the last token."""
    wide = {name: array.astype(np.float64) for name, array in weights.items()}
    x = wide["token"][inputs[0]] + wide["position"][inputs[1]] if model.is_decoder else inputs[0].astype(np.float64)
    filled: list[Array] = []
    for layer in range(model.layers):
        own = {name.partition(".")[2]: array for name, array in wide.items() if name.startswith(f"{layer}.")}
        past = [part.astype(np.float64) for part in cache[2 * layer : 2 * layer + 2]]
        added, keys, values = _attention(model, own, _norm(x, own["attention_norm"]), past)
        x = x + added
        filled += [keys, values]
        if model.is_decoder:
            x = x + _gelu(_norm(x, own["inner_norm"]) @ own["up"]) @ own["down"]
    result = (_norm(x[-1:], wide["norm"]) @ wide["token"].T) if model.is_decoder else x
    return result, *filled


def _attention(
    model: Model, weights: Mapping[str, Array], x: Array, past: Sequence[Array]
) -> tuple[Array, Array, Array]:
    count = len(x)
    split = (x @ weights["qkv"]).reshape(count, 3, model.heads, model.head_width).transpose(1, 2, 0, 3)
    queries, keys, values = split
    if past:
        keys, values = np.concatenate([past[0], keys], axis=1), np.concatenate([past[1], values], axis=1)
    scores = queries @ keys.transpose(0, 2, 1) * model.scale
    ahead = np.arange(keys.shape[1]) > np.arange(keys.shape[1] - count, keys.shape[1])[:, None]
    powers = np.exp(np.where(ahead, -np.inf, scores - scores.max(axis=-1, keepdims=True)))
    mixed = powers / powers.sum(axis=-1, keepdims=True) @ values
    return mixed.transpose(1, 0, 2).reshape(count, model.width) @ weights["out"], keys, values


def _norm(x: Array, weights: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    result: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON) * weights[0] + weights[1]
    return result


def _gelu(x: Array) -> Array:
    erf = np.array([math.erf(value) for value in (x / math.sqrt(2.0)).flat]).reshape(x.shape)
    result: Array = 0.5 * x * (1.0 + erf)
    return result
