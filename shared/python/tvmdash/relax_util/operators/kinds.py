"""Operators as data: shapes, arithmetic, and their form in Relax, in ONNX and in numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmdash.networks import ops as network_ops
from tvmdash.networks.ops import Array, Shape

Expr = Any
"""A relax.Expr; TVM has no types of its own to offer."""
EPSILON = 1e-5


@dataclass(frozen=True)
class OnnxForm:
    """An ONNX operator with its attributes; `axes` is the axes input of a reduction."""

    kind: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Operator:
    """One operator at one shape.

    `inputs` are given at each call; `weights` are constants of the program, which an engine may lay out as it likes.
    `operations` are floating-point operations: a multiply-add is two, a comparison or a function such as exp one.
    `args` are the record's workload_args. `relax` and `reference` take inputs and weights, in that order.
    """

    kind: str
    source: str
    args: Mapping[str, int | str]
    inputs: tuple[Shape, ...]
    weights: tuple[Shape, ...]
    output: Shape
    operations: int
    relax: Callable[..., Expr]
    onnx: OnnxForm
    reference: Callable[..., Array]

    def bytes_moved(self, itemsize: int) -> int:
        """Return the bytes of every input, weight and output once: the least that has to move."""
        return itemsize * sum(map(math.prod, (*self.inputs, *self.weights, self.output)))

    @property
    def terms(self) -> int:
        """Return the multiply-adds that an output is the sum of, in an operator that consists of them."""
        return self.operations // (2 * math.prod(self.output))

    @property
    def short(self) -> str:
        """Return a label for graphs, as in `depthwise 144x56x56 144x1x3x3`, unique among OPERATORS."""
        is_image = self.kind.endswith("conv2d")
        shape = str(self.args["shape"]).removeprefix("1x" if is_image else "")
        axes = f" axes {self.args['axes']}" if "axes" in self.args else ""
        return f"{self.kind.removesuffix('_conv2d')} {shape} {self.args.get('other', '')}".rstrip() + axes

    @property
    def label(self) -> str:
        """Return a label as in `conv2d 1x64x56x56 by 64x64x3x3 stride 2`."""
        more = "".join(f" {name} {value}" for name, value in self.args.items() if name not in {"shape", "other"})
        other = f" by {self.args['other']}" if "other" in self.args else ""
        return f"{self.kind} {self.args['shape']}{other}{more}"


def text(shape: Shape) -> str:
    """Format a shape as in `1x64x56x56`."""
    return "x".join(map(str, shape))


def conv2d(source: str, data: Shape, kernel: Shape, stride: int, padding: int) -> Operator:
    """NCHW by OIHW; depthwise where the kernel has one input channel and the data several."""
    groups = data[1] // kernel[1]
    op = network_ops.Conv2d(kernel[0], kernel[2], stride, padding, groups, bias=False)
    output = op.shape(data)
    onnx = {"strides": [stride] * 2, "pads": [padding] * 4, "group": groups, "kernel_shape": kernel[2:]}
    return Operator(
        "conv2d" if groups == 1 else "depthwise_conv2d",
        source,
        {"shape": text(data), "other": text(kernel), "stride": stride, "padding": padding},
        (data,),
        (kernel,),
        output,
        2 * math.prod(output) * math.prod(kernel[1:]),
        lambda x, weight: _relax().nn.conv2d(x, weight, stride, padding, groups=groups),
        OnnxForm("Conv", onnx),
        lambda x, weight: op.forward({"weight": weight}, x),
    )


def dense(source: str, rows: int, columns: int, units: int) -> Operator:
    """`x @ weight.T`, the weight constant."""
    return Operator(
        "dense",
        source,
        {"shape": text((rows, columns)), "other": text((units, columns))},
        ((rows, columns),),
        ((units, columns),),
        (rows, units),
        2 * rows * columns * units,
        lambda x, weight: _relax().matmul(x, _relax().permute_dims(weight)),
        OnnxForm("Gemm", {"transB": 1}),
        lambda x, weight: x @ weight.T,
    )


def batch_matmul(source: str, batch: int, rows: int, columns: int, inner: int) -> Operator:
    """The product of two inputs, for each of a batch."""
    left, right = (batch, rows, inner), (batch, inner, columns)
    return Operator(
        "batch_matmul",
        source,
        {"shape": text(left), "other": text(right)},
        (left, right),
        (),
        (batch, rows, columns),
        2 * batch * rows * columns * inner,
        lambda x, y: _relax().matmul(x, y),
        OnnxForm("MatMul"),
        lambda x, y: x @ y,
    )


def softmax(source: str, shape: Shape) -> Operator:
    """Over the last axis: maximum, difference, exp, sum, quotient."""
    return Operator(
        "softmax",
        source,
        {"shape": text(shape)},
        (shape,),
        (),
        shape,
        5 * math.prod(shape),
        lambda x: _relax().nn.softmax(x, axis=-1),
        OnnxForm("Softmax", {"axis": -1}),
        lambda x: network_ops.Softmax().forward({}, x),
    )


def layer_norm(source: str, shape: Shape) -> Operator:
    """Over the last axis, with scale and shift."""
    return Operator(
        "layer_norm",
        source,
        {"shape": text(shape)},
        (shape,),
        (shape[-1:], shape[-1:]),
        shape,
        7 * math.prod(shape),
        lambda x, scale, shift: _relax().nn.layer_norm(x, scale, shift, axes=[-1], epsilon=EPSILON),
        OnnxForm("LayerNormalization", {"axis": -1, "epsilon": EPSILON}),
        _normalised,
    )


def _normalised(x: Array, scale: Array, shift: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    result: Array = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON) * scale + shift
    return result


def reduction(kind: str, source: str, shape: Shape, axes: tuple[int, ...]) -> Operator:
    """`sum` or `max` over `axes`, which stay with length 1."""
    return Operator(
        kind,
        source,
        {"shape": text(shape), "axes": ",".join(map(str, axes))},
        (shape,),
        (),
        tuple(1 if axis in axes else size for axis, size in enumerate(shape)),
        math.prod(shape),
        lambda x: getattr(_relax(), kind)(x, axis=list(axes), keepdims=True),
        OnnxForm(f"Reduce{kind.capitalize()}", {"keepdims": 1}, axes),
        lambda x: getattr(x, kind)(axis=axes, keepdims=True),
    )


def elementwise(kind: str, source: str, shape: Shape) -> Operator:
    """`add` of two inputs, `relu`, or `gelu` with the error function."""
    count, operations, relax, reference = _ELEMENTWISE[kind]
    return Operator(
        kind,
        source,
        {"shape": text(shape)},
        (shape,) * count,
        (),
        shape,
        operations * math.prod(shape),
        relax,
        OnnxForm(kind.capitalize()),
        reference,
    )


def _gelu(x: Array) -> Array:
    erf = np.array([math.erf(value) for value in (x / math.sqrt(2.0)).flat]).reshape(x.shape)
    result: Array = 0.5 * x * (1.0 + erf)
    return result


def _named(name: str) -> Callable[..., Expr]:
    """Return the function of relax.op.nn, imported on the first call."""

    def call(x: Expr) -> Expr:
        return getattr(_relax().nn, name)(x)

    return call


_ELEMENTWISE: Mapping[str, tuple[int, int, Callable[..., Expr], Callable[..., Array]]] = {
    "add": (2, 1, lambda x, y: _relax().add(x, y), lambda x, y: x + y),
    "relu": (1, 1, _named("relu"), lambda x: np.maximum(x, 0.0)),
    "gelu": (1, 5, _named("gelu"), _gelu),
}
"""Inputs, operations an element, form in Relax, form in numpy."""


def _relax() -> Any:
    from tvm import relax

    return relax.op
