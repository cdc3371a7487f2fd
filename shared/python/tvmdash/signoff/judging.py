"""Every series from A to B: which evidence counts, what of it is real, and what cannot be said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.incidents.annotations import RETIRED, Annotation
from tvmdash.judge import two
from tvmdash.records.metrics import is_worse, judge_exact_change
from tvmdash.signoff.between import ToldBetween
from tvmdash.signoff.comparing import SeriesChange, cannot_say
from tvmdash.signoff.measured import MeasuredSeries, NightValue
from tvmdash.signoff.ratios import compare_ratios
from tvmdash.signoff.sources import Sources
from tvmdash.trials.signoff import SignoffDoubt, SignoffEvidence, SignoffSeries, SignoffState
from tvmdash.verdict import Controls


@dataclass(frozen=True)
class TwoTvms:
    """The IDs of A and B."""

    a: str
    b: str


def judge_series(
    found: Sources, series: Sequence[MeasuredSeries], pair: TwoTvms, told: ToldBetween, matters: float
) -> list[SignoffSeries]:
    """Each series of a TVM that was measured with A or B and is not retired.

    matters: a change for the worse that must be excluded, as a fraction.
    """
    named = Controls.of(found.home)
    known = [
        each for each in series
        if (each.knows(pair.a) or each.knows(pair.b)) and not named.has(each.experiment, each.key)
    ]  # fmt: skip
    known = [each for each in known if not _is_retired(each, found.tvms.annotations)]
    compared = _compare_all(known, pair, told)
    coverage = Coverage.of(known, pair)
    return [_judge(each, compared[each.key], coverage, matters) for each in known]


@dataclass(frozen=True)
class Coverage:
    """The experiments that were measured with each of the two, and those that were with it alone as the home's TVM."""

    pair: TwoTvms
    measured: Mapping[str, frozenset[str]]
    own: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, series: Sequence[MeasuredSeries], pair: TwoTvms) -> Coverage:
        """As the series of all experiments say."""
        both = (pair.a, pair.b)
        measured = {tvm: frozenset(each.experiment for each in series if each.knows(tvm)) for tvm in both}
        own = {tvm: frozenset(each.experiment for each in series if each.list_values(tvm)) for tvm in both}
        return cls(pair, measured, own)


def _is_retired(series: MeasuredSeries, annotations: Iterable[Annotation]) -> bool:
    """Whether the last that people said of it is that nobody misses it."""
    said = [each.series for each in annotations if each.series and each.covers(series.experiment, series.name)]
    return said[-1:] == [RETIRED]


def _compare_all(series: Sequence[MeasuredSeries], pair: TwoTvms, told: ToldBetween) -> dict[str, SeriesChange]:
    """By key, what the strongest evidence says that there is."""
    pairs = compare_rounds(series, pair.a, pair.b) | compare_ratios(series, pair.a, pair.b)
    compared = {}
    for each in series:
        exact = compare_exact(each, pair.a, pair.b) if each.may_be_exact else None
        if exact is not None and exact.doubt is not SignoffDoubt.VARIES:
            compared[each.key] = exact
        else:
            compared[each.key] = pairs.get(each.key) or _ask_nights(each, pair, told)
    return compared


def compare_rounds(series: Sequence[MeasuredSeries], a: str, b: str) -> dict[str, SeriesChange]:
    """By key, what whole runs of the two found, all series at once."""
    measured = {}
    for each in series:
        turned = [(first, second) for second, first in each.rounds.get((b, a), ())]
        values = {str(at): both for at, both in enumerate([*each.rounds.get((a, b), ()), *turned])}
        rounds = two.RoundSeries.of(each.experiment, values, each.outline.direction)
        if rounds is not None:
            measured[each.key] = rounds
    return {
        key: replace(SeriesChange.of(SignoffEvidence.COMPARED, difference), nights=len(measured[key].rounds))
        for key, difference in two.compare_rounds(measured).items()
    }


