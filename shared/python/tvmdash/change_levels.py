"""Where one level of a series ends and the next begins: what is kept of the one that is closed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tvmdash.change_noise import WIDTH, FloatArray
from tvmdash.change_series import Scaled, SeriesState

BACK = 0.4
"""Nearer than this share of a shift to where it came from, a level is back."""
LEAST_BEFORE = 6
EPISODE_NIGHTS = 12
"""A level that lasted longer was a level: a gain that is lost after months must not pass for noise ever after."""


def rebased(series: Scaled, state: SeriesState, night: int) -> SeriesState:
    """The state with a new segment from `night` on; the closed segment's residuals go to the reserve.

    Where the series is back at the level before the closed segment, that was an episode: its residuals are from the
    level that it left, so that the next episode has a precedent.
    """
    start, cut = series.index_of(state.start), series.index_of(night)
    closed = series.x[max(start, cut - WIDTH) : cut]
    before = series.x[:start] if cut - start <= EPISODE_NIGHTS else series.x[:0]
    level = _level_left(before, closed, series.x[cut:])
    residual = tuple(float(value) for value in closed - level)
    fixed = {key: value for key, value in state.fixed.items() if key < night}
    return replace(state, start=night, reserve=(state.reserve + residual)[-WIDTH:], fixed=fixed, moved=())


def _level_left(before: FloatArray, closed: FloatArray, now: FloatArray) -> float:
    """The level that `closed` is measured from: that of `before` where `now` came back to it, else its own."""
    if not len(closed):
        return 0.0
    own = float(np.median(closed))
    if len(before) < LEAST_BEFORE or not len(now):
        return own
    left = float(np.median(before[-WIDTH:]))
    return left if abs(float(np.median(now)) - left) < BACK * abs(own - left) else own
