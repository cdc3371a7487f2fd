"""The shift that all series of one machine share on one night, and its cause.

Controls (programs built once, never recompiled) tell the machine from a compiler-wide change: they see the first and
not the second. Some of them are enough: slower memory moves those that wait for memory, and nothing that a compiler
does moves any. Two of few are needed, since a control may have a mode of its own; a single one has to move as far as
the shift. Where there are none, or they are too noisy to say, older artifacts measured tonight answer the question.

Source: Kalibera & Jones 2013 (controls).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tvmdash.judge.history.cause import BUILD, CONTROLS, MACHINE, OLDER_ARTIFACTS, UNKNOWN, Cause
from tvmdash.judge.history.noise import LEAST_FLOOR, MAD_TO_SD, FloatArray, row_medians
from tvmdash.judge.history.series import History, Scaled, SeriesState, scale_series

CLEARLY = 4.0
"""A control has moved where it is beyond so many of its standard errors, and half the shift."""
SOME = 0.3
"""This share of the controls, and two at least, must have moved for the machine to have."""
MOST_OF_ONE = 2.5
"""A single control is believed where it moved no further than so many times the shift."""
ODD_ONE_OF = 4
"""One of so many may have moved by a mode of its own; with more than one nobody can say that all stood still."""
BEFORE, LEAST_BEFORE, NEAR = 20, 3, 4
"""Nights before the cut that make a control's level, the least of them, and nights whose jump must come right there."""


@dataclass(frozen=True)
class ControlShift:
    """By how much a control moved (logarithm), its standard error, and the part that came right at the cut."""

    size: float
    error: float
    near: float


def find_control_shift(history: History, cut: int) -> ControlShift | None:
    """Compare a control's values since the night `cut` with those before; None where there are too few."""
    series = scale_series(history, SeriesState())
    index = series.index_of(cut)
    before, after = series.recorded[max(0, index - BEFORE) : index], series.recorded[index:]
    if series.unit is not None or len(before) < LEAST_BEFORE or not len(after):
        return None
    level = float(np.median(before))
    scale = max(MAD_TO_SD * float(np.median(np.abs(before - level))) * (1 + 4 / len(before)), LEAST_FLOOR)
    near = float(np.median(after[:NEAR]) - np.median(before[-NEAR:]))
    return ControlShift(
        # The standard error of a median is 1.25 times that of a mean.
        float(np.median(after)) - level,
        1.25 * scale * math.sqrt(1 / len(before) + 1 / len(after)),
        near,
    )


def find_control_shifts(histories: Iterable[History], cut: int) -> list[ControlShift]:
    """Find the shifts of those controls that have one."""
    return [shift for history in histories if (shift := find_control_shift(history, cut)) is not None]


def weigh_controls(controls: Sequence[ControlShift], shift: float) -> Cause:
    """Attribute `shift` (logarithm) to the machine or TVM, or to neither where the controls cannot say."""
    if not controls:
        return Cause()
    moved = [control.size for control in controls if _has_moved(control, shift, alone=len(controls) == 1)]
    middle, doubt = _find_middle(controls)
    if len(moved) >= _count_needed(len(controls)):
        return _make_cause(MACHINE, controls, moved, float(np.median(moved)))
    if abs(middle - shift / 2) >= 2 * doubt:
        together = len(controls) > 1 and middle / shift > 0.5 and abs(middle) >= CLEARLY * doubt
        if together:
            return _make_cause(MACHINE, controls, moved, middle)
        if middle / shift <= 0.5 and len(moved) <= (len(controls) >= ODD_ONE_OF):
            return _make_cause(BUILD, controls, moved, middle)
    return Cause(controls=len(controls), controls_moved=len(moved), controls_shift=math.expm1(middle))


def _make_cause(whose: str, controls: Sequence[ControlShift], moved: Sequence[float], size: float) -> Cause:
    return Cause(whose, CONTROLS, controls=len(controls), controls_moved=len(moved), controls_shift=math.expm1(size))


