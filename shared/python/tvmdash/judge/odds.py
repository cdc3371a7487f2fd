"""Odds: how much likelier a step makes what was seen than none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tvmdash.judge.rules import RULES

FloatArray = npt.NDArray[np.float64]


def _log_t(x: float, scale: float, freedom: float) -> float:
    """The logarithm of the density of Student's t with the standard deviation `scale`, without what all have."""
    scale *= math.sqrt(1 - 2 / freedom)
    return -math.log(scale) - (freedom + 1) / 2 * math.log1p((x / scale) ** 2 / freedom)


def log_factor(
    shift: float, error: float, slabs: Sequence[float], centre: float = 0.0, freedom: float = RULES.freedom
) -> float:
    """The logarithm of the Bayes factor of a step around `centre` against none, for a shift with its standard error.

    A step of unknown size is a mixture of slabs around the centre (spike and slab, Mitchell & Beauchamp 1988).
    freedom: how heavy the tails of the error are, as degrees of freedom of Student's t.
    """
    parts = [_log_t(shift - centre, math.hypot(error, slab), freedom) for slab in slabs]
    return add_logs(parts) - math.log(len(parts)) - _log_t(shift, error, freedom)


def factors_of_sizes(shifts: FloatArray, errors: FloatArray, freedoms: FloatArray, sizes: FloatArray) -> FloatArray:
    """By size and series, the logarithm of how much likelier a step of about that size makes the shift than none."""
    wide = np.hypot(errors, RULES.alike * sizes[:, None])
    return _logs_t(shifts - sizes[:, None], wide, freedoms) - _logs_t(shifts, errors, freedoms)


def _logs_t(x: FloatArray, scale: FloatArray, freedoms: FloatArray) -> FloatArray:
    scale = scale * np.sqrt(1 - 2 / freedoms)
    return np.asarray(-np.log(scale) - (freedoms + 1) / 2 * np.log1p((x / scale) ** 2 / freedoms))


def add_logs(logs: Sequence[float]) -> float:
    """The logarithm of the sum."""
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs))
