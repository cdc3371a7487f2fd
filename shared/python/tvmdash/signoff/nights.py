"""Series without pairs: rounds of whole runs, else the values of the nights of A and of B. The judge weighs both."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tvmdash.judge import repeated, two
from tvmdash.signoff.comparing import SeriesChange, cannot_say
from tvmdash.signoff.measured import MeasuredSeries, NightValue
from tvmdash.signoff.result import SignoffDoubt, SignoffEvidence

Logs = Mapping[str, float]
"""By stamp, the logarithm of a value."""


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
    before, after = _by_night(old), _by_night(new)
    moved = [shift for each in controls if (shift := _find_shift(each, before, after)) is not None]
    nights = repeated.NightsOfTwo(before, after, moved, series.outline.direction)
    found = repeated.compare_nights(nights, points)
    if found is None:
        return cannot_say(SignoffDoubt.FEW_NIGHTS if nights.are_few else SignoffDoubt.NO_CONTROL)
    return replace(SeriesChange.of(SignoffEvidence.NIGHTS, found), nights=found.pairs)


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
