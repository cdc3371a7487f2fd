"""The noise grade of a series, and the smallest change that can be seen in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from tvmdash.judge.history.noise import vif
from tvmdash.judge.history.scan import LEAST_POOL, find_noise
from tvmdash.judge.history.series import History, SeriesState, Settings, scale_series

Grade = Literal["A", "B", "C", "D", "unknown"]
LIMITS: tuple[tuple[Grade, float], ...] = (("A", 0.003), ("B", 0.01), ("C", 0.03))
POWER = 0.8


@dataclass(frozen=True)
class NoiseGrade:
    """The grade of a series. scale: robust standard deviation of one night, as a fraction of the value.

    A: at most 0.3 %, B: 1 %, C: 3 %, D: more; unknown: too few nights, or not positive.
    """

    grade: Grade
    scale: float | None
    nights: int


def noise_grade(history: History, state: SeriesState | None = None) -> NoiseGrade:
    """The grade from the current level's nights (and earlier levels' residuals where those are few)."""
    model = _model(history, state or SeriesState())
    if model is None:
        return NoiseGrade("unknown", None, int(np.isfinite(np.asarray(history.values, float)).sum()))
    grade: Grade = next((grade for grade, limit in LIMITS if model.scale <= limit), "D")
    return NoiseGrade(grade, model.scale, model.nights)


def smallest_visible_change(
    history: History,
    state: SeriesState | None = None,
    *,
    nights: int = 7,
    settings: Settings | None = None,
) -> float | None:
    """The relative step that the history alone tells within so many nights in four cases of five; None when unknown.

    It is never below the least effect that is told at all.
    """
    settings = settings or Settings()
    model = _model(history, state or SeriesState())
    if model is None:
        return None
    margin = NormalDist().inv_cdf(POWER)
    spread = vif(np.asarray(model.phi), nights) + 1.3 * vif(np.asarray(model.phi), model.nights) * nights / model.nights
    error = model.scale * math.sqrt(float(spread) * model.variance / nights) * (1 + 4 / model.size)
    return max(settings.least_effect, math.expm1((settings.threshold + margin) * error))


@dataclass(frozen=True)
class _Model:
    scale: float
    variance: float
    phi: float
    nights: int
    size: int


def _model(history: History, state: SeriesState) -> _Model | None:
    series = scale_series(history, state)
    cut = np.array([len(series.x)])
    if series.unit is not None or not len(series.x):
        return None
    noise = find_noise(series, cut, series.index_of(state.start), state)
    if noise.size[0] < LEAST_POOL or noise.nights[0] < 1:
        return None
    return _Model(
        float(noise.scale[0]), float(noise.variance[0]), float(noise.phi[0]), int(noise.nights[0]), int(noise.size[0])
    )
