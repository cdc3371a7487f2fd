"""The cuts that one night can be judged at, and what speaks against each.

A candidate passes (`is_strong`) when it is beyond the noise, relevant, beyond any run that the baseline
shows by itself, and no drift. Weaker ones are suspicious enough to measure again (`suspicious`).

Sources: Siegmund & Venkatraman 1995 (scan), Matteson & James 2014 and Fleming et al. 2023 (placing the
change), Fearnhead & Rigaill 2019 (bounded cost).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tvmdash.change_noise import (
    CLIP,
    LAGS,
    WIDTH,
    FloatArray,
    IntArray,
    Noise,
    baseline_noise,
    row_medians,
    scan,
    strongest_run,
    vif,
)
from tvmdash.change_rerun import Suspect
from tvmdash.change_series import Scaled, SeriesState, Settings

LEAST_BEFORE = 6
"""A cut needs this many nights of its segment before it."""
LEAST_POOL = 12
SLOPED = 0.9
"""Against the baseline's slope carried on, this share of the threshold must be reached."""
LINE = 1.1
"""A straight line may cost this much more than a step and is still believed."""
CLEAR = 3.0
USUAL = 0.12
"""One night alone is no suspicion where this share of the baseline's nights was as far off."""


@dataclass(frozen=True)
class Candidate:
    """A possible cut, seen from one night: positions in the scaled series, and the noise before it."""

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

    @property
    def nights(self) -> int:
        return self.seen - self.cut + 1

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

    def suspect(self, series: Scaled, reserve: FloatArray) -> Suspect:
        stop = self.seen + 1
        return Suspect(
            series.x[:stop], series.nights[:stop], self.start, self.cut, self.median, self.recent_scale, self.effect,
            reserve,
        )  # fmt: skip


def left_rows(x: FloatArray, cuts: IntArray, start: int) -> FloatArray:
    """The last WIDTH nights of the segment before each cut, one row a cut, NaN in front."""
    place = cuts[:, None] + np.arange(-WIDTH, 0)[None, :]
    return np.where(place >= start, x[np.maximum(place, 0)], np.nan)


def right_rows(x: FloatArray, cuts: IntArray) -> FloatArray:
    """The nights from each cut on, as many as the longest lag, one row a cut, NaN behind."""
    place = cuts[:, None] + np.arange(LAGS[-1])[None, :]
    return np.where(place < len(x), x[np.minimum(place, len(x) - 1)], np.nan)


def noise_of(series: Scaled, cuts: IntArray, start: int, state: SeriesState) -> Noise:
    """The noise model before each cut."""
    floor = series.floors(cuts)
    reserve = np.array(state.reserve, float)[None, :]
    return baseline_noise(left_rows(series.x, cuts, start), reserve, floor)


def tonight(series: Scaled, state: SeriesState) -> list[Candidate]:
    """Every cut that the last night could be judged at, with its statistic."""
    start, last = series.index_of(state.start), len(series.x) - 1
    cuts = last + 1 - LAGS
    cuts = cuts[cuts >= start + LEAST_BEFORE]
    if not len(cuts):
        return []
    noise = noise_of(series, cuts, start, state)
    right = right_rows(series.x, cuts)
    z, sloped = scan(noise, right)
    effect = row_medians(right) - noise.median
    known = (row for row in range(len(cuts)) if noise.size[row] >= LEAST_POOL)
    return [candidate_of(noise, row, int(cuts[row]), last, start, z, sloped, float(effect[row])) for row in known]


def candidate_of(
    noise: Noise, row: int, cut: int, seen: int, start: int, z: FloatArray, sloped: FloatArray, effect: float
) -> Candidate:
    """The candidate in one row of a scan, seen from one night."""
    at = seen - cut
    return Candidate(
        cut, seen, start, float(z[row, at]), float(sloped[row, at]), effect, float(noise.median[row]),
        float(noise.scale[row]), float(noise.variance[row]), float(noise.phi[row]), noise.score[row],
        int(noise.size[row]),
    )  # fmt: skip


def is_strong(candidate: Candidate, series: Scaled, settings: Settings) -> bool:
    """Whether the scan alone would alert: beyond noise, relevant, beyond precedent, and no drift."""
    return (
        abs(candidate.z) >= settings.threshold
        and candidate.nights >= settings.least_nights
        and (series.unit is not None or abs(candidate.effect) >= settings.least_effect)
        and _agrees(candidate, series.x, settings)
        and run_odds(candidate, series.x) < settings.odds
        and _beyond_precedent(candidate, settings)
        and not is_drift(series.x, candidate.start, candidate.cut, candidate.seen)
    )


