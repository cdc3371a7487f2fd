"""How pairs of processes scatter, and how builds differ by luck. All sizes are natural logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Generator = np.random.Generator

FAMILIES = ("normal", "heavy", "outliers", "modes", "correlated")
CODE_SHARE = 0.7
"""Of the variance of a build's luck, the generated code's share; the rest is that of TVM's own libraries."""


def draw_pairs(family: str, rng: Generator, shape: Sequence[int]) -> Array:
    """Log ratios with mean 0 and standard deviation 1; the last axis holds the pairs of one night, one after another.

    normal; Student's t with 4 degrees of freedom; one pair in 25 four times as wide; processes that land in one of two
    modes; pairs that resemble the one before.
    """
    size = tuple(shape)
    normal = rng.standard_normal(size)
    if family == "normal":
        return normal
    if family == "heavy":
        return np.asarray(rng.standard_t(4, size) / np.sqrt(2))
    if family == "outliers":
        return np.asarray(normal * np.where(rng.random(size) < 0.04, 4.05, 0.6))
    if family == "modes":
        modes = (rng.random(size) < 0.3).astype(float) - (rng.random(size) < 0.3)
        return np.asarray(modes * np.sqrt(0.8 / 0.42) + normal * np.sqrt(0.2))
    for at in range(1, size[-1]):
        normal[..., at] = 0.5 * normal[..., at - 1] + np.sqrt(0.75) * normal[..., at]
    return normal


def draw_luck(rng: Generator, sd: float, shape: Sequence[int]) -> Array:
    """Luck of builds: Student's t with 5 degrees of freedom and that standard deviation."""
    return np.asarray(sd * rng.standard_t(5, tuple(shape)) / np.sqrt(5 / 3))
