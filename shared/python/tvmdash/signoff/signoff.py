"""Sign-off of one TVM against another: every series judged, what is open and what is waived."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.incidents.annotations import RETIRED, Annotation
from tvmdash.judge import two
from tvmdash.records.metrics import Direction, is_worse, judge_exact_change
from tvmdash.signoff import waivers
from tvmdash.signoff.between import ToldBetween, read_told
from tvmdash.signoff.measured import Both, MeasuredSeries, TwoTvms, read_series
from tvmdash.signoff.ratios import SeriesChange, compare_ratios
from tvmdash.signoff.sources import Sources, read_sources
from tvmdash.signoff.tvms import HomeTvm, HomeTvms
from tvmdash.trials.signoff import Signoff, SignoffDoubt, SignoffEvidence, SignoffSeries, SignoffState, SignoffTvm
from tvmdash.trials.trial import Trial, TrialChange, TrialKind, TrialNumber, TrialSeries, TrialState, TrialTvm
from tvmdash.verdict import TELL, Controls


def sign_off(home: Home, names: tuple[str, str], *, matters: float) -> Signoff:
    """Every change from the first TVM to the second; matters: a change for the worse that must be excluded.

    DashboardError where the home knows one of them not, or both are the same.
    """
    found = read_sources(home)
    a, b = (found.tvms.find(name, home.root) for name in names)
    if a.id == b.id:
        raise DashboardError(f"{names[0]} and {names[1]} are the same TVM, {a.id}. Give two different TVMs.")
    both = TwoTvms(a.id, b.id)
    measured, told = read_series(found, both), read_told(found, a, b)
    of_key = {each.key: each for each in measured}
    judged = judge_series(found, measured, both, told, matters)
    series = [_add_known(item, of_key[item.id], told, found, b) for item in judged]
    events, faults = waivers.read(home)
    done = Signoff(
        _describe(a, names[0]),
        _describe(b, names[1]),
        matters,
        waivers.apply_waivers(series, waivers.list_standing(events, a.id)),
        tuple(told.list_incidents(series)),
        tuple(told.list_bisections(series)),
        tuple(event for event in events if event.waiver.base == a.id),
        tuple(dict.fromkeys((*found.faults, *faults))),
    )
    return replace(done, commands=tuple(list_commands(home, done, found.tvms, measured)))


def make_trial(done: Signoff) -> Trial:
    """Make a trial as commands that measure leave it: each series with its change, or with its two exact numbers."""
    a, b = (TrialTvm(tvm.asked, next(iter(tvm.artifacts), ""), tvm.version, tvm.commit) for tvm in (done.a, done.b))
    series, numbers = [], []
    for item in done.series:
        facts = (item.id, item.experiment, item.metric, item.labels)
        if item.before is not None and item.after is not None:
            both = (item.before, item.after)
            numbers.append(TrialNumber(*facts, *both, item.unit, item.direction, name=item.name))
            continue
        change = None
        if item.effect is not None and item.low is not None and item.high is not None:
            within, visible = (1 + item.high) / (1 + item.effect) - 1, item.visible or 0.0
            change = TrialChange(item.effect, item.low, item.high, within, visible, item.pairs, item.has_moved)
        series.append(TrialSeries(*facts, item.direction, name=item.name, change=change, unit=item.unit))
    return Trial(
        "", TrialState.DONE, b, a, 0.0, "", {}, series=tuple(series), numbers=tuple(numbers), kind=TrialKind.SIGNOFF,
        signoff=done,
    )  # fmt: skip


def _describe(tvm: HomeTvm, asked: str) -> SignoffTvm:
    facts = (tvm.id, tvm.version, tvm.commit, tvm.spec, tvm.artifacts)
    return SignoffTvm(asked, *facts, own=len(tvm.own), beside=len(tvm.beside))


def _add_known(
    item: SignoffSeries, measured: MeasuredSeries, told: ToldBetween, found: Sources, b: HomeTvm
) -> SignoffSeries:
    """The series with its incident; one that is lost, with why it could not be measured."""
    if item.has_moved:
        incident = told.find_incident(item, measured)
        return replace(item, incident=incident.id if incident else None)
    if item.state is SignoffState.LOST:
        return replace(item, error=_find_error(found, item, b))
    return item


def _find_error(found: Sources, item: SignoffSeries, b: HomeTvm) -> str:
    """Find why the point failed on the last night that measured B."""
    nights = [each for each in found.experiments if each.name == item.experiment]
    stamp = max((stamp for each in nights for stamp in each.versions if stamp in b.own), default="")
    failures = found.read_data(item.experiment, stamp).failures if stamp else ()
    return next((each.error for each in failures if each.workload == item.labels.get("workload")), "")


_MOST_BISECTIONS = 3


def list_commands(home: Home, done: Signoff, tvms: HomeTvms, measured: Sequence[MeasuredSeries]) -> Iterator[str]:
    """Yield the commands to run next: `try` and `compare` for doubts, `bisect` for open regressions.

    A series can be measured in turn where others of its kind have pairs; `compare` measures the others.
    """
    having = {(each.experiment, each.outline.metric) for each in measured if each.pairs}
    unclear = [item for item in done.series if item.state is SignoffState.UNCLEAR and item.is_open]
    lucky = [item for item in unclear if item.doubt is SignoffDoubt.LUCK]
    unclear = [item for item in unclear if item not in lucky]
    in_turn = [item for item in unclear if (item.experiment, item.metric) in having]
    if in_turn or not done.series:
        yield _format(home, "try", done.b.spec, "--against", done.a.spec, *_format_experiments(in_turn))
    others = [item for item in unclear if item not in in_turn]
    if others:
        yield _format(home, "compare", done.a.spec, done.b.spec, *_format_experiments(others))
    yield from _list_bisections(home, done, tvms, lucky)


def _list_bisections(home: Home, done: Signoff, tvms: HomeTvms, lucky: Sequence[SignoffSeries]) -> Iterator[str]:
    """Yield one for the largest in each incident, and in each experiment without one; lucky: maybe worse by luck."""
    worse = [item for item in done.series if item.state is SignoffState.WORSE and item.is_open]
    worse += [
        item for item in lucky if abs(item.effect or 0.0) >= TELL and is_worse(item.effect or 0.0, item.direction)
    ]
    answered = {found.series for found in done.bisections}
    first: dict[str, SignoffSeries] = {}
    for item in sorted(worse, key=lambda item: -abs(item.effect or 0.0)):
        if item.id not in answered and item.before is None:
            first.setdefault(item.incident or item.experiment, item)
    for item in list(first.values())[:_MOST_BISECTIONS]:
        good, bad = _find_range(done, item, tvms)
        if good.partition(":")[0] == bad.partition(":")[0]:
            incident = ["--incident", item.incident] if item.incident else []
            yield _format(home, "bisect", item.experiment, item.id, "--good", good, "--bad", bad, *incident)


def _find_range(done: Signoff, item: SignoffSeries, tvms: HomeTvms) -> tuple[str, str]:
    """The TVMs that its incident lies between, as commands take them, else A and B."""
    versions = next((each.versions for each in done.incidents if each.id == item.incident), ())
    known = [tvms.tvms[name].spec for version in versions if (name := tvms.find_id(version))]
    return (known[0], known[1]) if len(known) == 2 else (done.a.spec, done.b.spec)


def _format_experiments(series: Iterable[SignoffSeries]) -> list[str]:
    names = sorted({experiment_of(item.experiment) for item in series})
    return ["--experiments", *names] if names else []


def _format(home: Home, verb: str, *words: str) -> str:
    return f"python3 -m dashboard {verb} {shlex.join([str(home.root), *words])}"


def judge_series(
    found: Sources, series: Sequence[MeasuredSeries], both: TwoTvms, told: ToldBetween, matters: float
) -> list[SignoffSeries]:
    """Judge each series of a TVM that was measured with A or B and is not retired.

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
        """Judge a series not known of both: new or lost where its experiment had both, else nobody knows."""
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
    """Compare whole runs of the two, all series at once, by key."""
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
    """Find its value on A and on B, or why that says nothing; None where it is not known of both, or varies.

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