def _agrees(candidate: Candidate, x: FloatArray, settings: Settings) -> bool:
    """Whether median, slope and enough single nights say the same as z."""
    sign = math.copysign(1, candidate.z)
    shifted = (x[candidate.cut : candidate.seen + 1] - candidate.median) * sign >= 0.5 * abs(candidate.effect)
    against_slope = candidate.z_sloped * sign >= SLOPED * settings.threshold
    return candidate.effect * sign > 0 and against_slope and int(shifted.sum()) >= settings.least_nights


def _beyond_precedent(candidate: Candidate, settings: Settings) -> bool:
    """Whether the shift clearly exceeds the strongest run of as many nights that the baseline has."""
    run = strongest_run(candidate.score, candidate.nights)
    spread = candidate.variance * float(vif(np.asarray(candidate.phi), candidate.nights)) / candidate.nights
    by_sum = abs(candidate.z) * math.sqrt(spread) >= settings.precedent * run
    return by_sum or abs(candidate.effect) >= CLEAR * run * candidate.scale


def run_odds(candidate: Candidate, x: FloatArray, *, stays: float = 0.2, weight: float = 1.0) -> float:
    """How likely the baseline, without any change, would show so many shifted nights in a row.

    A night is shifted when it is beyond half the effect. How often that happens, and how often the next
    night is shifted as well, is counted in the baseline: two modes that stick make long runs likely.
    `stays`: what the second is believed to be beforehand, with the weight of so many nights.
    """
    sign = math.copysign(1, candidate.effect)
    half = 0.5 * min(abs(candidate.effect) / candidate.scale, CLIP)
    shifted = sign * candidate.score[-candidate.size :] >= half
    after = sign * (x[candidate.cut : candidate.seen + 1] - candidate.median) >= half * candidate.scale
    share = (shifted.sum() + 1) / (len(shifted) + 2)
    both, first = float(np.sum(shifted[1:] & shifted[:-1])), float(shifted[:-1].sum())
    again = max((both + stays * weight) / (first + weight), share)
    return float(share * again ** max(0, int(after.sum()) - 1))


def is_drift(x: FloatArray, start: int, cut: int, seen: int) -> bool:
    """Whether a straight line fits the 40 nights before the cut and those after no worse than a step does."""
    first = max(start, cut - 40)
    y = x[first : seen + 1]
    at = np.arange(len(y), dtype=float)
    left, right = y[: cut - first], y[cut - first :]
    step = np.where(at < cut - first, np.median(left), np.median(right))
    scale = max(1.4826 * float(np.median(np.abs(y - step))), 1e-9)
    line = _robust_line(at, y, scale)
    return bool(_bounded(y - line, scale) <= LINE * _bounded(y - step, scale))


def _bounded(residual: FloatArray, scale: float) -> float:
    return float(np.minimum(np.abs(residual), 4 * scale).sum())


def _robust_line(at: FloatArray, y: FloatArray, scale: float) -> FloatArray:
    """A line through y by iteratively reweighted least squares with Huber's weights."""
    weight = np.ones(len(y))
    line = np.full(len(y), float(np.median(y)))
    for _ in range(6):
        total = weight.sum()
        centre, level = weight @ at / total, weight @ y / total
        away = at - centre
        weighted = weight * away
        slope = weighted @ (y - level) / max(weighted @ away, 1e-12)
        line = level + slope * away
        weight = 1 / np.maximum(1, np.abs(y - line) / scale)
    return np.asarray(line)


def placed(candidate: Candidate, series: Scaled) -> Candidate:
    """The candidate with its cut moved to where two levels fit the nights around it best."""
    first = max(candidate.start + LEAST_BEFORE, candidate.cut - 12)
    last = min(candidate.seen - 1, candidate.cut + 12)
    begin = max(candidate.start, first - WIDTH)
    cuts = np.arange(first, last + 1)
    best = candidate.cut
    if len(cuts):
        y = series.x[begin : candidate.seen + 1]
        is_left = np.arange(begin, candidate.seen + 1)[None, :] < cuts[:, None]
        left = row_medians(np.where(is_left, y, np.nan))[:, None]
        right = row_medians(np.where(is_left, np.nan, y))[:, None]
        cost = np.minimum(np.abs(y - np.where(is_left, left, right)), 4 * candidate.scale).sum(axis=1)
        best = int(cuts[np.lexsort((np.abs(cuts - candidate.cut), cost))[0]])
    effect = float(np.median(series.x[best : candidate.seen + 1])) - candidate.median
    return replace(candidate, cut=best, effect=effect)


def suspicious(
    candidates: list[Candidate], series: Scaled, state: SeriesState, night: int, settings: Settings
) -> Candidate | None:
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
        alike = 0 < candidate.effect / state.glued < 1.3 if state.glued else False
        if alike and night <= state.glued_until:
            needed = max(needed, settings.suspect)
        if abs(z) / needed >= max(1.0, margin):
            best, margin = candidate, abs(z) / needed
    return best
