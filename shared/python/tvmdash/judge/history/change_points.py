"""Where the level of a series shifts: one decision a night, or all change points of a history.

`observe` judges tonight, `change_points` a whole history, both with the same test: each possible cut of the last
nights, against the noise of the 60 nights before it (`noise`), then what could explain it otherwise: too small to
matter, a run that this series shows without change, a slow drift (`strong`). The cut is then moved to where levels
fit the nights around it best (`place_cut`, `divide`). Where artifacts can be measured again, much weaker suspicions
are, too (`again`), and the re-runs decide. docs/explanation/alerts.md has the measured figures.

Sources: Page 1954, Siegmund & Venkatraman 1995 (scan); Huber 1964 (bounded score); Matteson & James 2014,
Fleming et al. 2023 (change points of nightly performance); Fearnhead & Rigaill 2019 (bounded cost of a cut);
Kalibera & Jones 2013, Wald 1945 (re-runs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from tvmdash.judge.history.again import Bench, Verdict, confirm
from tvmdash.judge.history.cause import Reason, ReasonKind
from tvmdash.judge.history.levels import rebase
from tvmdash.judge.history.noise import WIDTH, FloatArray, row_medians, vif
from tvmdash.judge.history.scan import LEAST_FIRST, Candidate, find_suspicious, tonight
from tvmdash.judge.history.search import find_early_candidates, find_first_strong, find_strongest, is_clear
from tvmdash.judge.history.series import (
    KEPT_NIGHTS,
    Decision,
    History,
    Measured,
    Rerun,
    Scaled,
    SeriesState,
    Settings,
    scale_series,
)
from tvmdash.judge.history.strong import is_run_unlikely, run_odds

MODE_ODDS = 2e-5
"""Where builds are known to have modes, so unlikely must a run of one mode be to count as a step."""
MODE_STAYS, MODE_WEIGHT = 0.67, 6.0
MOVED_NIGHTS = 3
MOST_ASIDE = 60
"""Runs beside those in turn: for luck, and for the culprit."""
FIRST_BLOCK, SCAN_BLOCK = 128, 1024


def observe(
    history: History, state: SeriesState, *, settings: Settings | None = None, rerun: Rerun | None = None
) -> Decision:
    """Judge tonight (the last value of `history`); `decision.state` is for tomorrow."""
    settings = settings or Settings()
    series = scale_series(history, state)
    if series.unit != state.unit:
        state = SeriesState(unit=series.unit)
    night = history.tonight
    state = forget(state, night)

    def quiet(reason: Reason) -> Decision:
        return Decision("quiet", reason, night, state)

    if not len(series.x) or series.nights[-1] != night:
        return quiet(_find_missing_reason(history))
    if len(series.x) < settings.least_history:
        return quiet(Reason(ReasonKind.TOO_FEW_NIGHTS, nights=len(series.x), needed=settings.least_history))
    candidates = [tonight(series, state), find_early_candidates(series, state, np.array([len(series.x) - 1]))]
    best = [find_strongest(group) for group in candidates if group]
    if not best:
        return quiet(Reason(ReasonKind.NEW_LEVEL, nights=len(series.x) - series.index_of(state.start)))
    clear = [candidate for candidate in best if is_clear(candidate, series, settings)]
    strong = bool(clear)
    candidate = place_cut(find_strongest(clear), series) if strong else find_strongest(best)
    still = Decision(
        "quiet", _find_quiet_reason(candidate, settings), night, state, z=candidate.z, nights=candidate.nights,
        threshold=settings.threshold, scale=candidate.scale,
    )  # fmt: skip
    if rerun is None:
        return _make_alert(divide(candidate, series, settings), series, history, state, settings) if strong else still
    chosen = candidate if strong else find_suspicious([*candidates[0], *candidates[1]], series, settings)
    if chosen is None:
        return still
    return _measure_again(chosen, series, history, state, settings, rerun, strong=strong)


def _find_missing_reason(history: History) -> Reason:
    value = float(history.values[-1]) if len(history.values) else math.nan
    return Reason(ReasonKind.NOT_POSITIVE, value) if math.isfinite(value) else Reason(ReasonKind.NO_VALUE)


def forget(state: SeriesState, night: int) -> SeriesState:
    """The state after a night, without the corrections that are too old to count."""
    if all(key > night - KEPT_NIGHTS for key in state.fixed):
        return state
    return replace(state, fixed={key: value for key, value in state.fixed.items() if key > night - KEPT_NIGHTS})


def change_points(history: History, *, settings: Settings | None = None) -> tuple[list[Decision], SeriesState]:
    """Every alert that `observe` would have given on this history without re-runs, and the state after it.

    This is how a state is rebuilt, and how a long history is read: 10,000 nights in tens of milliseconds,
    because all cuts of a block are judged in one call, and only an alert makes it begin anew.
    """
    settings = settings or Settings()
    state = SeriesState()
    series = scale_series(history, state)
    state = replace(state, unit=series.unit)
    alerts: list[Decision] = []
    seen, block = settings.least_history - 1, FIRST_BLOCK
    while seen < len(series.x):
        stop = min(seen + block, len(series.x))
        # An alert throws away the rest of its block, so blocks begin small and grow while nothing is found.
        block = min(2 * block, SCAN_BLOCK)
        candidate = find_first_strong(series, state, seen, stop, settings)
        if candidate is None:
            seen = stop
            continue
        night = int(series.nights[candidate.seen])
        until = replace(history, values=history.values[: night - history.offset + 1])
        candidate = divide(place_cut(candidate, series), series, settings)
        decision = _make_alert(candidate, series, until, state, settings)
        alerts.append(decision)
        state, seen, block = decision.state, candidate.seen + 1, FIRST_BLOCK
    return alerts, state


def _measure_again(
    candidate: Candidate,
    series: Scaled,
    history: History,
    state: SeriesState,
    settings: Settings,
    rerun: Rerun,
    *,
    strong: bool,
) -> Decision:
    """The decision after re-runs; what they found replaces the suspected nights' values in the state.

    strong: the history alone would alert.
    """
    bench = Bench(rerun, series.unit, settings.most_reruns + MOST_ASIDE)
    verdict, cut = confirm(bench, candidate, series, state, settings)
    measured = tuple(bench.measured)
    if verdict.answer == "reproduced":
        candidate = replace(candidate, cut=cut, effect=verdict.shift)
        return _make_alert(candidate, series, history, state, settings, verdict, measured)
    is_left_to_history = verdict.answer in {"modes", "young", "unmeasured"}
    if strong and is_left_to_history and (verdict.answer != "modes" or _is_beyond_modes(candidate, series)):
        alert = _make_alert(divide(candidate, series, settings), series, history, state, settings)
        return alert if verdict.answer == "unmeasured" else replace(alert, reruns=measured)
    kind: Literal["quiet", "environment"] = "quiet"
    reason = Reason(ReasonKind(verdict.answer))
    if verdict.answer in ("refuted", "open"):
        state = _correct(candidate, series, state, verdict)
        if _machine_stays_moved(series, state, history.tonight, verdict):
            kind, reason = "environment", Reason(ReasonKind.OLDER_ARTIFACTS_MOVED)
            state = rebase(series, state, min(state.moved))
        elif verdict.machine_moved:
            state = replace(state, moved=(*state.moved, history.tonight)[-MOVED_NIGHTS:])
    relative = _relative(series)
    return Decision(
        kind, reason, history.tonight, state, effect=relative(verdict.shift),
        effect_low=relative(verdict.shift - 1.96 * verdict.error),
        effect_high=relative(verdict.shift + 1.96 * verdict.error), z=candidate.z, nights=candidate.nights,
        threshold=settings.reproduced, scale=candidate.scale, reruns=measured,
    )  # fmt: skip


def _is_beyond_modes(candidate: Candidate, series: Scaled) -> bool:
    """Return True where these nights in a row are hardly builds in one mode, where modes are known to stick."""
    return run_odds(candidate, series.x, stays=MODE_STAYS, weight=MODE_WEIGHT) < MODE_ODDS


def _machine_stays_moved(series: Scaled, state: SeriesState, night: int, verdict: Verdict) -> bool:
    """Return True where re-runs found the machine moved tonight and on the nights just before."""
    recent = {int(recent) for recent in series.nights[-MOVED_NIGHTS:]} - {night}
    return verdict.machine_moved and len(recent) == MOVED_NIGHTS - 1 and recent <= set(state.moved)


def _relative(series: Scaled) -> Callable[[float], float]:
    """Return the function from scaled units to a fraction of the value (or, of a signed series, to its unit)."""
    return (lambda shift: shift if math.isfinite(shift) else 0.0) if series.unit is not None else math.expm1


def _correct(candidate: Candidate, series: Scaled, state: SeriesState, verdict: Verdict) -> SeriesState:
    """The state with each suspected night that was measured again moved to where its artifact was found to be."""
    seen = {int(night) for night in series.nights[candidate.cut : candidate.seen + 1]}
    values = {night: candidate.median + away for night, away in verdict.again.items() if night in seen}
    return replace(state, fixed={**state.fixed, **values})


def _make_alert(
    candidate: Candidate,
    series: Scaled,
    history: History,
    state: SeriesState,
    settings: Settings,
    verdict: Verdict | None = None,
    reruns: tuple[Measured, ...] = (),
) -> Decision:
    """Make the alert at a cut. Whose the shift is, is decided where the artifacts are known."""
    cut_night = int(series.nights[candidate.cut])
    after = int(series.nights[candidate.cut - 1 - candidate.between])
    nights = candidate.nights
    error = (
        verdict.error
        if verdict
        else candidate.scale
        * math.sqrt(candidate.variance * float(vif(np.asarray(candidate.phi), nights)) * (1 / nights + 1 / WIDTH))
        * 1.25
    )
    low, high = candidate.effect - 1.96 * error, candidate.effect + 1.96 * error
    relative = _relative(series)
    return Decision(
        "alert", Reason(ReasonKind.SHIFTED), history.tonight,
        _add_level(rebase(series, state, cut_night), candidate, series, verdict), cut=cut_night, after=after,
        effect=relative(candidate.effect), effect_low=relative(low), effect_high=relative(high), z=candidate.z,
        nights=nights, threshold=settings.reproduced if verdict else settings.threshold,
        scale=candidate.scale, reruns=reruns, is_reproduced=verdict is not None,
    )  # fmt: skip


def _add_level(state: SeriesState, candidate: Candidate, series: Scaled, verdict: Verdict | None) -> SeriesState:
    """The state of a new level whose nights are where re-runs found it, so that the very next night can be judged."""
    if verdict is None:
        return state
    seen = slice(candidate.cut, candidate.seen + 1)
    excess = float(np.mean(series.x[seen])) - (candidate.median + verdict.shift)
    level = {
        int(night): float(value - excess) for night, value in zip(series.nights[seen], series.x[seen], strict=True)
    }
    return replace(state, fixed={**state.fixed, **level})


def _find_quiet_reason(candidate: Candidate, settings: Settings) -> Reason:
    if abs(candidate.z) < settings.threshold:
        return Reason(ReasonKind.WITHIN_NOISE, candidate.z, candidate.nights, settings.threshold)
    if candidate.nights < settings.least_nights:
        return Reason(ReasonKind.TOO_SHORT, nights=candidate.nights, needed=settings.least_nights)
    if abs(candidate.effect) < settings.least_effect:
        return Reason(ReasonKind.NOT_RELEVANT, candidate.effect)
    return Reason(ReasonKind.DRIFT_OR_RUN)


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
