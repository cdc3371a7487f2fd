"""The error of an answer against the reference, and its tolerance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tvmdash.errors import DashboardError
from tvmdash.networks.ops import Array

TOLERANCES: Mapping[str, float] = {
    "float64": 1e-10,
    "float32": 1e-5,
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "int8": 0.0,
}
"""Largest `max_error` of a correct answer, by the dtype of the computation.

Untuned TVM is at 1e-6 and below in float32 on every network here, with fast-math as well.
"""


def max_error(actual: Array, expected: Array) -> float:
    """Return the largest difference of two elements, relative to the largest element: max|a - e| / max|e|.

    So it is absolute from element to element (one near zero does not blow it up) and relative for the whole (scale does
    not matter). Infinity where `actual` is not finite; plain max|a - e| where every expected element is zero.
    """
    if actual.shape != expected.shape:
        raise DashboardError(f"the answer has shape {actual.shape}, the reference {expected.shape}.")
    wide, reference = actual.astype(np.float64), expected.astype(np.float64)
    if not np.isfinite(reference).all():
        raise DashboardError("the reference output is not finite, so the answer cannot be checked.")
    if not np.isfinite(wide).all():
        return float("inf")
    scale = float(np.abs(reference).max(initial=0.0)) or 1.0
    return float(np.abs(wide - reference).max(initial=0.0)) / scale


def check_answer(actual: Array, expected: Array, dtype: str = "float32") -> dict[str, float]:
    """Return `{"max_error": ..., "tolerance": ...}` for the record; DashboardError where the error is too large."""
    error, tolerance = max_error(actual, expected), TOLERANCES[dtype]
    if error > tolerance:
        problem = f"largest error {error:.2g} exceeds {tolerance:g}, the tolerance for {dtype}"
        raise DashboardError(f"wrong answer: {problem}.")
    return {"max_error": error, "tolerance": tolerance}
