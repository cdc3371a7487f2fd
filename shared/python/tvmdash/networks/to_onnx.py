"""From a network to an ONNX model: one row per operator. Importing this module imports no onnx."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvmdash.networks import ops
from tvmdash.networks.definitions import INPUT, Network, Node, node_weights
from tvmdash.networks.ops import Array

OPSET, IR_VERSION = 17, 8
"""Old enough for every onnxruntime and every TVM frontend that is measured here."""

Form = tuple[str, Mapping[str, Any], Mapping[str, Array]]
"""An ONNX operator, its attributes, and the arrays after its inputs, in ONNX's order."""


def lower(network: Network, weights: Mapping[str, Array], batch: int = 1) -> Any:
    """An onnx.ModelProto with the weights inside; its input, (batch, *input_shape) float32, is named `INPUT`."""
    from onnx import TensorProto, helper, numpy_helper

    nodes, initializers = [], []
    for node in network.nodes:
        kind, attributes, arrays = _form(node, weights)
        names = [f"{node.name}.{suffix}" for suffix in arrays]
        initializers += [
            numpy_helper.from_array(array, name) for name, array in zip(names, arrays.values(), strict=True)
        ]
        nodes.append(helper.make_node(kind, [*node.inputs, *names], [node.name], node.name, **attributes))
    shapes = network.shapes(batch)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in (INPUT, network.nodes[-1].name)
    ]
    graph = helper.make_graph(nodes, network.name, ends[:1], ends[1:], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _form(node: Node, weights: Mapping[str, Array]) -> Form:
    return LOWERINGS[type(node.op)](node.op, node_weights(node, weights))


def _convolution(kind: str) -> Callable[[Any, Mapping[str, Array]], Form]:
    """The row of a convolution, plain or transposed."""

    def row(op: Any, weights: Mapping[str, Array]) -> Form:
        group = getattr(op, "groups", 1)
        return kind, {**_window(op), "group": group}, weights

    return row


def _window(op: ops.Conv2d | ops.ConvTranspose2d | ops.MaxPool) -> dict[str, Any]:
    return {"kernel_shape": [op.kernel] * 2, "strides": [op.stride] * 2, "pads": [op.padding] * 4}


def _relu(op: ops.Relu, _weights: Mapping[str, Array]) -> Form:
    if op.ceiling is None:
        return "Relu", {}, {}
    return "Clip", {}, {"low": np.array(0.0, np.float32), "high": np.array(op.ceiling, np.float32)}


def _simple(kind: str, **attributes: int) -> Callable[[Any, Mapping[str, Array]], Form]:
    """The row of an operator that ONNX has in the same form, with its weights in the same order."""
    return lambda _op, weights: (kind, attributes, weights)


LOWERINGS: Mapping[type, Callable[[Any, Mapping[str, Array]], Form]] = {
    ops.Conv2d: _convolution("Conv"),
    ops.ConvTranspose2d: _convolution("ConvTranspose"),
    ops.Dense: _simple("Gemm", transB=1),
    ops.BatchNorm: lambda op, weights: ("BatchNormalization", {"epsilon": op.epsilon}, weights),
    ops.MaxPool: lambda op, _weights: ("MaxPool", _window(op), {}),
    ops.GlobalAvgPool: _simple("GlobalAveragePool"),
    ops.Relu: _relu,
    ops.Tanh: _simple("Tanh"),
    ops.Softmax: _simple("Softmax", axis=-1),
    ops.Add: _simple("Add"),
    ops.Concat: _simple("Concat", axis=1),
    ops.Flatten: _simple("Flatten", axis=1),
}
