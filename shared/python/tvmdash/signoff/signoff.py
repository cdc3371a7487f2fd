"""From a home and two names to what changed between the two, what is open and what is waived."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.records.metrics import is_worse
from tvmdash.signoff import waivers
from tvmdash.signoff.between import ToldBetween, read_told
from tvmdash.signoff.judging import TwoTvms, judge_series
from tvmdash.signoff.measured import MeasuredSeries, read_series
from tvmdash.signoff.ratios import compare_ratios
from tvmdash.signoff.sources import Sources, read_sources
from tvmdash.signoff.tvms import HomeTvm, HomeTvms
from tvmdash.trials.signoff import (
    Signoff,
    SignoffBisection,
    SignoffDoubt,
    SignoffIncident,
    SignoffSeries,
    SignoffState,
    SignoffTvm,
)
from tvmdash.trials.trial import Trial, TrialChange, TrialKind, TrialNumber, TrialSeries, TrialState, TrialTvm
from tvmdash.verdict import TELL

_MOVED = frozenset({SignoffState.WORSE, SignoffState.BETTER, SignoffState.CHANGED})


def sign_off(home: Home, names: tuple[str, str], *, matters: float) -> Signoff:
    """Every change from the first TVM to the second; matters: a change for the worse that must be excluded.

    DashboardError where the home knows one of them not, or both are the same.
    """
    found = read_sources(home)
    a, b = (found.tvms.find(name, home.root) for name in names)
    if a.id == b.id:
        raise DashboardError(f"{names[0]} and {names[1]} are the same TVM, {a.id}. Give two different TVMs.")
    measured = read_series(found, a.id, b.id)
    told = read_told(found, a, b)
    judged = judge_series(found, measured, TwoTvms(a.id, b.id), told, matters)
    attribution = Attribution(told, found.tvms, a, {each.key: each for each in measured})
    series = [_add_known(item, attribution, found, b) for item in judged]
    events, faults = waivers.read(home)
    standing = waivers.list_standing(events, a.id)
    done = Signoff(
        _describe(a, names[0]),
        _describe(b, names[1]),
        matters,
        waivers.apply_waivers(series, standing),
        tuple(_list_incidents(series, told)),
        tuple(_list_bisections(series, told)),
        tuple(event for event in events if event.waiver.base == a.id),
        tuple(dict.fromkeys((*found.faults, *faults))),
    )
    return replace(done, commands=tuple(list_commands(home, done, found.tvms, _list_pairable(measured))))


def make_trial(done: Signoff) -> Trial:
    """As commands that measure leave it: each series with its change, or with its two exact numbers."""
    a, b = (TrialTvm(tvm.asked, next(iter(tvm.artifacts), ""), tvm.version, tvm.commit) for tvm in (done.a, done.b))
    return Trial(
        "", TrialState.DONE, b, a, 0.0, "", {},
        series=tuple(_make_series(item) for item in done.series if item.before is None or item.after is None),
        numbers=tuple(_list_numbers(done.series)), kind=TrialKind.SIGNOFF, signoff=done,
    )  # fmt: skip


def _list_numbers(series: Iterable[SignoffSeries]) -> Iterator[TrialNumber]:
    for item in series:
        if item.before is not None and item.after is not None:
            yield TrialNumber(
                item.id, item.experiment, item.metric, item.labels, item.before, item.after, item.unit, item.direction,
                name=item.name,
            )  # fmt: skip


def _make_series(item: SignoffSeries) -> TrialSeries:
    change, is_real = None, item.state in _MOVED
    if item.effect is not None and item.low is not None and item.high is not None:
        within = (1 + item.high) / (1 + item.effect) - 1
        change = TrialChange(item.effect, item.low, item.high, within, item.visible or 0.0, item.pairs, is_real)
    return TrialSeries(
        item.id, item.experiment, item.metric, item.labels, item.direction, name=item.name, change=change,
        unit=item.unit,
    )  # fmt: skip


def _describe(tvm: HomeTvm, asked: str) -> SignoffTvm:
    facts = (tvm.id, tvm.version, tvm.commit, tvm.spec, tvm.artifacts)
    return SignoffTvm(asked, *facts, own=len(tvm.own), beside=len(tvm.beside))


def _add_known(item: SignoffSeries, attribution: Attribution, found: Sources, b: HomeTvm) -> SignoffSeries:
    """The series with its incident; one that is lost, with why it could not be measured."""
    if item.state in _MOVED:
        incident = attribution.find_incident(item)
        return replace(item, incident=incident.id if incident else None)
    if item.state is SignoffState.LOST:
        return replace(item, error=_find_error(found, item, b))
    return item


def _find_error(found: Sources, item: SignoffSeries, b: HomeTvm) -> str:
    """Why the point failed on the last night that measured B."""
    nights = [each for each in found.experiments if each.name == item.experiment]
    stamps = [stamp for each in nights for stamp in each.versions if stamp in set(b.own)]
    if not stamps:
        return ""
    failures = found.read_data(item.experiment, max(stamps)).failures
    return next((each.error for each in failures if each.workload == item.labels.get("workload")), "")


def _list_incidents(series: Iterable[SignoffSeries], told: ToldBetween) -> Iterator[SignoffIncident]:
    wanted = {item.incident for item in series}
    known: dict[str, Incident] = {incident.id: incident for moved in told.moved.values() for incident, _ in moved}
    for name, incident in known.items():
        if name in wanted:
            last = incident.changes[-1]
            yield SignoffIncident(name, incident.versions, incident.state, last.who, last.words)


def _list_bisections(series: Iterable[SignoffSeries], told: ToldBetween) -> Iterator[SignoffBisection]:
    for item in series:
        if item.state in _MOVED:
            of_series = (incident for incident, _ in told.moved.get(item.id, ()) if incident.id == item.incident)
            found = told.find_bisection(item.id, next(of_series, None), find_log(item))
            if found is not None:
                yield found


def _list_pairable(series: Sequence[MeasuredSeries]) -> frozenset[str]:
    """The keys of the series that can be measured in turn: pairs were measured of others of their kind."""
    having = {(each.experiment, each.outline.metric) for each in series if each.ratios}
    return frozenset(each.key for each in series if (each.experiment, each.outline.metric) in having)


_ON_THE_OTHER_SIDE = 0.5
"""A is past a step where it lies farther from the last good TVM than this share of the step."""


@dataclass(frozen=True)
class Attribution:
    """What is needed to find it. series: by key."""

    told: ToldBetween
    tvms: HomeTvms
    a: HomeTvm
    series: Mapping[str, MeasuredSeries]

    def find_incident(self, item: SignoffSeries) -> Incident | None:
        """The last incident in which the series moved that way, between A and B."""
        log = find_log(item)
        for incident, moved in reversed(self.told.moved.get(item.id, ())):
            if moved.effect * log > 0 and (self.told.window.is_whole or self._comes_after_a(item.id, incident, moved)):
                return incident
        return None

    def _comes_after_a(self, key: str, incident: Incident, moved: Moved) -> bool:
        """Whether A, never the home's own TVM, is as the last good one was; else whether it was known before."""
        good = self.tvms.find_id(incident.versions[0])
        if good == self.a.id:
            return True
        known = compare_ratios([self.series[key]], good, self.a.id).get(key) if good else None
        if known is None or known.log is None or not moved.relative:
            return incident.begin >= min(self.a.beside, default="~")
        return known.log / math.log1p(moved.effect) < _ON_THE_OTHER_SIDE


