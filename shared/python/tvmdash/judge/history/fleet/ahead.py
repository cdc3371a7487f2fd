"""Nights to come, searched in one call: most of a history's nights bring nothing.

A history that is judged late is looked through ahead, and only a night that can say something is judged by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tvmdash.judge.history.fleet.common import Deviation, find_deviations_from
from tvmdash.judge.history.noise import LAGS, WIDTH
from tvmdash.judge.history.search import find_first_strong
from tvmdash.judge.history.series import (
    FLOOR_EVERY,
    FLOOR_NIGHTS,
    KEPT_NIGHTS,
    History,
    Scaled,
    SeriesState,
    Settings,
    scale_series,
)

_JUDGED = WIDTH + int(LAGS[-1])
"""Values that decide a night, tonight's included."""
_NEEDED = FLOOR_NIGHTS + FLOOR_EVERY + int(LAGS[-1])
"""Values that decide it where those behind the floor count as well."""


@dataclass(frozen=True)
class Ahead:
    """The first night on which a series alerts by its history alone, and each night's distance from its baseline."""

    alert: int | None
    deviations: Mapping[int, Deviation]


def look_ahead(history: History, state: SeriesState, first: int, reach: int, settings: Settings) -> Ahead | None:
    """Look through the nights from `first` to the history's end, as long as the state stays as it is.

    None where nights have to be judged one by one: values that are not positive may make the series signed, and
    where many are missing, what a night is judged with (`reach` nights) leaves out what is seen here.
    """
    series = scale_series(history, state)
    if series.unit != state.unit or series.left_out or _has_gaps(series, first, reach):
        return None
    seen = max(series.index_of(first), settings.least_history - 1)
    candidate = find_first_strong(series, state, seen, len(series.x), settings) if seen < len(series.x) else None
    return Ahead(int(series.nights[candidate.seen]) if candidate else None, find_deviations_from(series, state, first))


def _has_gaps(series: Scaled, first: int, reach: int) -> bool:
    """Return True where a night from `first` on is judged with too few values, or with corrections forgotten since."""
    places = np.arange(series.index_of(first), len(series.x))
    needed = series.nights[places] - series.nights[np.maximum(places - _NEEDED, 0)]
    judged = series.nights[places] - series.nights[np.maximum(places - _JUDGED, 0)]
    return bool(np.any(needed >= reach) or np.any(judged >= KEPT_NIGHTS))
