"""The recurrences on Relax: unrolled over the length, the input's products for all steps in one matmul before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from recurrence import Problem

from tvmdash.networks.ops import Array

Expr = Any
"""A relax.Expr; TVM has no types of its own to offer."""


def lower(problem: Problem) -> Any:
    """An IRModule whose `main` takes x and the state and gives the answers as a tuple; the weights are constants."""
    from tvm import relax

    case, builder = problem.case, relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    x = relax.Var("x", tensor(problem.x.shape, "float32"))
    state: list[Expr] = [
        relax.Var(f"s{index}", tensor(part.shape, "float32")) for index, part in enumerate(problem.state)
    ]
    with builder.function("main", [x, *state]):
        with builder.dataflow():
            constants = _constants(problem.weights)
            inner, outputs = _inner(builder, problem.x.shape, constants, x), []
            for step in range(case.length):
                state = _step(builder, case.kind, constants, inner(step), state)
                outputs.append(state[0])
            given = state if case.form == "cell" else [_stacked(outputs), *state]
            output = builder.emit_output(relax.Tuple(given))
        builder.emit_func_output(output)
    return builder.finalize()


def _constants(weights: Mapping[str, Array]) -> dict[str, Expr]:
    """The weights as constants, matrices as (hidden, gates * hidden). All steps share them: copies fill caches."""
    from tvm import relax

    return {name: relax.const(np.ascontiguousarray(array.T)) for name, array in weights.items()}


def _inner(builder: Any, shape: tuple[int, ...], constants: Mapping[str, Expr], x: Expr) -> Callable[[int], Expr]:
    """What comes of the input at each step, (batch, gates * hidden)."""
    from tvm.relax import op

    length, batch, width = shape
    product = op.matmul(op.reshape(x, (length * batch, width)), constants["w_ih"])
    whole = builder.emit(op.add(product, constants["b_ih"]))
    if length == 1:
        return lambda _step: whole
    return lambda step: builder.emit(op.strided_slice(whole, [0], [step * batch], [(step + 1) * batch]))


def _step(builder: Any, kind: str, constants: Mapping[str, Expr], inner: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm.relax import op

    outer = builder.emit(op.add(op.matmul(state[0], constants["w_hh"]), constants["b_hh"]))
    return [builder.emit(part) for part in STEPS[kind](inner, outer, state)]


def _stacked(outputs: Sequence[Expr]) -> Expr:
    from tvm import relax

    return relax.op.concat([relax.op.expand_dims(output, 0) for output in outputs], axis=0)


def _rnn(inner: Expr, outer: Expr, _state: Sequence[Expr]) -> list[Expr]:
    from tvm import relax

    return [relax.op.tanh(relax.op.add(inner, outer))]


def _lstm(inner: Expr, outer: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm.relax import op

    i, f, g, o = _gates(op.add(inner, outer), 4)
    c = op.add(op.multiply(op.sigmoid(f), state[1]), op.multiply(op.sigmoid(i), op.tanh(g)))
    return [op.multiply(op.sigmoid(o), op.tanh(c)), c]


def _gru(inner: Expr, outer: Expr, state: Sequence[Expr]) -> list[Expr]:
    from tvm import relax
    from tvm.relax import op

    (r_in, z_in, n_in), (r_out, z_out, n_out) = _gates(inner, 3), _gates(outer, 3)
    z = op.sigmoid(op.add(z_in, z_out))
    n = op.tanh(op.add(n_in, op.multiply(op.sigmoid(op.add(r_in, r_out)), n_out)))
    return [op.add(op.multiply(op.subtract(relax.const(1.0, "float32"), z), n), op.multiply(z, state[0]))]


def _gates(value: Expr, count: int) -> list[Expr]:
    from tvm import relax

    parts = relax.op.split(value, count, axis=1)
    return [relax.TupleGetItem(parts, index) for index in range(count)]


STEPS: Mapping[str, Callable[[Expr, Expr, Sequence[Expr]], list[Expr]]] = {"rnn": _rnn, "lstm": _lstm, "gru": _gru}
