"""Series without pairs: rounds of `compare`, else the values of the nights of A and of B, with an honest interval.

Values of different nights differ by the machine as well. How much it moved between just these nights is told by the
controls, whose programs never change; without one, nobody can tell it from TVM.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from tvmdash.contracts.signoff import SignoffDoubt, SignoffEvidence
from tvmdash.detect.beside.contrasts import NIGHT_VARIANCE
from tvmdash.detect.beside.luck import LUCK_PRIOR
from tvmdash.detect.beside.rarity import points, whole_freedom
from tvmdash.detect.noise import vif
from tvmdash.signoff.comparing import SeriesChange, cannot_say
from tvmdash.signoff.measured import MeasuredSeries, NightValue
from tvmdash.stats.comparison import find_differences
from tvmdash.stats.spread import Spread, add
from tvmdash.stats.student import two_sided

FEWEST_NIGHTS = 3
_MOST_CONTROLS = 8.0
"""Controls move together: so many tell how the machine moved, and more tell nothing new."""
PRIOR_OF_ALIKE, MOST_ALIKE = 10, 0.85
"""How alike a night is to the one before it: few nights tell that badly, and none are taken for all but the same."""
Logs = Mapping[str, float]
"""By stamp, the logarithm of a value."""


def compare_rounds(series: Sequence[MeasuredSeries], a: str, b: str) -> dict[str, SeriesChange]:
    """By key, what `compare` found, all series at once."""
    rounds = {each.key: _list_rounds(each, a, b) for each in series}
    having = {key: pairs for key, pairs in rounds.items() if pairs}
    found = {}
    for key, difference in zip(having, find_differences(list(having.values())), strict=True):
        if difference is not None:
            log, low, high = (math.log1p(end) for end in (difference.effect, difference.low, difference.high))
            found[key] = SeriesChange(
                SignoffEvidence.COMPARED,
                log,
                low,
                high,
                p=difference.p,
                nights=difference.rounds,
                is_real=difference.real,
            )
    return found


def _list_rounds(series: MeasuredSeries, a: str, b: str) -> list[tuple[float, float]]:
    """Those of A and B, as (A, B), in whichever order they were asked for."""
    turned = [(first, second) for second, first in series.rounds.get((b, a), ())]
    return [*series.rounds.get((a, b), ()), *turned]


def compare_nights(series: MeasuredSeries, a: str, b: str, controls: Sequence[MeasuredSeries]) -> SeriesChange:
    """What the nights of A and of B say, measured by the same code of the experiment."""
    old, new = series.list_values(a), series.list_values(b)
    if not old or not new:
        return cannot_say(SignoffDoubt.NOT_MEASURED)
    codes = {value.fingerprint for value in old} & {value.fingerprint for value in new}
    old, new = ([value for value in values if value.fingerprint in codes] for values in (old, new))
    if not old or not new:
        return cannot_say(SignoffDoubt.OWN_CODE)
    if min(value.value for value in (*old, *new)) <= 0:
        return cannot_say(SignoffDoubt.NOT_POSITIVE)
    return _compare_logs(_by_night(old), _by_night(new), controls)


def _compare_logs(before: Logs, after: Logs, controls: Sequence[MeasuredSeries]) -> SeriesChange:
    both = sorted(before.keys() & after.keys())
    if len(both) >= FEWEST_NIGHTS:
        return _compare_same_nights([after[stamp] - before[stamp] for stamp in both])
    if min(len(before), len(after)) < FEWEST_NIGHTS:
        return cannot_say(SignoffDoubt.FEW_NIGHTS)
    moved = [shift for each in controls if (shift := _find_shift(each, before, after)) is not None]
    if not moved:
        return cannot_say(SignoffDoubt.NO_CONTROL)
    machine = Spread(statistics.fmean(shift**2 for shift in moved), min(len(moved), _MOST_CONTROLS))
    return _compare_levels(list(before.values()), list(after.values()), machine)


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


def _compare_same_nights(differences: Sequence[float]) -> SeriesChange:
    """Both were measured on the same nights, so that what a night did to both cancels."""
    return _conclude(statistics.fmean(differences), [_find_error([differences])], len(differences))


def _compare_levels(old: Sequence[float], new: Sequence[float], machine: Spread) -> SeriesChange:
    shift = statistics.fmean(new) - statistics.fmean(old)
    return _conclude(shift, [_find_error([old, new]), machine], len(old) + len(new))


def _find_error(sides: Sequence[Sequence[float]]) -> Spread:
    """The variance of the difference of means, of nights that may be much like the nights before them."""
    residuals = [[log - statistics.fmean(logs) for log in logs] for logs in sides]
    follows = math.fsum(one * next_one for side in residuals for one, next_one in itertools.pairwise(side))
    power = math.fsum(each**2 for side in residuals for each in side)
    count = sum(map(len, sides))
    alike = (count * (follows / power if power else 0.0) + 1) / (count + PRIOR_OF_ALIKE)
    phi = np.array(min(max(alike, 0.0), MOST_ALIKE))
    spreads = [Spread(statistics.variance(logs), len(logs) - 1) for logs in sides]
    parts = [(float(vif(phi, len(logs))) / len(logs), spread) for logs, spread in zip(sides, spreads, strict=True)]
    return add(*parts)


def _conclude(log: float, errors: Sequence[Spread], nights: int) -> SeriesChange:
    """With the luck of two builds, of which nothing is known here."""
    error = add(*((1.0, each) for each in errors), (2.0, LUCK_PRIOR), (1.0, Spread(NIGHT_VARIANCE)))
    reach = points(error.freedom) * error.sd
    chance = two_sided(log / error.sd, whole_freedom(error.freedom))
    return SeriesChange(SignoffEvidence.NIGHTS, log, log - reach, log + reach, p=chance, nights=nights)
