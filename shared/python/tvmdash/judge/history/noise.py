"""The noise of a series: what its baseline scatters, and how surprising the nights after it are.

Everything here works on rows, so that one night of 240 series, or a history of 10,000 nights, is one
call. A row is one possible cut: on its left the last `WIDTH` nights before it, on its right the nights
from it on, both in scaled units (the logarithm of the value, see `change_points.scaled`).

Sources: Huber 1964 (bounded scores), Fearnhead & Rigaill 2019 (bounded loss for change points), Page
1954 and Siegmund & Venkatraman 1995 (the scan over the time of the change), Box, Jenkins & Reinsel
(variance of a mean under AR(1)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

WIDTH = 60
"""Nights of baseline that a cut is judged against."""
LAGS = np.array([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 28])
"""Ages of a new level, in nights, at which it is looked for."""
CLIP = 5.0
"""One night counts at most this many standard deviations, so that no single spike can alert."""
LEAST_VARIANCE = 0.6
LEAST_FLOOR = 0.0005
LEAST_SLOPE_NIGHTS = 20
SLOPE_ERRORS = 1.5
FAR, MOST_INFLATED = 3 * CLIP, 2.0
"""Few nights correlate by chance, and a bounded score cannot make up for it however far a level is. Where every night
since the cut is so many standard deviations out, on one side, correlation and tails count for this at most; how often
such nights come, and come again, is asked apart from it (strong.run_odds)."""
MAD_TO_SD = 1.4826
PRIOR_NIGHTS = 6.0
"""Nights that the baseline's scatter counts for when the nights after a cut scatter more."""


def vif(phi: FloatArray, count: Any) -> FloatArray:
    """Return how much AR(1) noise of lag-1 correlation `phi` inflates the variance of a mean of `count` nights."""
    count = np.maximum(count, 1)
    edge = phi * (1 - phi**count) / (count * (1 - phi) ** 2)
    return np.asarray(1 + 2 * (phi / (1 - phi) - edge))


