"""Whether an old value holds against new ones: it does, it does not, or that cannot be told, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.trials.series_selection import WantedSeries
from tvmdash.judge.repeated import CANNOT_TELL, DOES_NOT_HOLD, HOLDS, Repeated

MATTERS = 0.05
"""A change of a time that matters, as a fraction, where nobody says another."""
_OTHER_MACHINE = "another machine"
_UNKNOWN_MACHINE = "the receipt does not name the machine"
_OTHER_CODE = "the code differs from the original"


@dataclass(frozen=True)
class Conditions:
    """What was as it was. is_same_machine: None where the receipt does not say. matters: as a fraction."""

    is_same_machine: bool | None
    is_same_code: bool
    matters: float = MATTERS


@dataclass(frozen=True)
class Line:
    """One series: its value then and now, and what that says. found: None where it could not be measured often enough.

    why: words behind a `verdict` that cannot be told.
    """

    series: WantedSeries
    old: float
    new: tuple[float, ...]
    found: Repeated | None = None
    verdict: str = CANNOT_TELL
    why: str = ""


def judge(series: WantedSeries, old: float, new: tuple[float, ...], repeated: Repeated | None, was: Conditions) -> Line:
    """The line of one series.

    A value does not hold where it is outside the noise and, of a time, away by what matters: nights are further apart
    than the rounds of one call. Bytes always matter. It cannot be told where so large a change could hide in the noise,
    nor of times on another machine; and a difference is laid on TVM only where machine and code are those of then.
    """
    if repeated is None:
        return Line(series, old, new, repeated, CANNOT_TELL, _format_too_few(old, new))
    away = not repeated.holds and (series.is_size or _measure_distance(repeated) >= math.log1p(was.matters))
    why = _find_not_comparable(series, was, away=away)
    if not why and not away and _measure_reach(repeated) > math.log1p(was.matters):
        why = f"a change of {100 * was.matters:g} % could hide in the noise"
    verdict = CANNOT_TELL if why else DOES_NOT_HOLD if away else HOLDS
    return Line(series, old, new, repeated, verdict, why)


def conclude(lines: Sequence[Line]) -> str:
    """The verdict over several series: one that does not hold outweighs what cannot be told, and that what holds."""
    verdicts = {line.verdict for line in lines} or {CANNOT_TELL}
    return next(verdict for verdict in (DOES_NOT_HOLD, CANNOT_TELL, HOLDS) if verdict in verdicts)


def _format_too_few(old: float, new: tuple[float, ...]) -> str:
    if old <= 0 or any(value <= 0 for value in new):
        return "a value is not above 0"
    return f"it was measured only {len(new)} {'time' if len(new) == 1 else 'times'}"


def _find_not_comparable(series: WantedSeries, was: Conditions, *, away: bool) -> str:
    if was.is_same_machine is False and (away or not series.is_size):
        return _OTHER_MACHINE
    if away and was.is_same_machine is None:
        return _UNKNOWN_MACHINE
    return _OTHER_CODE if away and not was.is_same_code else ""


def _measure_distance(repeated: Repeated) -> float:
    return abs(math.log(repeated.new / repeated.old))


def _measure_reach(repeated: Repeated) -> float:
    """Half of the interval on the scale of logarithms."""
    return math.log(repeated.high / repeated.low) / 2 if repeated.low > 0 else math.inf
