"""Where a level begins: the cut at which levels fit the nights around it best, and whether there are two of them.

Sources: Matteson & James 2014 and Fleming et al. 2023 (placing the change), Fearnhead & Rigaill 2019 (bounded cost).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvmdash.judge.history.noise import WIDTH, FloatArray, row_medians
from tvmdash.judge.history.scan import LEAST_FIRST, Candidate
from tvmdash.judge.history.series import Scaled, Settings
from tvmdash.judge.history.strong import is_run_unlikely

AROUND = 12
HELD = 4.0
"""One night costs at most this many scales."""
GAIN = 5.0
"""So much better, in scales, must two levels fit than one."""
APART = 3.5
"""A night, or a level, so many scales away from another is not of it."""


def place_cut(candidate: Candidate, series: Scaled) -> Candidate:
    """The candidate with its cut moved to where two levels fit the nights around it best."""
    first = max(candidate.start + LEAST_FIRST, candidate.cut - AROUND)
    last = min(candidate.seen - 1, candidate.cut + AROUND)
    begin = max(candidate.start, first - WIDTH)
    cuts = np.arange(first, last + 1)
    best = candidate.cut
    if len(cuts):
        y = series.x[begin : candidate.seen + 1]
        is_left = np.arange(begin, candidate.seen + 1)[None, :] < cuts[:, None]
        left = row_medians(np.where(is_left, y, np.nan))[:, None]
        right = row_medians(np.where(is_left, np.nan, y))[:, None]
        cost = np.minimum(np.abs(y - np.where(is_left, left, right)), HELD * candidate.scale).sum(axis=1)
        best = int(cuts[np.lexsort((np.abs(cuts - candidate.cut), cost))[0]])
    effect = float(np.median(series.x[best : candidate.seen + 1])) - candidate.median
    return replace(candidate, cut=best, effect=effect)


def divide(candidate: Candidate, series: Scaled, settings: Settings) -> Candidate:
    """The placed candidate as the first of two new levels, where two fit the nights much better than one.

    A single night between the old level and the new one may be of either, or a level of its own: it is left out, so
    that the culprit is a range.
    """
    x, s = series.x[: candidate.seen + 1], candidate.scale
    first = max(candidate.start + LEAST_FIRST, candidate.cut - AROUND)
    starts, stops = np.meshgrid(np.arange(first, candidate.cut + 2), np.arange(first, len(x) - 1), indexing="ij")
    fits = (stops - starts >= 2) & ((np.abs(starts - candidate.cut) <= 1) | (np.abs(stops - candidate.cut) <= 1))
    starts, stops = starts[fits], stops[fits]
    if not len(starts):
        return _move_beside(candidate, x)
    begin = max(candidate.start, first - WIDTH)
    y, index = x[begin:], np.arange(begin, len(x))[None, :]
    early, late = index < starts[:, None], index >= stops[:, None]
    middle = ~early & ~late
    before, level, after = (row_medians(np.where(there, y, np.nan)) for there in (early, middle, late))
    fitted = np.where(early, before[:, None], np.where(middle, level[:, None], after[:, None]))
    cost = np.minimum(np.abs(y - fitted), HELD * s).sum(axis=1)
    left, right = np.median(x[begin : candidate.cut]), np.median(x[candidate.cut :])
    two_levels = np.where(index[0] < candidate.cut, left, right)
    best = int(np.argmin(cost))
    if np.minimum(np.abs(y - two_levels), HELD * s).sum() - cost[best] < GAIN * s:
        return _move_beside(candidate, x)
    effect, further = float(level[best] - before[best]), float(after[best] - level[best])
    segment = replace(candidate, cut=int(starts[best]), stop=int(stops[best]), effect=effect)
    least = max(APART * s, settings.least_effect if series.unit is None else 0.0)
    apart = min(abs(effect), abs(further)) >= least
    return segment if apart and is_run_unlikely(segment, settings) else _move_beside(candidate, x)


def _move_beside(candidate: Candidate, x: FloatArray) -> Candidate:
    """The candidate with one night between the levels left out, where it is clearly of neither."""
    levels = np.array([candidate.median, candidate.median + candidate.effect])
    for night in (candidate.cut, candidate.cut - 1):
        inside = levels.min() < x[night] < levels.max()
        if inside and np.abs(levels - x[night]).min() >= APART * candidate.scale and candidate.start < night:
            return replace(candidate, cut=night + 1, between=1)
    return candidate
