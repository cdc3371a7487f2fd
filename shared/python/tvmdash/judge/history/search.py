"""Candidate cuts of many nights at once, each judged as it would be by itself; and those among a level's first nights.

The scan has too few nights before the cuts among the first nights of a level. The middle of a few nights is not well
known, so the nights after such an early cut are compared with the nearer edge of where it may be. Noise is that of the
levels before; the first level of a series has none, and is judged with the scatter of the nights after the cut. A run
of odd nights may begin a level as well as end it: both are asked for their odds.

Sources: as of `change_points`.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    scan,
    vif,
)
from tvmdash.judge.history.scan import (
    LEAST_BEFORE,
    LEAST_FIRST,
    LEAST_POOL,
    Candidate,
    find_noise,
    make_candidate,
    select_left_rows,
    select_right_rows,
)
from tvmdash.judge.history.series import Scaled, SeriesState, Settings
from tvmdash.judge.history.strong import is_strong

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


def find_first_strong(series: Scaled, state: SeriesState, seen: int, stop: int, settings: Settings) -> Candidate | None:
    """The first alert on the nights at positions seen..stop-1."""
    candidates = (
        _find_first_scanned(series, state, seen, stop, settings),
        _find_first_early(series, state, seen, stop, settings),
    )
    known = [candidate for candidate in candidates if candidate is not None]
    return min(known, key=lambda candidate: (candidate.seen, -abs(candidate.z)), default=None)


def _find_first_scanned(
    series: Scaled, state: SeriesState, seen: int, stop: int, settings: Settings
) -> Candidate | None:
    start = series.index_of(state.start)
    first = max(start + LEAST_BEFORE, seen + 1 - int(LAGS[-1]))
    cuts = np.arange(first, stop)
    if not len(cuts):
        return None
    noise = find_noise(series, cuts, start, state)
    right = select_right_rows(series.x, cuts)
    z, sloped = scan(noise, right, large=settings.threshold)
    nights = np.arange(max(seen, first), stop)
    rows = nights[:, None] + 1 - LAGS[None, :] - first
    there = (rows >= 0) & (noise.size[np.maximum(rows, 0)] >= LEAST_POOL)
    strength = np.where(there, np.abs(z[np.maximum(rows, 0), LAGS[None, :] - 1]), 0.0)
    for at in (strength.max(axis=1) >= settings.threshold).nonzero()[0]:
        lag = int(LAGS[int(np.argmax(strength[at]))])
        seen_now = int(nights[at])
        cut = seen_now + 1 - lag
        effect = float(np.median(series.x[cut : seen_now + 1])) - float(noise.median[cut - first])
        row = cut - first
        candidate = make_candidate(noise, row, cut, seen_now, start, z[row, lag - 1], sloped[row, lag - 1], effect)
        if is_strong(candidate, series, settings):
            return candidate
    return None


def _find_first_early(series: Scaled, state: SeriesState, seen: int, stop: int, settings: Settings) -> Candidate | None:
    last = series.index_of(state.start) + count_early_cuts(state) + REACH
    nights = np.arange(seen, min(stop, last))
    candidates = find_early_candidates(series, state, nights, settings.threshold) if len(nights) else []
    for night in sorted({candidate.seen for candidate in candidates}):
        candidate = find_strongest([candidate for candidate in candidates if candidate.seen == night])
        if is_clear(candidate, series, settings):
            return candidate
    return None


def find_strongest(candidates: Sequence[Candidate]) -> Candidate:
    return max(candidates, key=lambda candidate: abs(candidate.z))


def is_clear(candidate: Candidate, series: Scaled, settings: Settings) -> bool:
    """Return True where the history alone tells: a cut after a single night of a level is only ever measured again."""
    return candidate.cut - candidate.start >= LEAST_FIRST and is_strong(candidate, series, settings)
