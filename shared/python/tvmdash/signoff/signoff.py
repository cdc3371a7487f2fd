"""From a home and two names to what changed between the two, what is open and what is waived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tvmdash.contracts.signoff import (
    Signoff,
    SignoffBisection,
    SignoffIncident,
    SignoffSeries,
    SignoffState,
    SignoffTvm,
)
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident
from tvmdash.records.metrics import RATIOS
from tvmdash.signoff import waivers
from tvmdash.signoff.attribution import Attribution, find_log
from tvmdash.signoff.between import ToldBetween, read_told
from tvmdash.signoff.commands import list_commands
from tvmdash.signoff.judging import TwoTvms, judge_series
from tvmdash.signoff.measured import MeasuredSeries, read_series
from tvmdash.signoff.sources import Sources, read_sources
from tvmdash.signoff.tvms import HomeTvm

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
    having = {each.experiment for each in series if each.ratios}
    return frozenset(
        each.key for each in series if each.experiment in having and each.outline.metric in RATIOS.values()
    )
