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


def log_of_none(of_sizes: FloatArray, sizes: FloatArray, common: float) -> float:
    """The logarithm of how likely no step makes what was seen, where chance moves all series together by `common`.

    of_sizes: by size, the logarithm of how much likelier a step of it makes that than no movement at all.
    """
    order = np.argsort(sizes)
    edges = (sizes[order][1:] + sizes[order][:-1]) / 2
    below = np.array([0.0, *(0.5 * (1 + math.erf(edge / common / math.sqrt(2))) for edge in edges), 1.0])
    weights = np.diff(below)
    middle = int(np.searchsorted(sizes[order], 0.0))
    still = weights[middle - 1 : middle + 1].sum() / 2  # nearest to 0 on either side: half of that is no movement
    weights[middle - 1 : middle + 1] /= 2
    terms = of_sizes[order] + np.log(np.maximum(weights, 1e-300))
    return float(np.logaddexp.reduce([math.log(max(still, 1e-300)), *terms]))


def add_logs(logs: Sequence[float]) -> float:
    """The logarithm of the sum."""
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs))
