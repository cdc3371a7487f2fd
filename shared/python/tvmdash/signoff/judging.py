"""Every series from A to B: which evidence counts, what of it is real, and what cannot be said."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tvmdash.incidents.annotations import RETIRED, Annotation
from tvmdash.judge import two
from tvmdash.records.metrics import Direction, is_worse, judge_exact_change
from tvmdash.signoff.between import ToldBetween
from tvmdash.signoff.measured import Both, MeasuredSeries, TwoTvms
from tvmdash.signoff.ratios import SeriesChange, compare_ratios
from tvmdash.signoff.sources import Sources
from tvmdash.trials.signoff import SignoffDoubt, SignoffEvidence, SignoffSeries, SignoffState
from tvmdash.verdict import Controls


def judge_series(
    found: Sources, series: Sequence[MeasuredSeries], both: TwoTvms, told: ToldBetween, matters: float
) -> list[SignoffSeries]:
    """Each series of a TVM that was measured with A or B and is not retired.

    matters: a change for the worse that must be excluded, as a fraction.
    """
    named = Controls.of(found.home)
    known = [
        each for each in series
        if each.tvms & {both.a, both.b} and not named.has(each.experiment, each.key)
        and not _is_retired(each, found.tvms.annotations)
    ]  # fmt: skip
    judging = _Judging(both, told, matters, known)
    return [judging.judge(each) for each in known]


def _is_retired(series: MeasuredSeries, annotations: Iterable[Annotation]) -> bool:
    """Return True where its last annotation retires it."""
    said = [each.series for each in annotations if each.series and each.covers(series.experiment, series.name)]
    return said[-1:] == [RETIRED]


class _Judging:
    """Says of each series what the strongest evidence says that there is."""

    def __init__(self, both: TwoTvms, told: ToldBetween, matters: float, series: Sequence[MeasuredSeries]) -> None:
        self.both, self.told, self.matters = both, told, matters
        self.changes = compare_rounds(series) | compare_ratios(series, both)
        self.of_a = {each.experiment for each in series if both.a in each.tvms}
        self.of_both = {each.experiment for each in series if each.list_values(both.a)} & {
            each.experiment for each in series if each.list_values(both.b)
        }

    def judge(self, series: MeasuredSeries) -> SignoffSeries:
        """The series with its state."""
        outline = series.outline
        facts = (series.key, series.name, series.experiment, outline.metric, outline.unit, outline.direction)
        made = SignoffSeries(*facts, outline.labels, SignoffState.UNCLEAR)
        exact = find_exact(series, self.both) if series.may_be_exact else None
        if isinstance(exact, SignoffDoubt):
            return replace(made, doubt=exact)
        if exact is not None:
            return _judge_exact(series, made, exact)
        change = self.changes.get(series.key)
        return self._settle(made, change) if change else self._ask_nights(series, made)

    def _settle(self, made: SignoffSeries, change: SeriesChange) -> SignoffSeries:
        found = change.difference
        made = replace(
            made, evidence=change.evidence, effect=found.effect, low=found.low, high=found.high,
            odds=found.odds or None, pairs=change.pairs, nights=change.nights,
        )  # fmt: skip
        if found.is_told:
            return replace(made, state=_name_change(is_worse(found.effect, made.direction)))
        if not self._may_matter(made.direction, found.low, found.high):
            return replace(made, state=SignoffState.SAME)
        is_luck = math.isfinite(found.within) and not self._may_matter(
            made.direction, (1 + found.effect) / (1 + found.within) - 1, (1 + found.effect) * (1 + found.within) - 1
        )
        return replace(made, doubt=SignoffDoubt.LUCK if is_luck else SignoffDoubt.WIDE)

    def _may_matter(self, direction: Direction, low: float | None, high: float | None) -> bool:
        """Return True unless a change for the worse (without a better way, any) that matters is excluded."""
        if low is None or high is None:
            return True
        return any(abs(end) >= self.matters and is_worse(end, direction) is not False for end in (low, high))

    def _ask_nights(self, series: MeasuredSeries, made: SignoffSeries) -> SignoffSeries:
        """Judge a series that no pairs join by the nights, where they measured both with its same own code."""
        old, new = ({value.fingerprint for value in series.list_values(tvm)} for tvm in (self.both.a, self.both.b))
        if not old or not new:
            return self._judge_alone(series, made)
        if not old & new:
            return replace(made, doubt=SignoffDoubt.OWN_CODE)
        if (moved := self.told.sum_moved(series.key)) is not None:
            return self._settle(made, SeriesChange(SignoffEvidence.LEDGER, moved))
        visible = self.told.visible.get(series.key)
        if visible is None:
            return replace(made, doubt=SignoffDoubt.NOT_JOINED)
        made = replace(made, evidence=SignoffEvidence.LEDGER, visible=visible)
        if visible > self.matters:
            return replace(made, doubt=SignoffDoubt.WIDE)
        return replace(made, state=SignoffState.SAME)

    def _judge_alone(self, series: MeasuredSeries, made: SignoffSeries) -> SignoffSeries:
        """A series that is not known of both: it is new or lost where its experiment had both, else nobody knows."""
        if series.experiment in self.of_both and self.both.b not in series.tvms:
            return replace(made, state=SignoffState.LOST, lacks="B")
        if series.experiment in self.of_both and self.both.a not in series.tvms:
            return replace(made, state=SignoffState.NEW, lacks="A")
        lacks_a = series.experiment not in self.of_a or not series.list_values(self.both.a)
        return replace(made, doubt=SignoffDoubt.NOT_MEASURED, lacks="A" if lacks_a else "B")


def _name_change(worse: bool | None) -> SignoffState:  # noqa: FBT001 - what `is_worse` says
    if worse is None:
        return SignoffState.CHANGED
    return SignoffState.WORSE if worse else SignoffState.BETTER


def compare_rounds(series: Sequence[MeasuredSeries]) -> dict[str, SeriesChange]:
    """By key, what whole runs of the two found, all series at once."""
    measured = {}
    for each in series:
        values = {str(at): values for at, values in enumerate(each.rounds)}
        rounds = two.RoundSeries.of(each.experiment, values, each.outline.direction)
        if rounds is not None:
            measured[each.key] = rounds
    return {
        key: SeriesChange(SignoffEvidence.COMPARED, difference, nights=len(measured[key].rounds))
        for key, difference in two.compare_rounds(measured).items()
    }


def find_exact(series: MeasuredSeries, both: TwoTvms) -> Both | SignoffDoubt | None:
    """Its value on A and on B, or why that says nothing; None where it is not known of both, or varies.

    The same night's, where one was measured beside the other: by the same code. Else those of nights of the same code.
    """
    old, new = series.list_values(both.a), series.list_values(both.b)
    if series.at_once is not None or not old or not new:
        return series.at_once
    codes = {value.fingerprint for value in old} & {value.fingerprint for value in new}
    before, after = ({value.value for value in each if value.fingerprint in codes} for each in (old, new))
    if len(before) == len(after) == 1:
        return before.pop(), after.pop()
    every = {value.value for value in (*old, *new)}
    if codes:
        return None
    return (old[0].value, new[0].value) if len(every) == 1 else SignoffDoubt.OWN_CODE


def _judge_exact(series: MeasuredSeries, made: SignoffSeries, exact: Both) -> SignoffSeries:
    before, after = exact
    worse = judge_exact_change(series.outline, before, after)
    return replace(
        made, state=SignoffState.SAME if before == after else _name_change(worse), evidence=SignoffEvidence.EXACT,
        before=before, after=after, effect=after / before - 1 if before else None,
    )  # fmt: skip
