"""Exact numbers of A and B: sizes, counts, accuracies. One that varies is none."""

from __future__ import annotations

from tvmdash.contracts.signoff import SignoffDoubt, SignoffEvidence
from tvmdash.signoff.comparing import SeriesChange, cannot_say
from tvmdash.signoff.measured import MeasuredSeries, NightValue


def compare_exact(series: MeasuredSeries, a: str, b: str) -> SeriesChange | None:
    """Its value on A and on B; None where it is not known of both.

    The same night's, where one was measured beside the other: by the same code. Else those of nights of the same code.
    """
    both = _find_on_both(series, a, b)
    if both is not None:
        return _make(*both)
    old, new = series.list_values(a), series.list_values(b)
    if not old or not new:
        return None
    codes = {value.fingerprint for value in old} & {value.fingerprint for value in new}
    before, after = _find_values(old, codes), _find_values(new, codes)
    if len(before) == len(after) == 1:
        return _make(*before, *after)
    if codes:
        return cannot_say(SignoffDoubt.VARIES)
    every = _find_values([*old, *new], None)
    return _make(*every, *every) if len(every) == 1 else cannot_say(SignoffDoubt.OWN_CODE)


def _find_on_both(series: MeasuredSeries, a: str, b: str) -> tuple[float, float] | None:
    """The newest of what was measured of both at once."""
    found = None
    for each in series.on_both:
        if (each.reference, each.tvm) == (a, b):
            found = each.of_reference, each.value
        elif (each.reference, each.tvm) == (b, a):
            found = each.value, each.of_reference
    return found


def _find_values(values: list[NightValue], codes: set[str | None] | None) -> set[float]:
    """The numbers that nights with one of these codes measured."""
    return {value.value for value in values if codes is None or value.fingerprint in codes}


def _make(before: float, after: float) -> SeriesChange:
    return SeriesChange(SignoffEvidence.EXACT, before=before, after=after, is_real=before != after)
