"""Series without pairs: rounds of whole runs, else the values of the nights of A and of B, with an honest interval.

Values of different nights differ by the machine as well. How much it moved between just these nights is told by the
controls, whose programs never change; without one, nobody can tell it from TVM.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvmdash.detect.noise import vif
from tvmdash.judge import two
from tvmdash.judge.model import Shift
from tvmdash.judge.repeated import Variance, measure_error
from tvmdash.judge.rules import RULES
from tvmdash.signoff.comparing import SeriesChange, cannot_say
from tvmdash.signoff.measured import MeasuredSeries, NightValue
from tvmdash.signoff.result import SignoffDoubt, SignoffEvidence

FEWEST_NIGHTS = 3
_MOST_CONTROLS = 8.0
"""Controls move together: so many tell how the machine moved, and more tell nothing new."""
PRIOR_OF_ALIKE, MOST_ALIKE = 10, 0.85
"""How alike a night is to the one before it: few nights tell that badly, and none are taken for all but the same."""
Logs = Mapping[str, float]
"""By stamp, the logarithm of a value."""


@dataclass(frozen=True)
class _Asked:
    """What the judge has to know beside the values: the direction of the metric, and of how many series it is one."""

    direction: str
    points: int


def compare_rounds(series: Sequence[MeasuredSeries], a: str, b: str) -> dict[str, SeriesChange]:
    """By key, what whole runs of the two found, all series at once."""
    measured = {}
    for each in series:
        values = {str(at): both for at, both in enumerate(_list_rounds(each, a, b))}
        rounds = two.RoundSeries.of(each.experiment, values, each.outline.direction)
        if rounds is not None:
            measured[each.key] = rounds
    return {
        key: replace(SeriesChange.of(SignoffEvidence.COMPARED, difference), nights=len(measured[key].rounds))
        for key, difference in two.compare_rounds(measured).items()
    }


def _list_rounds(series: MeasuredSeries, a: str, b: str) -> list[tuple[float, float]]:
    """Those of A and B, as (A, B), in whichever order they were asked for."""
    turned = [(first, second) for second, first in series.rounds.get((b, a), ())]
    return [*series.rounds.get((a, b), ()), *turned]


def compare_nights(
    series: MeasuredSeries, a: str, b: str, controls: Sequence[MeasuredSeries], points: int
) -> SeriesChange:
    """What the nights of A and of B say, measured by the same code of the experiment; one of so many series."""
    old, new = series.list_values(a), series.list_values(b)
    if not old or not new:
        return cannot_say(SignoffDoubt.NOT_MEASURED)
    codes = {value.fingerprint for value in old} & {value.fingerprint for value in new}
    old, new = ([value for value in values if value.fingerprint in codes] for values in (old, new))
    if not old or not new:
        return cannot_say(SignoffDoubt.OWN_CODE)
    if min(value.value for value in (*old, *new)) <= 0:
        return cannot_say(SignoffDoubt.NOT_POSITIVE)
    return _compare_logs(_by_night(old), _by_night(new), controls, _Asked(series.outline.direction, points))


def _compare_logs(before: Logs, after: Logs, controls: Sequence[MeasuredSeries], asked: _Asked) -> SeriesChange:
    both = sorted(before.keys() & after.keys())
    if len(both) >= FEWEST_NIGHTS:  # what a night did to both cancels
        differences = [after[stamp] - before[stamp] for stamp in both]
        return _conclude(statistics.fmean(differences), _list_errors([differences]), len(both), asked)
    if min(len(before), len(after)) < FEWEST_NIGHTS:
        return cannot_say(SignoffDoubt.FEW_NIGHTS)
    moved = [shift for each in controls if (shift := _find_shift(each, before, after)) is not None]
    if not moved:
        return cannot_say(SignoffDoubt.NO_CONTROL)
    machine = Variance(statistics.fmean(shift**2 for shift in moved), min(len(moved), _MOST_CONTROLS))
    sides = list(before.values()), list(after.values())
    shift = statistics.fmean(sides[1]) - statistics.fmean(sides[0])
    return _conclude(shift, [*_list_errors(sides), machine], len(before) + len(after), asked)


def _by_night(values: Sequence[NightValue]) -> dict[str, float]:
    """The mean of the logarithms of each night."""
    nights: dict[str, list[float]] = {}
    for value in values:
        nights.setdefault(value.stamp, []).append(math.log(value.value))
    return {stamp: statistics.fmean(logs) for stamp, logs in nights.items()}


def _find_shift(control: MeasuredSeries, before: Logs, after: Logs) -> float | None:
    """How far a control lay on the nights of B from where it lay on those of A; None where it was not measured."""
    logs = _by_night([value for value in control.values if value.value > 0])
    old, new = ([logs[stamp] for stamp in nights if stamp in logs] for nights in (before, after))
    return statistics.fmean(new) - statistics.fmean(old) if old and new else None


def _list_errors(sides: Sequence[Sequence[float]]) -> list[Variance]:
    """The variance of each side's mean, of nights that may be much like the nights before them."""
    residuals = [[log - statistics.fmean(logs) for log in logs] for logs in sides]
    follows = math.fsum(one * next_one for side in residuals for one, next_one in itertools.pairwise(side))
    power = math.fsum(each**2 for side in residuals for each in side)
    count = sum(map(len, sides))
    alike = (count * (follows / power if power else 0.0) + 1) / (count + PRIOR_OF_ALIKE)
    phi = np.array(min(max(alike, 0.0), MOST_ALIKE))
    return [
        Variance(float(vif(phi, len(logs))) / len(logs) * statistics.variance(logs), len(logs) - 1) for logs in sides
    ]


def _conclude(log: float, errors: Sequence[Variance], nights: int, asked: _Asked) -> SeriesChange:
    """As the judge weighs it, with the luck of two builds, of which nothing is known here."""
    known = RULES.night_sd**2 + 2 * (RULES.code_luck**2 + RULES.library_luck**2)
    shift = Shift(log, measure_error(errors, known), RULES.freedom)
    difference = two.weigh(shift, asked.points, asked.direction)
    return replace(SeriesChange.of(SignoffEvidence.NIGHTS, difference), nights=nights)
