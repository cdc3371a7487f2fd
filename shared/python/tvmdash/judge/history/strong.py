"""Objections to a candidate cut; one that none holds against alerts by the history alone.

A candidate passes (`is_strong`) when it is beyond the noise, relevant, beyond any run that the baseline shows by
itself, and no drift.

Sources: Siegmund & Venkatraman 1995 (scan), Fearnhead & Rigaill 2019 (bounded cost).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tvmdash.judge.history import noise
from tvmdash.judge.history.noise import CLIP, FloatArray, strongest_run, vif
from tvmdash.judge.history.scan import Candidate
from tvmdash.judge.history.series import Scaled, Settings

SLOPED = 0.9
"""Against the baseline's slope carried on, this share of the threshold must be reached."""
LINE = 1.1
"""A straight line may cost this much more than a step and is still believed."""
CLEAR = 3.0
STAYS = 0.2
"""Prior probability, of the weight of one night, that an odd night is followed by another."""
OPENING_NIGHTS, UNSEEN_ODDS = 20, 5e-3
"""A level of fewer nights may itself be a run of odd ones; how unlikely that must be where none was ever so far off."""
FAR = 1.9 * CLIP
"""Scores are bounded, so that nights further off than this are no further off than one another."""


def is_strong(candidate: Candidate, series: Scaled, settings: Settings) -> bool:
    """Return True where the scan alone would alert: beyond noise, relevant, beyond precedent, and no drift."""
    return (
        abs(candidate.z) >= settings.threshold
        and candidate.nights >= settings.least_nights
        and (series.unit is not None or abs(candidate.effect) >= settings.least_effect)
        and _agrees(candidate, series.x, settings)
        and run_odds(candidate, series.x) < settings.odds
        and _is_a_level(candidate, series.x, settings)
        and _beyond_precedent(candidate, settings)
        and not is_drift(series.x, candidate.start, candidate.cut, candidate.seen)
    )


def _agrees(candidate: Candidate, x: FloatArray, settings: Settings) -> bool:
    """Return True where median, slope and enough single nights say the same as z."""
    sign = math.copysign(1, candidate.z)
    shifted = (x[candidate.cut : candidate.seen + 1] - candidate.median) * sign >= 0.5 * abs(candidate.effect)
    against_slope = candidate.z_sloped * sign >= SLOPED * settings.threshold
    return candidate.effect * sign > 0 and against_slope and int(shifted.sum()) >= settings.least_nights


def _beyond_precedent(candidate: Candidate, settings: Settings) -> bool:
    """Return True where the shift clearly exceeds the strongest run of as many nights that the baseline has."""
    run = strongest_run(candidate.score, candidate.nights)
    spread = candidate.variance * float(vif(np.asarray(candidate.phi), candidate.nights)) / candidate.nights
    by_sum = abs(candidate.z) * math.sqrt(spread) >= settings.precedent * run
    return by_sum or abs(candidate.effect) >= CLEAR * run * candidate.scale


def run_odds(candidate: Candidate, x: FloatArray, *, stays: float = STAYS, weight: float = 1.0) -> float:
    """Return the probability that the baseline shows as many shifted nights in a row without any change.

    A night is shifted when it is beyond half the effect. How often that happens, and how often the next
    night is shifted as well, is counted in the baseline: two modes that stick make long runs likely.
    `stays`: what the second is believed to be beforehand, with the weight of so many nights.
    """
    sign = math.copysign(1, candidate.effect)
    away = abs(candidate.effect) / candidate.scale
    half = 0.5 * min(away, CLIP if away < noise.FAR else FAR)  # modes that last are nearer
    shifted = sign * candidate.score[-candidate.size :] >= half
    after = sign * (x[candidate.cut : candidate.seen + 1] - candidate.median) >= half * candidate.scale
    return _find_odds(shifted, int(after.sum()), stays, weight)


def _is_a_level(candidate: Candidate, x: FloatArray, settings: Settings) -> bool:
    """Return True where the nights before the cut, if few, are a level and not themselves a run of odd nights.

    Asked of the nights that stand in for those that a young level lacks: how likely they would show such a run. Where
    none of them was ever so far off, less is enough.
    """
    own = candidate.cut - candidate.start
    stand_in = candidate.score[-candidate.size : -own]
    if own >= OPENING_NIGHTS or not len(stand_in):
        return True
    sign = math.copysign(1, candidate.effect)
    half = 0.5 * min(abs(candidate.effect) / candidate.scale, FAR)
    before = x[candidate.start : candidate.cut]
    run = int(np.sum(sign * (before - candidate.median) <= half * candidate.scale))
    odd = -sign * stand_in >= half
    return _find_odds(odd, run, STAYS, 1.0) < (settings.odds if odd.any() else UNSEEN_ODDS)


def is_run_unlikely(candidate: Candidate, settings: Settings) -> bool:
    """Return True where the candidate's nights up to its stop exceed any run of odd nights of the baseline."""
    sign = math.copysign(1, candidate.effect)
    half = 0.5 * min(abs(candidate.effect) / candidate.scale, FAR)
    odd = sign * candidate.score[-candidate.size :] >= half
    return _find_odds(odd, candidate.nights, STAYS, 1.0) < (settings.odds if odd.any() else UNSEEN_ODDS)


def _find_odds(odd: npt.NDArray[np.bool_], run: int, stays: float, weight: float) -> float:
    """Return the probability of `run` odd nights in a row, by how often they came, and came again, before."""
    share = (odd.sum() + 1) / (len(odd) + 2)
    both, first = float(np.sum(odd[1:] & odd[:-1])), float(odd[:-1].sum())
    again = max((both + stays * weight) / (first + weight), share)
    return float(share * again ** max(0, run - 1))


def is_drift(x: FloatArray, start: int, cut: int, seen: int) -> bool:
    """Return True where a straight line fits the 40 nights before the cut and those after as well as a step."""
    first = max(start, cut - 40)
    y = x[first : seen + 1]
    at = np.arange(len(y), dtype=float)
    left, right = y[: cut - first], y[cut - first :]
    step = np.where(at < cut - first, np.median(left), np.median(right))
    scale = max(1.4826 * float(np.median(np.abs(y - step))), 1e-9)
    line = _fit_robust_line(at, y, scale)
    return bool(_bound(y - line, scale) <= LINE * _bound(y - step, scale))


def _bound(residual: FloatArray, scale: float) -> float:
    return float(np.minimum(np.abs(residual), 4 * scale).sum())


def _fit_robust_line(at: FloatArray, y: FloatArray, scale: float) -> FloatArray:
    """A line through y by iteratively reweighted least squares with Huber's weights."""
    weight = np.ones(len(y))
    line = np.full(len(y), float(np.median(y)))
    for _ in range(6):
        total = weight.sum()
        centre, level = weight @ at / total, weight @ y / total
        away = at - centre
        weighted = weight * away
        slope = weighted @ (y - level) / max(weighted @ away, 1e-12)
        line = level + slope * away
        weight = 1 / np.maximum(1, np.abs(y - line) / scale)
    return np.asarray(line)