def find_log(item: SignoffSeries) -> float:
    """Which way a series moved."""
    if item.before is not None and item.after is not None:
        return item.after - item.before
    return math.log1p(item.effect or 0.0)


_MOST_BISECTIONS = 3


def list_commands(home: Home, done: Signoff, tvms: HomeTvms, pairable: Collection[str]) -> Iterator[str]:
    """What to call: `try` and `compare` for what cannot be said, `bisect` for regressions that are open.

    pairable: the keys of the series that can be measured in turn; `compare` measures the others.
    """
    unclear = [item for item in done.series if item.state is SignoffState.UNCLEAR and _is_open(item)]
    lucky = [item for item in unclear if item.doubt is SignoffDoubt.LUCK]
    unclear = [item for item in unclear if item not in lucky]
    in_turn = [item for item in unclear if item.id in pairable]
    ends = [done.b.spec, "--against", done.a.spec]
    if in_turn or not done.series:
        yield _format(home, "try", *ends, *_format_experiments(in_turn))
    others = [item for item in unclear if item.id not in pairable]
    if others:
        yield _format(home, "compare", done.a.spec, done.b.spec, *_format_experiments(others))
    answered = {found.series for found in done.bisections}
    worse = [item for item in done.series if item.state is SignoffState.WORSE and _is_open(item)]
    worse += [
        item for item in lucky if abs(item.effect or 0.0) >= TELL and is_worse(item.effect or 0.0, item.direction)
    ]
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
    incident = next((each for each in done.incidents if each.id == item.incident), None)
    ids = [tvms.find_id(version) for version in incident.versions] if incident is not None else []
    known = [tvms.tvms[name].spec for name in ids if name]
    return (known[0], known[1]) if len(known) == 2 else (done.a.spec, done.b.spec)


def _is_open(item: SignoffSeries) -> bool:
    return item.is_in_the_way and item.waiver is None


def _format_experiments(series: Sequence[SignoffSeries]) -> list[str]:
    names = sorted({experiment_of(item.experiment) for item in series})
    return ["--experiments", *names] if names else []


def _format(home: Home, verb: str, *words: str) -> str:
    return f"python3 -m dashboard {verb} {shlex.join([str(home.root), *words])}"
