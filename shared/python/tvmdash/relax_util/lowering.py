"""Lower a network to Relax: one row per operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvmdash.networks import INPUT, Network, Node, node_weights, ops
from tvmdash.networks.ops import Array

FLOAT32 = "float32"
Expr = Any
"""A relax.Expr; TVM has no types of its own to offer."""


def lower(network: Network, weights: Mapping[str, Array], batch: int | None = 1, dtype: str = FLOAT32) -> Any:
    """Return an IRModule whose `main` takes (batch, *input_shape) of `dtype` and returns the network's output.

    The weights, given in float32, are constants of that dtype, so that passes can fold them. Batch norms are still
    batch norms in float32. In other types, which TVM's passes on batch norms refuse, they are a product and a sum with
    constants that were made in float32. `batch` None makes it a symbol.
    """
    from tvm import relax, te

    rows = te.var("batch", "int64") if batch is None else batch
    builder = relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType  # the name up to 0.25, and since
    x = relax.Var(INPUT, tensor((rows, *network.input_shape), dtype))
    values: dict[str, Expr] = {INPUT: x}
    with builder.function("main", [x]):
        with builder.dataflow():
            for node in network.nodes:
                values[node.name] = builder.emit(_expression(node, weights, values, dtype))
            output = builder.emit_output(values[network.nodes[-1].name])
        builder.emit_func_output(output)
    return builder.finalize()


def lower_function(body: Callable[..., Any], inputs: Sequence[Array]) -> Any:
    """Return a module whose `main` takes tensors like `inputs` and returns `body` of their variables."""
    from tvm import relax

    builder = relax.BlockBuilder()
    tensor = getattr(relax, "TensorStructInfo", None) or relax.TensorType
    variables = [relax.Var(f"x{index}", tensor(x.shape, str(x.dtype))) for index, x in enumerate(inputs)]
    with builder.function("main", variables):
        with builder.dataflow():
            output = builder.emit_output(builder.normalize(body(*variables)))
        builder.emit_func_output(output)
    return builder.finalize()


def _expression(node: Node, weights: Mapping[str, Array], values: Mapping[str, Expr], dtype: str) -> Expr:
    from tvm import relax

    arrays, inputs = node_weights(node, weights), [values[name] for name in node.inputs]
    if isinstance(node.op, ops.BatchNorm) and dtype != FLOAT32:
        return _folded_norm(node.op, arrays, dtype, *inputs)
    constants = {name: relax.const(in_type(array, dtype)) for name, array in arrays.items()}
    return LOWERINGS[type(node.op)](node.op, constants, *inputs)


def in_type(array: Array, dtype: str) -> Array:
    """Return the array in another floating-point type; numpy itself has no bfloat16."""
    if dtype != "bfloat16":
        return array.astype(dtype)
    import ml_dtypes  # TVM itself needs it; half of the processes that import this module do not

    converted: Array = array.astype(ml_dtypes.bfloat16)
    return converted


def _folded_norm(op: ops.BatchNorm, arrays: Mapping[str, Array], dtype: str, x: Expr) -> Expr:
    from tvm import relax

    factor = arrays["scale"] / np.sqrt(arrays["variance"] + op.epsilon)
    offset = arrays["shift"] - arrays["mean"] * factor
    constants = [relax.const(in_type(array.reshape(1, -1, 1, 1), dtype)) for array in (factor, offset)]
    return relax.op.add(relax.op.multiply(x, constants[0]), constants[1])


def _conv2d(op: ops.Conv2d, weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    result = relax.op.nn.conv2d(x, weights["weight"], op.stride, op.padding, groups=op.groups)
    return _plus_bias(result, weights, (1, op.channels, 1, 1)) if op.bias else result


def _conv_transpose2d(op: ops.ConvTranspose2d, weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    result = relax.op.nn.conv2d_transpose(x, weights["weight"], op.stride, op.padding)
    return _plus_bias(result, weights, (1, op.channels, 1, 1)) if op.bias else result


def _plus_bias(value: Expr, weights: Mapping[str, Expr], shape: tuple[int, ...]) -> Expr:
    from tvm import relax

    return relax.op.add(value, relax.op.reshape(weights["bias"], shape))


def _dense(op: ops.Dense, weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    return relax.op.add(relax.op.matmul(x, relax.op.permute_dims(weights["weight"])), weights["bias"])


def _batch_norm(op: ops.BatchNorm, weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    order = (weights[name] for name in ("scale", "shift", "mean", "variance"))
    normalised = relax.op.nn.batch_norm(x, *order, axis=1, epsilon=op.epsilon, training=False)
    return relax.TupleGetItem(normalised, 0)


def _max_pool(op: ops.MaxPool, _weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    return relax.op.nn.max_pool2d(x, (op.kernel, op.kernel), op.stride, op.padding)


def _relu(op: ops.Relu, _weights: Mapping[str, Expr], x: Expr) -> Expr:
    from tvm import relax

    return relax.op.nn.relu(x) if op.ceiling is None else relax.op.clip(x, 0.0, op.ceiling)


def _concat(_op: ops.Concat, _weights: Mapping[str, Expr], *parts: Expr) -> Expr:
    from tvm import relax

    return relax.op.concat(list(parts), axis=1)


def _simple(call: Callable[..., Expr]) -> Callable[..., Expr]:
    """Return the lowering of an operator that Relax has in the same form; `call` takes relax.op and the values."""

    def lowering(_op: ops.Op, _weights: Mapping[str, Expr], *values: Expr) -> Expr:
        from tvm import relax

        return call(relax.op, *values)

    return lowering


LOWERINGS: Mapping[type, Callable[..., Expr]] = {
    ops.Conv2d: _conv2d,
    ops.ConvTranspose2d: _conv_transpose2d,
    ops.Dense: _dense,
    ops.BatchNorm: _batch_norm,
    ops.MaxPool: _max_pool,
    ops.GlobalAvgPool: _simple(lambda op, x: op.mean(x, axis=[2, 3], keepdims=True)),
    ops.Relu: _relu,
    ops.Tanh: _simple(lambda op, x: op.tanh(x)),
    ops.Softmax: _simple(lambda op, x: op.nn.softmax(x, axis=-1)),
    ops.Add: _simple(lambda op, left, right: op.add(left, right)),
    ops.Concat: _concat,
    ops.Flatten: _simple(lambda op, x: op.nn.batch_flatten(x)),
}
