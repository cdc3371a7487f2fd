"""From a network to PyTorch: one row per operator. Importing this module imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvmdash.networks import ops
from tvmdash.networks.definitions import INPUT, Network, node_weights
from tvmdash.networks.ops import Array

Value = Any
"""A torch.fx.Node; torch is in no environment that checks types."""
Call = Callable[..., Value]
"""Adds a call of a function to the graph: the function, then what it is called with."""


def lower(network: Network, weights: Mapping[str, Array]) -> Any:
    """A torch.nn.Module in evaluation mode, with the weights as parameters that want no gradient.

    It is a torch.fx.GraphModule: its `forward` is straight-line Python, a line for each operator, as one would write
    it by hand. It takes (batch, *input_shape) float32.
    """
    import torch
    from torch import fx

    root, graph = torch.nn.Module(), fx.Graph()
    values: dict[str, Value] = {INPUT: graph.placeholder(INPUT)}
    for node in network.nodes:
        held: dict[str, Value] = {}
        for suffix, array in node_weights(node, weights).items():
            # a name with a dot would be that of a module's parameter
            name = f"{node.name}_{suffix}".replace(".", "_")
            root.register_parameter(name, torch.nn.Parameter(torch.from_numpy(array), requires_grad=False))
            held[suffix] = graph.get_attr(name)
        inputs = [values[name] for name in node.inputs]
        values[node.name] = LOWERINGS[type(node.op)](_call(graph), node.op, held, *inputs)
    graph.output(values[network.nodes[-1].name])
    return fx.GraphModule(root, graph, network.name).eval()


def _call(graph: Any) -> Call:
    return lambda function, *arguments, **named: graph.call_function(function, arguments, named)


def _conv2d(call: Call, op: ops.Conv2d, weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    bias = weights.get("bias")
    return call(functional.conv2d, x, weights["weight"], bias, stride=op.stride, padding=op.padding, groups=op.groups)


def _conv_transpose2d(call: Call, op: ops.ConvTranspose2d, weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    bias = weights.get("bias")
    return call(functional.conv_transpose2d, x, weights["weight"], bias, stride=op.stride, padding=op.padding)


def _batch_norm(call: Call, op: ops.BatchNorm, weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    order = (weights[name] for name in ("mean", "variance", "scale", "shift"))
    return call(functional.batch_norm, x, *order, training=False, eps=op.epsilon)


def _max_pool(call: Call, op: ops.MaxPool, _weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    return call(functional.max_pool2d, x, op.kernel, op.stride, op.padding)


def _relu(call: Call, op: ops.Relu, _weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    return call(functional.relu, x) if op.ceiling is None else call(functional.hardtanh, x, 0.0, op.ceiling)


def _concat(call: Call, _op: ops.Concat, _weights: Mapping[str, Value], *parts: Value) -> Value:
    import torch

    return call(torch.cat, list(parts), dim=1)


def _simple(name: str, **named: Any) -> Callable[..., Value]:
    """The row of an operator that torch has in the same form; `named` are its keyword arguments."""

    def row(call: Call, _op: ops.Op, _weights: Mapping[str, Value], *values: Value) -> Value:
        import torch

        return call(getattr(torch, name), *values, **named)

    return row


def _dense(call: Call, _op: ops.Dense, weights: Mapping[str, Value], x: Value) -> Value:
    from torch.nn import functional

    return call(functional.linear, x, weights["weight"], weights["bias"])


LOWERINGS: Mapping[type, Callable[..., Value]] = {
    ops.Conv2d: _conv2d,
    ops.ConvTranspose2d: _conv_transpose2d,
    ops.Dense: _dense,
    ops.BatchNorm: _batch_norm,
    ops.MaxPool: _max_pool,
    ops.GlobalAvgPool: _simple("mean", dim=(2, 3), keepdim=True),
    ops.Relu: _relu,
    ops.Tanh: _simple("tanh"),
    ops.Softmax: _simple("softmax", dim=-1),
    ops.Add: _simple("add"),
    ops.Concat: _concat,
    ops.Flatten: _simple("flatten", start_dim=1),
}
