"""The first of many nights that alerts by the history alone: all are judged at once, each as it would be by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvmdash.judge.history.early import REACH, count_early_cuts, find_early_candidates
from tvmdash.judge.history.noise import LAGS, scan
from tvmdash.judge.history.scan import (
    LEAST_BEFORE,
    LEAST_FIRST,
    LEAST_POOL,
    Candidate,
    find_noise,
    make_candidate,
    select_right_rows,
)
from tvmdash.judge.history.series import Scaled, SeriesState, Settings
from tvmdash.judge.history.strong import is_strong


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
    """The first alert about a cut that the scan reaches."""
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
    """The first alert about a cut among the level's first nights."""
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
