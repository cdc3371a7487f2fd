"""Cuts among the first nights of a level, which have too few nights before them for the scan.

The middle of a few nights is not well known, so the nights after the cut are compared with the nearer edge of where it
may be. Noise is that of the levels before; the first level of a series has none, and is judged with the scatter of the
nights after the cut. A run of odd nights may begin a level as well as end it: both are asked for their odds.

Sources: as of change_scan.
"""

from __future__ import annotations

import numpy as np

from tvmdash.judge.history.noise import (
    CLIP,
    LAGS,
    WIDTH,
    FloatArray,
    IntArray,
    Noise,
    baseline_noise,
    held_spread,
    row_medians,
    vif,
)
from tvmdash.judge.history.scan import LEAST_BEFORE, LEAST_POOL, Candidate, make_candidate, select_left_rows
from tvmdash.judge.history.series import Scaled, SeriesState

REACH = int(LAGS[-1])
"""Nights after a cut during which it is still looked for."""
EDGE = 2.0
"""The middle of a young level is believed to be this many standard errors nearer to the nights after the cut."""


def count_early_cuts(state: SeriesState) -> int:
    """Count the first nights of a level after which the scan cannot place a cut."""
    return max(LEAST_BEFORE, LEAST_POOL - len(state.reserve))


def find_early_candidates(series: Scaled, state: SeriesState, seen: IntArray, least: float = 0.0) -> list[Candidate]:
    """Each cut among the first nights of the level, as seen from each of the nights at positions `seen`.

    least: only those whose |z| reaches it.
    """
    start = series.index_of(state.start)
    before = np.arange(1, count_early_cuts(state))
    nights, cuts = (grid.ravel() for grid in np.meshgrid(seen, start + before, indexing="ij"))
    there = (cuts <= nights) & (nights - cuts < REACH)
    nights, cuts = nights[there], cuts[there]
    if not len(cuts):
        return []
    right = _select_right_rows(series.x, cuts, nights)
    noise = _find_noise(series, state, start, cuts, right)
    z = _find_strengths(noise, right, nights - cuts + 1)
    effect = row_medians(right) - noise.median
    return [
        make_candidate(noise, row, int(cuts[row]), int(nights[row]), start, z[row], z[row], effect[row])
        for row in range(len(cuts))
        if noise.size[row] >= LEAST_POOL and abs(z[row]) >= least
    ]


def _select_right_rows(x: FloatArray, cuts: IntArray, nights: IntArray) -> FloatArray:
    """The nights from each cut to the night that it is seen from, right-aligned, NaN in front."""
    index = nights[:, None] + np.arange(1 - REACH, 1)[None, :]
    return np.where(index >= cuts[:, None], x[np.maximum(index, 0)], np.nan)


def _find_noise(series: Scaled, state: SeriesState, start: int, cuts: IntArray, right: FloatArray) -> Noise:
    reserve = np.array(state.reserve, float)[None, :]
    if reserve.shape[1] < LEAST_POOL:
        known = np.repeat(reserve, len(cuts), axis=0)
        reserve = np.concatenate([known, right - row_medians(right)[:, None]], axis=1)[:, -WIDTH:]
    return baseline_noise(select_left_rows(series.x, cuts, start), reserve, series.floors(cuts))


def _find_strengths(noise: Noise, right: FloatArray, count: IntArray) -> FloatArray:
    """The z of each row: its nights after the cut against the nearer edge of where the level may be."""
    edge = EDGE * np.sqrt(1.3 * noise.variance * vif(noise.phi, noise.nights) / noise.nights)
    away = (right - noise.median[:, None]) / noise.scale[:, None]
    away = np.sign(away) * np.maximum(0, np.abs(away) - edge[:, None])
    score = np.clip(away, -CLIP, CLIP)
    total, power = np.nansum(score, axis=1), np.nansum(score**2, axis=1)
    spread = held_spread(noise.variance, total, power, count)
    return np.asarray(total / (np.sqrt(count * spread * vif(noise.phi, count)) * (1 + 4 / noise.size)))
