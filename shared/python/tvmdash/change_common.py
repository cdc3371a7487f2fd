"""What all series of one machine did together on one night, and whose doing it was.

Controls (programs built once, never recompiled) tell the machine from a compiler-wide change: they see
the first and not the second. Some of them are enough: slower memory moves those that wait for memory, and
nothing that a compiler does moves any. Where there are too few, or they are too noisy to say, older artifacts
measured tonight answer the same question.

Source: Kalibera & Jones 2013 (controls).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from tvmdash.change_noise import LEAST_FLOOR, MAD_TO_SD, FloatArray, row_medians
from tvmdash.change_series import History, Rerun, Scaled, SeriesState, scaled

BASELINE = 40
LEAST_BASELINE = 3
LEAST_SERIES = 8
LEAST_SHIFT = 0.003
SAME_WAY = 0.75
LEAST_CONTROLS = 4
CLEARLY = 4.0
"""A control has moved where it is beyond so many of its scales, and half the shift."""
SOME = 0.3
"""This share of the controls, and two at least, must have moved for the machine to have."""
PROBES = 6


class FleetRerun(Protocol):
    """Measures one series' artifact of `night` again tonight, `count` times."""

    def __call__(self, series: str, night: int, count: int) -> Sequence[float]: ...


Blame = Literal["machine", "compiler", "unknown"]


@dataclass(frozen=True)
class Common:
    """What the series did together on one night: the shift (fraction), its standard error, whose it is.

    share: of the series that went that way. witness: by how much the controls, or older artifacts
    measured tonight, moved; None without either.
    """

    night: int
    shift: float
    error: float
    share: float
    blame: Blame
    witness: float | None = None


@dataclass
class Purse:
    """The night's re-runs: counts them, and is empty when the budget is spent."""

    rerun: FleetRerun | None
    left: int

    def of(self, series: str) -> Rerun | None:
        if self.rerun is None:
            return None

        def measure(night: int, count: int) -> Sequence[float]:
            count = min(count, self.left)
            self.left -= count
            return self.rerun(series, night, count) if count and self.rerun else []

        return measure


@dataclass(frozen=True)
class Deviation:
    """Tonight's distance of one series from its baseline, and the noise of one night."""

    away: float
    scale: float
    median: float
    positive: bool


def deviations(histories: Mapping[str, History], states: Mapping[str, SeriesState]) -> dict[str, Deviation]:
    """Tonight's deviation of each series that has a value and a baseline."""
    found = {}
    for name, history in histories.items():
        tonight = deviations_from(scaled(history, states[name]), states[name], history.tonight)
        if history.tonight in tonight:
            found[name] = tonight[history.tonight]
    return found


def deviations_from(series: Scaled, state: SeriesState, first: int) -> dict[int, Deviation]:
    """The deviation of each night with a value from `first` on, from the level that began with `state.start`."""
    start = series.index_of(state.start)
    places = np.arange(max(series.index_of(first), start + LEAST_BASELINE), len(series.x))
    if not len(places):
        return {}
    column = places[:, None] + np.arange(-BASELINE, 0)[None, :]
    before = np.where(column >= start, series.x[np.maximum(column, 0)], np.nan)
    median = row_medians(before)
    residual = _with_reserve(before - median[:, None], np.array(state.reserve))
    scale = np.maximum(MAD_TO_SD * row_medians(np.abs(residual)), LEAST_FLOOR)
    rows = zip((series.x[places] - median).tolist(), scale.tolist(), median.tolist(), strict=True)
    nights = series.nights[places].tolist()
    return {night: Deviation(*row, positive=series.unit is None) for night, row in zip(nights, rows, strict=True)}


def _with_reserve(residual: FloatArray, reserve: FloatArray) -> FloatArray:
    """Each row (NaN in front) filled from the right with the last residuals of closed segments."""
    width = residual.shape[1]
    padded = np.concatenate([np.full(width, np.nan), reserve])[-width:]
    own = np.isfinite(residual).sum(axis=1)[:, None]
    place = np.minimum(np.arange(width)[None, :] + own, width - 1)
    return np.asarray(np.where(np.isfinite(residual), residual, padded[place]))


def _weighted_median(values: FloatArray, weights: FloatArray) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(total, total[-1] / 2)])


def common_shift(
    table: Mapping[str, Deviation],
    controls: AbstractSet[str],
    tonight: int,
    histories: Mapping[str, History],
    states: Mapping[str, SeriesState],
    purse: Purse,
) -> Common | None:
    """The shift that most series share tonight, where there is one."""
    moving = {name: row for name, row in table.items() if row.positive and name not in controls}
    if len(moving) < LEAST_SERIES:
        return None
    away = np.array([row.away for row in moving.values()])
    scale = np.array([row.scale for row in moving.values()])
    shift = _weighted_median(away, 1 / scale)
    error = 1.25 * float(np.median(scale)) / math.sqrt(len(moving))
    share = float(np.mean(np.sign(away) == np.sign(shift)))
    if abs(shift) <= max(4 * error, LEAST_SHIFT) or share < SAME_WAY:
        return None
    witness, doubt = _controls_shift(table, controls, shift)
    if witness is None or abs(witness - shift / 2) < 2 * doubt:
        probed = _probe(moving, histories, states, purse)
        witness = probed if probed is not None else witness
    if witness is None:
        return Common(tonight, shift, error, share, "unknown")
    return Common(tonight, shift, error, share, "machine" if witness / shift > 0.5 else "compiler", witness)


def _controls_shift(
    table: Mapping[str, Deviation], controls: AbstractSet[str], shift: float
) -> tuple[float | None, float]:
    """By how much the controls moved, and the doubt about it; None where there are too few to say."""
    rows = [row for name, row in table.items() if name in controls and row.positive]
    if len(rows) < LEAST_CONTROLS:
        return None, math.inf
    away = [
        row.away for row in rows if row.away * shift > 0 and abs(row.away) > max(CLEARLY * row.scale, abs(shift) / 2)
    ]
    if len(away) >= max(2, SOME * len(rows)):
        return float(np.median(away)), 0.0
    weights = np.array([1 / row.scale for row in rows])
    doubt = 1.25 * math.sqrt(len(rows)) / float(weights.sum())
    return _weighted_median(np.array([row.away for row in rows]), weights), doubt


def _probe(
    moving: Mapping[str, Deviation],
    histories: Mapping[str, History],
    states: Mapping[str, SeriesState],
    purse: Purse,
) -> float | None:
    """By how much older artifacts of the quietest series moved, measured tonight; None without re-runs."""
    if purse.rerun is None:
        return None
    moved = []
    for name in sorted(moving, key=lambda name: moving[name].scale)[:PROBES]:
        measure = purse.of(name)
        series = scaled(histories[name], states[name])
        old = [int(night) for night in series.nights[:-1] if night >= states[name].start][-5:-2]
        values = list(measure(old[-1], 1)) if measure and old else []
        if values and math.isfinite(values[0]) and values[0] > 0:
            moved.append(math.log(values[0]) - moving[name].median)
    return float(np.median(moved)) if len(moved) >= LEAST_CONTROLS else None
