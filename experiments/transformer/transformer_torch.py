"""The transformer in PyTorch, eager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvmdash.networks.ops import Array
from tvmdash.networks.transformer import EPSILON, Model, Step

Call = Callable[[], Sequence[Any]]


def call_of(model: Model, weights: Mapping[str, Array], step: Step, threads: int, place: str) -> Call:
    """A call that gives the result and the longer cache as torch tensors; all that it needs is tensors already."""
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
    mixed = functional.scaled_dot_product_attention(queries, keys, values, is_causal=not past)
    return [mixed.permute(1, 0, 2).reshape(count, model.width) @ weights[f"{layer}.out"], keys, values]


def _norm(x: Any, weights: Any) -> Any:
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], weights[0], weights[1], EPSILON)
