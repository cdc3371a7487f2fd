"""Neural-network operators as data, each with its shapes, its weights and a plain numpy forward pass.

Images are NCHW, kernels OIHW (of a transposed convolution IOHW, as its frameworks have them).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Shape = tuple[int, ...]
STATISTICS = ("mean", "variance")
"""A batch norm's observations; they are no parameters, so no part of a published parameter count."""


class Op(Protocol):
    """One operator. Shapes include the batch; `weights` gives the shape of each array the operator owns."""

    def shape(self, *inputs: Shape) -> Shape: ...

    def weights(self, *inputs: Shape) -> dict[str, Shape]: ...

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array: ...


class Weightless:
    """An operator that owns no arrays and keeps the shape of its first input."""

    def shape(self, *inputs: Shape) -> Shape:
        return inputs[0]

    def weights(self, *inputs: Shape) -> dict[str, Shape]:
        return {}


@dataclass(frozen=True)
class Conv2d:
    """A square convolution; `padding` on all four sides."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    groups: int = 1
    bias: bool = True

    def shape(self, *inputs: Shape) -> Shape:
        return (inputs[0][0], self.channels, *_slid(inputs[0], self.kernel, self.stride, self.padding))

    def weights(self, *inputs: Shape) -> dict[str, Shape]:
        kernel = (self.channels, inputs[0][1] // self.groups, self.kernel, self.kernel)
        return {"weight": kernel, "bias": (self.channels,)} if self.bias else {"weight": kernel}

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        batch, _, height, width = self.shape(inputs[0].shape)
        windows = _windows(inputs[0], self.kernel, self.stride, self.padding, fill=0.0)
        columns = np.stack(windows, axis=2).reshape(batch, self.groups, -1, height * width)
        kernel = weights["weight"].reshape(self.groups, self.channels // self.groups, -1)
        total: Array = (kernel @ columns).reshape(batch, self.channels, height, width)
        return total + weights["bias"][:, None, None] if self.bias else total


@dataclass(frozen=True)
class ConvTranspose2d:
    """A square transposed convolution; `padding` is cut off on all four sides of its result."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    bias: bool = True

    def shape(self, *inputs: Shape) -> Shape:
        height, width = ((side - 1) * self.stride + self.kernel - 2 * self.padding for side in inputs[0][2:])
        return (inputs[0][0], self.channels, height, width)

    def weights(self, *inputs: Shape) -> dict[str, Shape]:
        kernel = (inputs[0][1], self.channels, self.kernel, self.kernel)
        return {"weight": kernel, "bias": (self.channels,)} if self.bias else {"weight": kernel}

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        batch, channels, height, width = self.shape(inputs[0].shape)
        cut, sides = self.padding, inputs[0].shape[2:]
        whole: Array = np.zeros((batch, channels, height + 2 * cut, width + 2 * cut), inputs[0].dtype)
        for row, column in np.ndindex(self.kernel, self.kernel):
            rows, columns = (
                slice(first, first + side * self.stride, self.stride)
                for first, side in zip((row, column), sides, strict=True)
            )
            whole[:, :, rows, columns] += np.einsum("bihw,io->bohw", inputs[0], weights["weight"][:, :, row, column])
        total = whole[:, :, cut : cut + height, cut : cut + width]
        return total + weights["bias"][:, None, None] if self.bias else total


@dataclass(frozen=True)
class Dense:
    """`x @ weight.T + bias` over the last axis."""

    units: int

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0][:-1], self.units)

    def weights(self, *inputs: Shape) -> dict[str, Shape]:
        return {"weight": (self.units, inputs[0][-1]), "bias": (self.units,)}

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        result: Array = inputs[0] @ weights["weight"].T + weights["bias"]
        return result


@dataclass(frozen=True)
class BatchNorm(Weightless):
    """Batch normalisation over the channels with fixed statistics, as in inference."""

    epsilon: float = 1e-5

    def weights(self, *inputs: Shape) -> dict[str, Shape]:
        return dict.fromkeys(("scale", "shift", *STATISTICS), (inputs[0][1],))

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        factor = weights["scale"] / np.sqrt(weights["variance"] + self.epsilon)
        offset = weights["shift"] - weights["mean"] * factor
        result: Array = inputs[0] * factor[:, None, None] + offset[:, None, None]
        return result


@dataclass(frozen=True)
class MaxPool(Weightless):
    """Square max pooling; `padding` never wins."""

    kernel: int
    stride: int
    padding: int = 0

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0][:2], *_slid(inputs[0], self.kernel, self.stride, self.padding))

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        windows = _windows(inputs[0], self.kernel, self.stride, self.padding, fill=-np.inf)
        result: Array = np.max(windows, axis=0)
        return result


@dataclass(frozen=True)
class GlobalAvgPool(Weightless):
    """The mean of each channel, with height and width kept as 1."""

    def shape(self, *inputs: Shape) -> Shape:
        return (*inputs[0][:2], 1, 1)

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        result: Array = inputs[0].mean(axis=(2, 3), keepdims=True)
        return result


@dataclass(frozen=True)
class Relu(Weightless):
    """`x` clipped to 0 and above, and to `ceiling` and below where one is given (6 makes a ReLU6)."""

    ceiling: float | None = None

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        return np.clip(inputs[0], 0.0, self.ceiling)


@dataclass(frozen=True)
class Tanh(Weightless):
    """The hyperbolic tangent of every element."""

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        result: Array = np.tanh(inputs[0])
        return result


@dataclass(frozen=True)
class Softmax(Weightless):
    """Softmax over the last axis."""

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        powers = np.exp(inputs[0] - inputs[0].max(axis=-1, keepdims=True))
        result: Array = powers / powers.sum(axis=-1, keepdims=True)
        return result


@dataclass(frozen=True)
class Add(Weightless):
    """The sum of two equal shapes."""

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        result: Array = inputs[0] + inputs[1]
        return result


@dataclass(frozen=True)
class Concat(Weightless):
    """All inputs one after the other along the channels."""

    def shape(self, *inputs: Shape) -> Shape:
        return (inputs[0][0], sum(shape[1] for shape in inputs), *inputs[0][2:])

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        return np.concatenate(inputs, axis=1)


@dataclass(frozen=True)
class Flatten(Weightless):
    """Everything but the batch in one axis."""

    def shape(self, *inputs: Shape) -> Shape:
        return (inputs[0][0], math.prod(inputs[0][1:]))

    def forward(self, weights: Mapping[str, Array], *inputs: Array) -> Array:
        return inputs[0].reshape(inputs[0].shape[0], -1)


def _slid(shape: Shape, kernel: int, stride: int, padding: int) -> tuple[int, int]:
    height, width = ((side + 2 * padding - kernel) // stride + 1 for side in shape[2:])
    return height, width


def _windows(x: Array, kernel: int, stride: int, padding: int, *, fill: float) -> list[Array]:
    """Return, for each place in the kernel, row by row, the elements under it, (batch, channels, height, width)."""
    height, width = _slid(x.shape, kernel, stride, padding)
    sides = (padding, padding)
    padded = np.pad(x, ((0, 0), (0, 0), sides, sides), constant_values=fill)
    rows, columns = (slice(None, side * stride, stride) for side in (height, width))
    return [padded[:, :, row:, column:][:, :, rows, columns] for row in range(kernel) for column in range(kernel)]
