"""ResNet-18's convolutions as VTA computes them: 8-bit integers, 32-bit sums, shifted and cut to 8 bits again."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tvmdash.networks.layers import resnet18_convolutions
from tvmdash.networks.ops import Array, Conv2d

BLOCK = 16
"""Channels that VTA's matrix unit takes and gives at once, in the geometry that the tile sizes are for."""
SHIFT = 12
"""Sums are divided by 2**SHIFT: random answers then fill the 8 bits, and some reach their end."""


@dataclass(frozen=True)
class LayerProblem:
    """A convolution; int8 arrays. `x`: (channels, height, width); `weight`: (out, in, kernel, kernel).

    `expected`: (out channels, out height, out width), in [0, 127].
    """

    op: Conv2d
    x: Array
    weight: Array
    expected: Array

    @property
    def macs(self) -> int:
        """Multiplications, each with an addition."""
        return int(self.expected.size * self.weight[0].size)


@functools.lru_cache(maxsize=1)
def problem(name: str, seed: int) -> LayerProblem:
    """The layer with random numbers, and its answer by numpy. Its sums are whole numbers that float64 holds exactly."""
    op, shape = resnet18_convolutions()[name]
    rng = np.random.default_rng(seed)
    x = rng.integers(-128, 128, shape, dtype=np.int8)
    weight = rng.integers(-128, 128, op.weights((1, *shape))["weight"], dtype=np.int8)
    sums = op.forward({"weight": weight.astype(np.float64)}, x[None].astype(np.float64))[0].astype(np.int64)
    return LayerProblem(op, x, weight, np.clip(sums >> SHIFT, 0, 127).astype(np.int8))


def packed(x: Array) -> Array:
    """(channels, height, width) as VTA reads it, NCHW1n16c: (1, channels / 16, height, width, 1, 16)."""
    channels, height, width = x.shape
    return np.ascontiguousarray(x.reshape(1, channels // BLOCK, BLOCK, height, width, 1).transpose(0, 1, 3, 4, 5, 2))


def packed_weight(weight: Array) -> Array:
    """(out, in, kernel, kernel) as VTA reads it, OIHW16o16i: (out / 16, in / 16, kernel, kernel, 16, 16)."""
    out, channels, height, width = weight.shape
    blocks = weight.reshape(out // BLOCK, BLOCK, channels // BLOCK, BLOCK, height, width)
    return np.ascontiguousarray(blocks.transpose(0, 2, 4, 5, 1, 3))


def unpacked(x: Array) -> Array:
    """What `packed` makes, as it was."""
    _, blocks, height, width, _, _ = x.shape
    return x.transpose(0, 1, 5, 4, 2, 3).reshape(blocks * BLOCK, height, width)