def _count_needed(count: int) -> float:
    return 1 if count == 1 else max(2, SOME * count)


def _has_moved(control: ControlShift, shift: float, *, alone: bool) -> bool:
    with_it = min(control.size * math.copysign(1, shift), control.near * math.copysign(1, shift)) >= abs(shift) / 2
    as_far = not alone or abs(control.size) <= MOST_OF_ONE * abs(shift)
    return with_it and as_far and abs(control.size) > CLEARLY * control.error


def _find_middle(controls: Sequence[ControlShift]) -> tuple[float, float]:
    """The weighted median of the controls' shifts, and its standard error."""
    weights = np.array([1 / control.error for control in controls])
    doubt = 1.25 * math.sqrt(len(controls)) / float(weights.sum())
    return find_weighted_median(np.array([control.size for control in controls]), weights), doubt


def find_weighted_median(values: FloatArray, weights: FloatArray) -> float:
    """The value at which half of the weight is reached; the middle of two where that is between them."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    lower, upper = np.searchsorted(total, total[-1] / 2), np.searchsorted(total, total[-1] / 2, side="right")
    return float(values[order][[lower, min(upper, len(values) - 1)]].mean())


BASELINE = 40
LEAST_BASELINE = 3
LEAST_SERIES = 8
LEAST_SHIFT = 0.003
SAME_WAY = 0.75
LEAST_CONTROLS = 4
"""Controls that are believed for one night even where they are not sure; as many older artifacts are needed."""
PROBES = 6


class FleetRerun(Protocol):
    """Measures one series' artifact of `night` again tonight, `count` times."""

    def __call__(self, series: str, night: int, count: int) -> Sequence[float]: ...


@dataclass(frozen=True)
class Common:
    """A shift that the series share on one night: its size (logarithm), standard error and cause.

    share: of the series, `series` in number without controls, that went that way.
    """

    night: int
    shift: float
    error: float
    share: float
    series: int
    cause: Cause

    @property
    def blame(self) -> str:
        """Machine, compiler or unknown."""
        return self.cause.blame


@dataclass(frozen=True)
class Deviation:
    """Tonight's distance of one series from its baseline, and the noise of one night."""

    away: float
    scale: float
    median: float
    positive: bool


def find_deviations(histories: Mapping[str, History], states: Mapping[str, SeriesState]) -> dict[str, Deviation]:
    """Tonight's deviation of each series that has a value and a baseline."""
    deviation_of = {}
    for name, history in histories.items():
        tonight = find_deviations_from(scale_series(history, states[name]), states[name], history.tonight)
        if history.tonight in tonight:
            deviation_of[name] = tonight[history.tonight]
    return deviation_of


def find_deviations_from(series: Scaled, state: SeriesState, first: int) -> dict[int, Deviation]:
    """The deviation of each night with a value from `first` on, from the level that began with `state.start`."""
    start = series.index_of(state.start)
    places = np.arange(max(series.index_of(first), start + LEAST_BASELINE), len(series.x))
    if not len(places):
        return {}
    column = places[:, None] + np.arange(-BASELINE, 0)[None, :]
    before = np.where(column >= start, series.x[np.maximum(column, 0)], np.nan)
    median = row_medians(before)
    residual = _fill_from_reserve(before - median[:, None], np.array(state.reserve))
    scale = np.maximum(MAD_TO_SD * row_medians(np.abs(residual)), LEAST_FLOOR)
    rows = zip((series.x[places] - median).tolist(), scale.tolist(), median.tolist(), strict=True)
    nights = series.nights[places].tolist()
    return {night: Deviation(*row, positive=series.unit is None) for night, row in zip(nights, rows, strict=True)}


