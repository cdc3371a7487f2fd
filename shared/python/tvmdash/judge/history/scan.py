"""The cuts that one night can be judged at, and which of them is suspicious enough to be measured again.

Source: Siegmund & Venkatraman 1995 (scan).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tvmdash.judge.history.noise import (
    CLIP,
    LAGS,
    WIDTH,
    FloatArray,
    IntArray,
    Noise,
    baseline_noise,
    row_medians,
    scan,
    vif,
)
from tvmdash.judge.history.series import Scaled, SeriesState, Settings

LEAST_BEFORE = 6
"""A cut needs this many nights of its segment before it."""
LEAST_FIRST = 2
"""Where the scan does not reach (search.find_early_candidates), so many nights at least are a level."""
LEAST_POOL = 12
USUAL = 0.12
"""One night alone is no suspicion where this share of the baseline's nights was as far off."""


@dataclass(frozen=True)
class Candidate:
    """A possible cut, seen from one night: positions in the scaled series, and the noise before it.

    stop: where yet another level begins, if one does. between: nights just before the cut that are of neither level.
    """

    cut: int
    seen: int
    start: int
    z: float
    z_sloped: float
    effect: float
    median: float
    scale: float
    variance: float
    phi: float
    score: FloatArray
    size: int
    stop: int | None = None
    between: int = 0

    @property
    def nights(self) -> int:
        """The number of nights that the new level has, as far as is known."""
        return (self.seen + 1 if self.stop is None else self.stop) - self.cut

    @property
    def recent(self) -> float:
        """By how much the last ten nights before the cut, but their worst, scatter more than the scale says."""
        last = np.sort(np.abs(self.score[-10:]))[:-1]
        return max(1.0, float(np.sqrt(np.mean(last**2))))

    @property
    def recent_scale(self) -> float:
        """The scale for re-runs, which are few: greater after noisy nights, with heavy tails, on few nights."""
        tails = math.sqrt(max(1.0, min(self.variance, 2.0)))
        return self.scale * max(tails, self.recent) * (1 + 3 / self.size)


def select_left_rows(x: FloatArray, cuts: IntArray, start: int) -> FloatArray:
    """Select the last WIDTH nights of the segment before each cut, one row a cut, NaN in front."""
    index = cuts[:, None] + np.arange(-WIDTH, 0)[None, :]
    return np.where(index >= start, x[np.maximum(index, 0)], np.nan)


def select_right_rows(x: FloatArray, cuts: IntArray) -> FloatArray:
    """Select the nights from each cut on, as many as the longest lag, one row a cut, NaN behind."""
    index = cuts[:, None] + np.arange(LAGS[-1])[None, :]
    return np.where(index < len(x), x[np.minimum(index, len(x) - 1)], np.nan)


def find_noise(series: Scaled, cuts: IntArray, start: int, state: SeriesState) -> Noise:
    floor = series.floors(cuts)
    reserve = np.array(state.reserve, float)[None, :]
    return baseline_noise(select_left_rows(series.x, cuts, start), reserve, floor)


def tonight(series: Scaled, state: SeriesState) -> list[Candidate]:
    """List every cut that the last night could be judged at, with its statistic."""
    start, last = series.index_of(state.start), len(series.x) - 1
    cuts = last + 1 - LAGS
    cuts = cuts[cuts >= start + LEAST_BEFORE]
    if not len(cuts):
        return []
    noise = find_noise(series, cuts, start, state)
    right = select_right_rows(series.x, cuts)
    z, sloped = scan(noise, right)
    effect = row_medians(right) - noise.median
    known = ((row, int(cut)) for row, cut in enumerate(cuts) if noise.size[row] >= LEAST_POOL)
    return [
        make_candidate(noise, row, cut, last, start, z[row, last - cut], sloped[row, last - cut], effect[row])
        for row, cut in known
    ]


def make_candidate(
    noise: Noise, row: int, cut: int, seen: int, start: int, z: float, sloped: float, effect: float
) -> Candidate:
    """The candidate in one row of a scan, seen from one night."""
    return Candidate(
        cut, seen, start, float(z), float(sloped), float(effect), float(noise.median[row]),
        float(noise.scale[row]), float(noise.variance[row]), float(noise.phi[row]), noise.score[row],
        int(noise.size[row]),
    )  # fmt: skip


def find_suspicious(candidates: list[Candidate], series: Scaled, settings: Settings) -> Candidate | None:
    """The candidate that deserves to be measured again, if any.

    The noisier the series, the weaker the suspicion that is enough, so that a step of `wanted` is looked
    at within nights; a quiet series needs a clear one. Tonight alone counts unbounded.
    """
    best, margin = None, 0.0
    for candidate in candidates:
        z = candidate.z if abs(candidate.z) < abs(candidate.z_sloped) else candidate.z_sloped
        if candidate.nights == 1:
            alone = candidate.effect / candidate.scale
            if np.mean(candidate.score[-candidate.size :] * np.sign(alone) >= 0.75 * min(abs(alone), CLIP)) > USUAL:
                continue
            z *= max(1.0, abs(alone) / CLIP) * (1 + 4 / candidate.size)
        z /= candidate.recent
        if candidate.effect * z <= 0 or (series.unit is None and abs(candidate.effect) < settings.least_effect):
            continue
        spread = candidate.nights * candidate.variance * float(vif(np.asarray(candidate.phi), candidate.nights))
        expected = min(settings.wanted / candidate.scale, 3.0 if candidate.nights > 1 else math.inf)
        expected *= candidate.nights / math.sqrt(spread)
        needed = min(settings.suspect, max(settings.least_suspect, 0.6 * expected))
        if needed < settings.suspect and abs(candidate.effect) < settings.wanted / 2:
            needed = settings.suspect
        if abs(z) / needed >= max(1.0, margin):
            best, margin = candidate, abs(z) / needed
    return best
