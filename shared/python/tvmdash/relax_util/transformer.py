"""The transformer in Relax, for one length or with the length as a symbol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmdash.networks.ops import Array
from tvmdash.networks.transformer import EPSILON, Model

Expr = Any
"""A relax.Expr; TVM has no types of its own to offer."""
FAR_BELOW = -1e9
"""Added to the scores of tokens that are still to come."""


def lower(model: Model, weights: Mapping[str, Array], phase: str, length: int | None) -> Any:
    """Return an IRModule whose `main` takes a Step's inputs and cache and returns its result and the longer cache.

    The weights are constants. `length` None makes the number of tokens (prefill) or of those in the cache (decode)
    a symbol.
    """
    from tvm import relax, te

    count: Any = te.var("length", "int64") if length is None else length
    builder = relax.BlockBuilder()
    inputs, cache = _arguments(model, phase, count)
    tokens = count if phase == "prefill" else 1
    building = _Building(model, weights, builder.emit, tokens)
    with builder.function("main", [*inputs, *cache]):
        with builder.dataflow():
            result, filled = building.body(inputs, cache)
            output = builder.emit_output(relax.Tuple([result, *filled]))
        builder.emit_func_output(output)
    return builder.finalize()


def _arguments(model: Model, phase: str, count: Any) -> tuple[list[Expr], list[Expr]]:
    from tvm import relax

    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    tokens = count if phase == "prefill" else 1
    if model.is_decoder:
        inputs = [relax.Var(name, tensor((tokens,), "int64")) for name in ("tokens", "positions")]
    else:
        inputs = [relax.Var("vectors", tensor((tokens, model.width), "float32"))]
    names = [f"{part}{layer}" for layer in range(model.layers) for part in ("keys", "values")]
    shape = tensor((model.heads, count, model.head_width), "float32")
    return inputs, [relax.Var(name, shape) for name in names] if phase == "decode" else []


class _Building:
    """Emits the operators of one function; `tokens` is the number of its inputs, or an expression."""

    def __init__(self, model: Model, weights: Mapping[str, Array], emit: Callable[[Expr], Expr], tokens: Any) -> None:
        from tvm import relax

        self._model, self._emit, self._tokens, self._op = model, emit, tokens, relax.op
        self._constants = {name: _constants(name, array) for name, array in weights.items()}

    def body(self, inputs: Sequence[Expr], cache: Sequence[Expr]) -> tuple[Expr, list[Expr]]:
        """Return the result and the longer cache."""
        emit, op = self._emit, self._op
        x = self._embedded(*inputs) if self._model.is_decoder else inputs[0]
        ahead = None if cache else self._ahead()
        filled: list[Expr] = []
        for layer in range(self._model.layers):
            normed = self._norm(x, f"{layer}.attention_norm")
            added, *kept = self._attention(normed, layer, cache[2 * layer : 2 * layer + 2], ahead)
            x, filled = emit(op.add(x, added)), [*filled, *kept]
            if self._model.is_decoder:
                inner = emit(op.matmul(self._norm(x, f"{layer}.inner_norm"), self._constants[f"{layer}.up"][0]))
                x = emit(op.add(x, op.matmul(op.nn.gelu(inner), self._constants[f"{layer}.down"][0])))
        return (self._logits(x) if self._model.is_decoder else x), filled

    def _embedded(self, tokens: Expr, positions: Expr) -> Expr:
        take = self._op.take
        token, position = (self._constants[name][0] for name in ("token", "position"))
        return self._emit(self._op.add(take(token, tokens, axis=0), take(position, positions, axis=0)))

    def _ahead(self) -> Expr:
        from tvm import relax

        whole = self._op.full((self._tokens, self._tokens), relax.const(FAR_BELOW, "float32"), "float32")
        return self._emit(self._op.triu(whole, 1))

    def _attention(self, x: Expr, layer: int, past: Sequence[Expr], ahead: Expr | None) -> tuple[Expr, Expr, Expr]:
        from tvm import relax

        emit, op, model = self._emit, self._op, self._model
        projected = op.matmul(x, self._constants[f"{layer}.qkv"][0])
        parted = op.reshape(projected, (self._tokens, 3, model.heads, model.head_width))
        three = emit(op.split(op.permute_dims(parted, [1, 2, 0, 3]), 3, axis=0))
        queries, keys, values = (emit(op.squeeze(relax.TupleGetItem(three, index), [0])) for index in range(3))
        if past:
            keys, values = (emit(op.concat(list(pair), axis=1)) for pair in zip(past, (keys, values), strict=True))
        scores = op.multiply(op.matmul(queries, op.permute_dims(keys, [0, 2, 1])), relax.const(model.scale, "float32"))
        shares = emit(op.nn.softmax(scores if ahead is None else op.add(scores, ahead), axis=-1))
        mixed = op.permute_dims(op.matmul(shares, values), [1, 0, 2])
        joined = emit(op.reshape(mixed, (self._tokens, model.width)))
        return emit(op.matmul(joined, self._constants[f"{layer}.out"][0])), keys, values

    def _norm(self, x: Expr, name: str) -> Expr:
        return self._emit(self._op.nn.layer_norm(x, *self._constants[name], axes=[-1], epsilon=EPSILON))

    def _logits(self, x: Expr) -> Expr:
        last = self._op.strided_slice(x, [0], [self._tokens - 1], [self._tokens])
        normed = self._norm(self._emit(last), "norm")
        return self._emit(self._op.matmul(normed, self._op.permute_dims(self._constants["token"][0])))


def _constants(name: str, array: Array) -> list[Expr]:
    """Return the weight, or scale and shift of a norm."""
    from tvm import relax

    parts = array if name.endswith("norm") else (array,)
    return [relax.const(np.ascontiguousarray(part)) for part in parts]