def _ask_nights(series: MeasuredSeries, pair: TwoTvms, told: ToldBetween) -> SeriesChange:
    """What the nights said of a series that no pairs join, where they measured both with the same code of its own."""
    old, new = ({value.fingerprint for value in series.list_values(tvm)} for tvm in (pair.a, pair.b))
    if not old or not new:
        return cannot_say(SignoffDoubt.NOT_MEASURED)
    if not old & new:
        return cannot_say(SignoffDoubt.OWN_CODE)
    return told.compare(series.key) or cannot_say(SignoffDoubt.NOT_JOINED)


def _judge(series: MeasuredSeries, said: SeriesChange, coverage: Coverage, matters: float) -> SignoffSeries:
    outline = series.outline
    facts = (series.key, series.name, series.experiment, outline.metric, outline.unit, outline.direction)
    made = SignoffSeries(*facts, outline.labels, SignoffState.UNCLEAR, doubt=SignoffDoubt.NOT_MEASURED)
    if said.doubt is SignoffDoubt.NOT_MEASURED:
        return _judge_alone(series, made, coverage)
    effect, low, high = (None if log is None else math.expm1(log) for log in (said.log, said.low, said.high))
    state, doubt = _find_state(series, said, matters)
    return replace(
        made, state=state, evidence=said.evidence, effect=_find_effect(said, effect), low=low, high=high,
        before=said.before, after=said.after, odds=said.odds, pairs=said.pairs, nights=said.nights,
        visible=said.visible, doubt=doubt,
    )  # fmt: skip


def _judge_alone(series: MeasuredSeries, made: SignoffSeries, coverage: Coverage) -> SignoffSeries:
    """A series that is not known of both: it cannot be said, or it is new or lost where its experiment had both."""
    a, b = coverage.pair.a, coverage.pair.b
    if series.experiment in coverage.own[a] & coverage.own[b]:
        if not series.knows(b):
            return replace(made, state=SignoffState.LOST, doubt=None, lacks="B")
        if not series.knows(a):
            return replace(made, state=SignoffState.NEW, doubt=None, lacks="A")
    if series.experiment not in coverage.measured[a] or not series.list_values(a):
        return replace(made, lacks="A")
    return replace(made, lacks="B")


def _find_effect(said: SeriesChange, effect: float | None) -> float | None:
    """Of exact numbers as well, where there is one."""
    if said.before is None or said.after is None:
        return effect
    return said.after / said.before - 1 if said.before else None


def _find_state(series: MeasuredSeries, said: SeriesChange, matters: float) -> tuple[SignoffState, SignoffDoubt | None]:
    if said.doubt is not None:
        return SignoffState.UNCLEAR, said.doubt
    if said.before is not None and said.after is not None:
        worse = judge_exact_change(series.outline, said.before, said.after)
        return (_name_change(worse) if said.is_real else SignoffState.SAME), None
    if said.is_real and said.effect is not None:
        return _name_change(is_worse(said.effect, series.outline.direction)), None
    if _may_matter(series, said, matters):
        measured = _leave_luck_out(said)
        is_luck = measured is not None and not _may_matter(series, measured, matters)
        return SignoffState.UNCLEAR, SignoffDoubt.LUCK if is_luck else SignoffDoubt.WIDE
    return SignoffState.SAME, None


def _leave_luck_out(said: SeriesChange) -> SeriesChange | None:
    """What would be said if builds did not differ by luck; None where that is not known."""
    if said.log is None or said.measured is None:
        return None
    return replace(said, low=said.log - said.measured, high=said.log + said.measured)


def _may_matter(series: MeasuredSeries, said: SeriesChange, matters: float) -> bool:
    """Whether a change for the worse (of a number without a better way, any) that matters is not excluded."""
    if said.visible is not None:
        return said.visible > matters
    if said.low is None or said.high is None:
        return True
    ends = [math.expm1(end) for end in (said.low, said.high)]
    worse = [end for end in ends if is_worse(end, series.outline.direction) is not False]
    return any(abs(end) >= matters for end in worse)


def _name_change(worse: bool | None) -> SignoffState:  # noqa: FBT001 - what `is_worse` says
    if worse is None:
        return SignoffState.CHANGED
    return SignoffState.WORSE if worse else SignoffState.BETTER


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
