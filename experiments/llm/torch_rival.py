"""The decoder in torch, eager, with a cache that is allocated once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import network
import numpy as np
from network import EPSILON, THETA, Llama, Weights

from tvmdash.networks.ops import Array


class TorchDecoder:
    """A network on torch. All rows are at the same depth, so that one call computes them."""

    def __init__(self, model: Llama, weights: Weights, rows: int, longest: int, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self._torch, self._model = torch, model
        self._weights = {name: torch.from_numpy(array) for name, array in network.unpack(weights).items()}
        self._floats = self._weights["embedding"].dtype
        shape = (2, rows, model.kv_heads, longest, model.head_width)
        self._cache = [torch.zeros(shape, dtype=self._floats) for _ in range(model.layers)]
        powers = torch.arange(0, model.head_width, 2, dtype=torch.float32) / model.head_width
        angles = torch.outer(torch.arange(longest, dtype=torch.float32), THETA**-powers)
        self._cosines, self._sines = (torch.cat([wave, wave], -1) for wave in (angles.cos(), angles.sin()))
        self._depth = 0

    def start(self, _rows: int) -> None:
        self._depth = 0

    def tokens(self, rows: Any) -> Any:
        return self._torch.from_numpy(np.asarray(rows, np.int64))

    def fill(self, past: Array, row: int = 0) -> None:
        keys, values = (self._torch.from_numpy(part) for part in network.split_past(self._model, past))
        for layer in self._cache:
            layer[0, row, :, : past.shape[1]], layer[1, row, :, : past.shape[1]] = keys, values
        self._depth = past.shape[1]

    def prefill(self, prompt: Any, _row: int = 0) -> Any:
        return self._forward(prompt)

    def decode(self, tokens: Any, _rows: Sequence[int]) -> Any:
        return self._forward(tokens)

    def go_back(self, count: int, _rows: Sequence[int]) -> None:
        self._depth -= count

    def read(self, logits: Any) -> Array:
        values: Array = logits.numpy()
        return values

    def _forward(self, ids: Any) -> Any:
        with self._torch.inference_mode():
            functional, weights, model = self._torch.nn.functional, self._weights, self._model
            rows, count = ids.shape
            x = functional.embedding(ids, weights["embedding"])
            places = slice(self._depth, self._depth + count)
            for layer in range(model.layers):
                qkv = functional.linear(self._norm(x, f"{layer}.attention_norm"), weights[f"{layer}.qkv"])
                mixed = self._attend(qkv.view(rows, count, model.qkv_heads, -1).transpose(1, 2), layer, places)
                x = x + functional.linear(mixed.transpose(1, 2).flatten(2), weights[f"{layer}.out"])
                inner = functional.linear(self._norm(x, f"{layer}.inner_norm"), weights[f"{layer}.gate_up"])
                gate, up = inner.chunk(2, -1)
                x = x + functional.linear(functional.silu(gate) * up, weights[f"{layer}.down"])
            self._depth += count
            return functional.linear(self._norm(x[:, -1], "norm"), weights["head"]).float()

    def _attend(self, qkv: Any, layer: int, places: slice) -> Any:
        model, rows = self._model, len(qkv)
        rotated = self._rotate(qkv[:, : model.heads + model.kv_heads], places)
        keys, values = self._cache[layer][:, :rows, :, : places.stop]
        keys[:, :, places], values[:, :, places] = rotated[:, model.heads :], qkv[:, model.heads + model.kv_heads :]
        attend, is_prompt = self._torch.nn.functional.scaled_dot_product_attention, places.start == 0
        return attend(rotated[:, : model.heads], keys, values, is_causal=is_prompt, enable_gqa=True)

    def _rotate(self, parts: Any, places: slice) -> Any:
        wide, half = parts.float(), parts.shape[-1] // 2
        turned = self._torch.cat([-wide[..., half:], wide[..., :half]], -1)
        return (wide * self._cosines[places] + turned * self._sines[places]).to(self._floats)

    def _norm(self, x: Any, name: str) -> Any:
        wide = x.float()
        scaled = wide * self._torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
        return (scaled * self._weights[name].float()).to(self._floats)
