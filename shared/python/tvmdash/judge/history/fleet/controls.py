"""The controls' evidence on a shift: programs that TVM cannot have changed moved with it, or stood still.

Some of them are enough: slower memory moves those that wait for memory, and nothing that a compiler does moves any.
Two of few are needed, since a control may have a mode of its own; a single one has to move as far as the shift.

Source: Kalibera & Jones 2013 (controls).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.judge.history.cause import BUILD, CONTROLS, MACHINE, Cause
from tvmdash.judge.history.noise import LEAST_FLOOR, MAD_TO_SD, FloatArray
from tvmdash.judge.history.series import History, SeriesState, scale_series

CLEARLY = 4.0
"""A control has moved where it is beyond so many of its standard errors, and half the shift."""
SOME = 0.3
"""This share of the controls, and two at least, must have moved for the machine to have."""
MOST_OF_ONE = 2.5
"""A single control is believed where it moved no further than so many times the shift."""
ODD_ONE_OF = 4
"""One of so many may have moved by a mode of its own; with more than one nobody can say that all stood still."""
BEFORE, LEAST_BEFORE, NEAR = 20, 3, 4


@dataclass(frozen=True)
class ControlShift:
    """By how much a control moved (logarithm), its standard error, and the part that came right at the cut."""

    size: float
    error: float
    near: float


def find_shift(history: History, cut: int) -> ControlShift | None:
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
        float(np.median(after)) - level, 1.25 * scale * math.sqrt(1 / len(before) + 1 / len(after)), near
    )


def find_shifts(histories: Iterable[History], cut: int) -> list[ControlShift]:
    """The shifts of those controls that have one."""
    return [shift for history in histories if (shift := find_shift(history, cut)) is not None]


def weigh(controls: Sequence[ControlShift], shift: float) -> Cause:
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