def _fill_from_reserve(residual: FloatArray, reserve: FloatArray) -> FloatArray:
    """Fill each row (NaN in front) from the right with the last residuals of closed segments."""
    width = residual.shape[1]
    padded = np.concatenate([np.full(width, np.nan), reserve])[-width:]
    own = np.isfinite(residual).sum(axis=1)[:, None]
    index = np.minimum(np.arange(width)[None, :] + own, width - 1)
    return np.asarray(np.where(np.isfinite(residual), residual, padded[index]))


def find_common_shift(
    table: Mapping[str, Deviation],
    controls: AbstractSet[str],
    tonight: int,
    probe: Callable[[Sequence[str]], Sequence[float]] | None = None,
) -> Common | None:
    """The shift that most series share tonight, where there is one.

    Few series alone cannot show one; with controls that moved as well they can. probe: measures older artifacts of
    these series tonight, and says by how much they moved.
    """
    rows = {name: row for name, row in table.items() if row.positive}
    moving = {name: row for name, row in rows.items() if name not in controls}
    few = len(moving) < LEAST_SERIES
    seen = _find_shift_together(list((rows if few else moving).values()))
    if seen is None or not moving or len(rows) < LEAST_SERIES:
        return None
    shift, error = seen
    share = float(np.mean([row.away * shift > 0 for row in moving.values()]))
    cause = weigh_controls([_find_shift_of_tonight(row) for name, row in rows.items() if name in controls], shift)
    if few:
        own = float(np.median([row.away for row in moving.values()]))
        with_them = cause.whose == MACHINE and own / shift > 0.5
        return Common(tonight, shift, error, share, len(moving), cause) if with_them else None
    if cause.whose == UNKNOWN:
        quietest = sorted(moving, key=lambda name: moving[name].scale)[:PROBES]
        cause = _weigh_older(cause, probe(quietest) if probe else (), shift)
    return Common(tonight, shift, error, share, len(moving), cause)


def _find_shift_of_tonight(row: Deviation) -> ControlShift:
    return ControlShift(row.away, row.scale, row.away)


def _find_shift_together(rows: Sequence[Deviation]) -> tuple[float, float] | None:
    """The shift of these series and its standard error, where they did the same beyond chance."""
    if not rows:
        return None
    away = np.array([row.away for row in rows])
    scale = np.array([row.scale for row in rows])
    shift = find_weighted_median(away, 1 / scale)
    error = 1.25 * float(np.median(scale)) / math.sqrt(len(rows))
    share = float(np.mean(np.sign(away) == np.sign(shift)))
    return None if abs(shift) <= max(4 * error, LEAST_SHIFT) or share < SAME_WAY else (shift, error)


def _weigh_older(cause: Cause, moved: Sequence[float], shift: float) -> Cause:
    """The cause by what older artifacts did tonight; without them the one to which controls, if not few, are nearer."""
    if len(moved) >= LEAST_CONTROLS:
        older = float(np.median(moved))
        whose = MACHINE if older / shift > 0.5 else BUILD
        return replace(cause, whose=whose, evidence=OLDER_ARTIFACTS, older=len(moved), older_shift=math.expm1(older))
    if cause.controls >= LEAST_CONTROLS and cause.controls_shift is not None:
        whose = MACHINE if math.log1p(cause.controls_shift) / shift > 0.5 else BUILD
        return replace(cause, whose=whose, evidence=CONTROLS, older=len(moved))
    return replace(cause, older=len(moved))


def probe_older(
    names: Sequence[str],
    table: Mapping[str, Deviation],
    histories: Mapping[str, History],
    states: Mapping[str, SeriesState],
    rerun: FleetRerun,
) -> Iterator[float]:
    """Yield by how much older artifacts of these series moved, measured tonight."""
    for name in names:
        series = scale_series(histories[name], states[name])
        old = [int(night) for night in series.nights[:-1] if night >= states[name].start][-5:-2]
        values = list(rerun(name, old[-1], 1)) if old else []
        if values and math.isfinite(values[0]) and values[0] > 0:
            yield math.log(values[0]) - table[name].median