def row_medians(rows: FloatArray) -> FloatArray:
    """Return the median of each row, NaN left out; NaN for a row that has nothing else."""
    ordered = np.sort(rows, axis=1)
    count = np.isfinite(ordered).sum(axis=1)
    index = np.arange(len(rows))
    low = ordered[index, np.maximum(count - 1, 0) // 2]
    high = ordered[index, np.minimum(count // 2, rows.shape[1] - 1)]
    return np.asarray((low + high) / 2)


@dataclass(frozen=True)
class Noise:
    """The noise model of each row's baseline; arrays have one entry a row, `score` one a row and night.

    scale: robust standard deviation (MAD, at least the floor). variance: of the bounded scores, so that
    spikes and second modes widen the test. phi: lag-1 correlation.
    """

    median: FloatArray
    nights: IntArray
    size: IntArray
    scale: FloatArray
    variance: FloatArray
    phi: FloatArray
    score: FloatArray


def baseline_noise(left: FloatArray, reserve: FloatArray, floor: FloatArray) -> Noise:
    """The noise model of `left` (rows x WIDTH, right-aligned, NaN in front).

    `reserve`: residuals of closed segments (rows x WIDTH, or one row for all), which stand in for nights
    that a young segment does not have yet. `floor`: the least scale believed, one a row.
    """
    nights = np.isfinite(left).sum(axis=1)
    median = row_medians(left)
    residual = left - median[:, None]
    width = left.shape[1]
    if np.any(nights < width) and reserve.shape[1]:
        column = np.arange(width)[None, :] - (width - nights)[:, None] + reserve.shape[1]
        stand_in = np.take_along_axis(
            np.broadcast_to(reserve, (len(left), reserve.shape[1])), np.clip(column, 0, reserve.shape[1] - 1), axis=1
        )
        use = ~np.isfinite(residual) & (column >= 0) & (column < reserve.shape[1])
        residual = np.where(use, stand_in, residual)
    known = np.isfinite(residual)
    size = known.sum(axis=1)
    scale = np.fmax(MAD_TO_SD * row_medians(np.abs(residual)), floor)
    score = np.where(known, np.clip(residual / scale[:, None], -CLIP, CLIP), 0.0)
    count = np.maximum(size, 1)
    mean = score.sum(axis=1) / count
    centred = np.where(known, score - mean[:, None], 0.0)
    power = np.einsum("ij,ij->i", centred, centred)
    variance = np.maximum(power / count, LEAST_VARIANCE)
    safe = np.maximum(power, 1e-12)
    lag1 = np.einsum("ij,ij->i", centred[:, 1:], centred[:, :-1]) / safe
    lag2 = np.einsum("ij,ij->i", centred[:, 2:], centred[:, :-2]) / safe
    phi = np.maximum(lag1, 0.8 * np.sqrt(np.maximum(lag2, 0)))
    # Few nights know their correlation badly, so it is shrunk to 0.1, which counts for ten nights.
    phi = np.clip((count * phi + 1) / (count + 10), 0, 0.85)
    return Noise(median, nights, size, scale, variance, phi, score)


def scan(noise: Noise, right: FloatArray, *, large: float = 2.0) -> tuple[FloatArray, FloatArray]:
    """The z of a new level for each row (cut) and each number of nights 1..right.shape[1] after the cut.

    Returns (z, against_slope): where |z| reaches `large` and the baseline slopes, the second measures
    against that slope carried on; elsewhere both are the same. NaN where the night does not exist.
    """
    count = np.arange(1, right.shape[1] + 1)[None, :]
    phi, nights = noise.phi[:, None], noise.nights[:, None]
    spread = vif(phi, count) + 1.3 * vif(phi, nights) * count / np.maximum(nights, 1)
    away = (right - noise.median[:, None]) / noise.scale[:, None]
    score = np.clip(away, -CLIP, CLIP)
    total = np.cumsum(score, axis=1)
    variance = held_spread(noise.variance[:, None], total, np.cumsum(score**2, axis=1), count)
    inflated = variance * spread
    nearest = np.minimum(np.maximum.accumulate(-away, axis=1), np.maximum.accumulate(away, axis=1))
    inflated = np.where(nearest <= -FAR, np.minimum(inflated, MOST_INFLATED), inflated)
    error = np.sqrt(count * inflated) * (1 + 4 / np.maximum(noise.size, 1)[:, None])
    z = total / error
    rows = ((np.abs(z) >= large).any(axis=1) & (noise.nights >= LEAST_SLOPE_NIGHTS)).nonzero()[0]
    if not len(rows):
        return z, z
    slope = _slopes(noise, rows)
    carried = slope[:, None] * (noise.nights[rows, None] / 2 + count - 1)
    against = z.copy()
    against[rows] = np.cumsum(np.clip(away[rows] - carried, -CLIP, CLIP), axis=1) / error[rows]
    return z, against


def held_spread(variance: FloatArray, total: FloatArray, power: FloatArray, count: Any) -> FloatArray:
    """The variance of bounded scores: the baseline's, or what the nights after the cut scatter where that is more.

    total, power: those nights' sum and sum of squares.
    """
    # A level that is only noisier than before is no new level.
    scatter = np.maximum(power - total**2 / count, 0.0)
    return np.asarray(np.maximum(variance, (PRIOR_NIGHTS * variance + scatter) / (PRIOR_NIGHTS + count - 1)))


def _slopes(noise: Noise, rows: npt.NDArray[np.int64]) -> FloatArray:
    """Fit the slope of each of `rows`' own nights, in scales a night; 0 where it is within its error."""
    score, nights = noise.score[rows], noise.nights[rows]
    column = np.arange(score.shape[1])[None, :] - (score.shape[1] - nights[:, None])
    position = np.where(column >= 0, column - (nights[:, None] - 1) / 2, 0.0)
    spread = np.maximum(np.einsum("ij,ij->i", position, position), 1e-12)
    slope = np.einsum("ij,ij->i", position, score) / spread
    error = np.sqrt(noise.variance[rows] * vif(noise.phi[rows], nights) / spread)
    return np.asarray(np.where(np.abs(slope) > SLOPE_ERRORS * error, slope, 0.0))


def strongest_run(score: FloatArray, count: int) -> float:
    """The greatest |mean score| that any `count` nights in a row of one baseline reach by themselves.

    A new level must clearly exceed what the baseline does without any change: modes that stick for
    nights are caught by this, white noise hardly ever.
    """
    if len(score) <= count:
        return 0.0
    sums = np.cumsum(np.concatenate([[0.0], score]))
    return float(np.abs(sums[count:] - sums[:-count]).max()) / count


def noise_floors(relative_error: FloatArray, tail: FloatArray) -> FloatArray:
    """The least noise believed, one a row: 0.05 %, the repeats' own standard error, half the clock's grid.

    `relative_error`: std / value / sqrt(repeats) of recent nights (rows x nights, NaN where unknown).
    `tail`: their scaled values. A grid is the median gap between distinct values where they are fewer
    than 60 % of the nights. Repeats enter only here: nights differ about twice as much as they do.
    """
    floor = np.fmax(LEAST_FLOOR, row_medians(relative_error))
    gaps = np.diff(np.sort(np.round(tail, 9), axis=1), axis=1)
    gaps = np.where(gaps > 0, gaps, np.nan)
    distinct = np.isfinite(gaps).sum(axis=1) + 1
    has_grid = (distinct > 1) & (distinct < 0.6 * np.isfinite(tail).sum(axis=1))
    return np.asarray(np.where(has_grid, np.fmax(floor, row_medians(gaps) / 2), floor))
