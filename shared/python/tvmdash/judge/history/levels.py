"""Where one level of a series ends and the next begins: what is kept of the one that is closed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tvmdash.judge.history.noise import WIDTH, FloatArray
from tvmdash.judge.history.series import Scaled, SeriesState

BACK = 0.4
"""Nearer than this share of a shift to where it came from, a level is back."""
LEAST_BEFORE = 6
EPISODE_NIGHTS = 12
"""A level that lasted longer was a level: a gain that is lost after months must not pass for noise ever after."""
LEVEL_DIGITS = 9
"""Levels that agree to so many decimals are the same."""


@dataclass(frozen=True)
class Build:
    """The build of one night: how far it was off the level of then, scaled."""

    night: int
    away: float
    level: float


def rebase(series: Scaled, state: SeriesState, night: int) -> SeriesState:
    """The state with a new segment from `night` on; the closed segment's residuals go to the reserve."""
    start, cut = series.index_of(state.start), series.index_of(night)
    closed = series.x[max(start, cut - WIDTH) : cut]
    before = _find_level_before(series, state, start) if cut - start <= EPISODE_NIGHTS else None
    # An episode's residuals are from the level that it left: so the next episode has a precedent.
    level = _find_level_left(before, closed, series.x[cut:])
    residual = tuple(float(value) for value in closed - level)
    fixed = {key: value for key, value in state.fixed.items() if key < night}
    nights = tuple(int(night) for night in series.nights[cut - len(closed) : cut])
    return replace(
        state, start=night, reserve=(state.reserve + residual)[-WIDTH:], fixed=fixed, moved=(),
        reserve_nights=(state.reserve_nights + nights)[-WIDTH:],
    )  # fmt: skip


def _find_level_left(before: float | None, closed: FloatArray, now: FloatArray) -> float:
    """The level that `closed` is measured from: the one `before` where `now` came back to it, else its own."""
    if not len(closed):
        return 0.0
    own = float(np.median(closed))
    if before is None or not len(now):
        return own
    return before if abs(float(np.median(now)) - before) < BACK * abs(own - before) else own


def _find_level_before(series: Scaled, state: SeriesState, start: int) -> float | None:
    """The level that the last nights before position `start` were measured from, where enough of them are known."""
    levels = [build.level for build in list_earlier_builds(series, state)]
    if not state.reserve_nights:
        return float(np.median(series.x[max(0, start - WIDTH) : start])) if start >= LEAST_BEFORE else None
    if not levels:
        return None
    return levels[-1] if levels.count(levels[-1]) >= LEAST_BEFORE else None


def list_earlier_builds(series: Scaled, state: SeriesState) -> list[Build]:
    """The builds of the levels before the current one whose nights are known."""
    known = list(zip(state.reserve_nights[::-1], state.reserve[::-1], strict=False))[::-1]
    places = [(series.index_of(night), night, away) for night, away in known]
    return [
        Build(night, away, round(float(series.x[index] - away), LEVEL_DIGITS))
        for index, night, away in places
        if index < len(series.x) and series.nights[index] == night
    ]
