"""The machines of a home: points by machines, and a page for each machine."""

from __future__ import annotations

import contextlib
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from files.incremental import IncrementalSite, fingerprint, mark
from render import page as pages
from views.context import HOSTS, SiteContext
from views.hosts import Machine, list_machines
from views.matrix import make_matrix
from views.series import SUSPECT, SeriesView

from pages.machines import Fact, format_facts
from tvmdash.dashboard_info import Home, host_of
from tvmdash.errors import DashboardError
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import Incident
from tvmdash.machine import identity
from tvmdash.records.metrics import WAYS
from tvmdash.series import naming
from tvmdash.text import format_list

PAGE = "hosts.html"
FOLDER = "hosts"
MOST_SERIES, MOST_INCIDENTS = 50, 20
_GRADES = "ABCD"


@dataclass(frozen=True)
class HostView:
    """The content of a machine's page beside its nights."""

    moved: tuple[SeriesView, ...]
    more_moved: int
    controls: tuple[SeriesView, ...]
    named_controls: tuple[str, ...]
    series: int
    noise: str
    incidents: tuple[tuple[str, str, str], ...]
    judged: bool
    measured: bool
    query: str
    handed_in: int
    clock: str


def write_hosts(context: SiteContext, carrier: IncrementalSite) -> None:
    """Have hosts.html and the page of each machine; nothing where only one machine ever measured.

    Those of which nothing has changed are carried over.
    """
    machines = list_machines(context)
    if not machines:
        return
    carrier.folder(FOLDER)
    _write_matrix(context, machines, carrier)
    series: dict[str, list[SeriesView]] = {machine.host: [] for machine in machines}
    for view in context.series:
        series[host_of(view.experiment)].append(view)
    names: dict[str, list[str]] = {machine.host: [] for machine in machines}
    for name in context.home.experiments_with_data():
        names[host_of(name)].append(name)
    told = _group_incidents(context, machines)
    for machine in machines:
        shown = _make_view(context, machine, series[machine.host], told[machine.host])
        _write_machine(context, machine, shown, names[machine.host], carrier)


def _write_matrix(context: SiteContext, machines: Sequence[Machine], carrier: IncrementalSite) -> None:
    matrix, stamp = make_matrix(context, machines), context.tonight.stamp
    headline = context.verdict.value.headline if context.verdict.value else ""
    made_of = fingerprint(stamp, headline, repr(matrix), str(context.max_age_hours))
    if not carrier.carry(PAGE, made_of):
        text = pages.render(
            "machines/hosts.html",
            context.frame(HOSTS),
            matrix=matrix,
            stamp=stamp,
            headline=headline,
            judged=_is_judged(context),
        )
        carrier.write(PAGE, text.encode(), made_of)


def _is_judged(context: SiteContext) -> bool:
    return context.alerts.night == context.tonight.stamp


def _write_machine(
    context: SiteContext, machine: Machine, view: HostView, names: Sequence[str], carrier: IncrementalSite
) -> None:
    newest = max((stamps[-1] for stamps in map(context.home.data_stamps, names) if stamps), default="")
    data = [mark(context.home.data_file(name, newest)) for name in names] if newest else []
    frame = context.lasting_frame(HOSTS, "../")
    known_as = mark(_machine_file(context.home, machine))
    made_of = fingerprint(repr(machine), repr(view), newest, *data, known_as)
    if carrier.carry(machine.page, made_of):
        return
    facts = context.read_machine(names).get(newest)
    text = pages.render(
        "machines/host.html",
        frame,
        machine=machine,
        view=view,
        about=list(_describe(context.home, machine, view)),
        facts=list(format_facts(facts)) if facts else [],
        facts_stamp=newest,
    )
    carrier.write(machine.page, text.encode(), made_of)


def _machine_file(home: Home, machine: Machine) -> Path:
    return home.hosts / machine.host / identity.FILE if machine.host else home.machine_file


def _describe(home: Home, machine: Machine, view: HostView) -> Iterator[Fact]:
    known = None
    with contextlib.suppress(DashboardError):
        known = identity.read(_machine_file(home, machine))
    hw_model = machine.hw_model or (known.hw_model if known else "")
    yield from (Fact(name, words) for name, words in (("Processor", hw_model), ("Node", machine.node)) if words)
    if known:
        yield Fact("Known since", f"{known.since[:4]}-{known.since[4:6]}-{known.since[6:8]}")
    if machine.host:
        yield Fact("Clock", view.clock or "not known")
        yield Fact("Nights handed in", str(view.handed_in))
    yield Fact("Availability", machine.availability or "It did not run on the nights below.")
    yield Fact("Noise", view.noise)


def _make_view(
    context: SiteContext, machine: Machine, series: Sequence[SeriesView], incidents: Sequence[Incident]
) -> HostView:
    moved = [view for view in series if view.state in (*WAYS, SUSPECT)]
    handed_in = list((context.home.hosts / machine.host / "nights").glob("*.json")) if machine.host else []
    name = f'"{machine.name}"' if any(sign.isspace() for sign in machine.name) else machine.name
    return HostView(
        moved=tuple(moved[:MOST_SERIES]),
        more_moved=max(0, len(moved) - MOST_SERIES),
        controls=tuple(view for view in series if _is_control(context, view))[:MOST_SERIES],
        named_controls=tuple(sorted(context.controls.names)),
        series=len(series),
        noise=_describe_noise(series),
        incidents=tuple((incident.begin, incident.id, format_headline(incident)) for incident in incidents),
        judged=_is_judged(context),
        measured=any(view.last_stamp == context.tonight.stamp for view in series),
        query=f"env_name={name}",
        handed_in=len(handed_in),
        clock=next((night.clock for night in machine.nights if night.clock), ""),
    )


def _is_control(context: SiteContext, view: SeriesView) -> bool:
    verdict = context.alerts.series.get(view.id)
    return verdict.control if verdict is not None else context.controls.has(view.experiment, view.id)


def _describe_noise(series: Sequence[SeriesView]) -> str:
    """Count its series by grade; give the scatter of the one in the middle."""
    grades = Counter(view.grade for view in series)
    known = [f"{grades[grade]} {grade}" for grade in _GRADES if grades[grade]]
    noises = [view.noise for view in series if view.noise is not None]
    if not known:
        return "no series has a grade yet"
    middle = f"; half of them scatter by no more than {100 * statistics.median(noises):.2g} %" if noises else ""
    total = sum(grades[grade] for grade in _GRADES)
    return f"of {total} series: {format_list(known, len(_GRADES))}{middle}"


def _group_incidents(context: SiteContext, machines: Sequence[Machine]) -> dict[str, list[Incident]]:
    """Group by host what moved on it in the nights shown, the newest first; MOST_INCIDENTS of each."""
    machine, first = context.home.machine(), context.shown_stamps[0]
    hosts = {view.id: host_of(view.experiment) for view in context.series}
    fleets: dict[str, set[str]] = {}
    for view in context.series:
        fleets.setdefault(naming.fleet(view, machine), set()).add(host_of(view.experiment))
    grouped: dict[str, list[Incident]] = {machine.host: [] for machine in machines}
    for incident in (incident for incident in context.alerts.incidents if incident.begin >= first):
        touched = {hosts[part.series] for part in incident.moved if part.series in hosts}
        for host in touched if incident.moved else fleets.get(incident.fleet, ()):
            if len(grouped[host]) < MOST_INCIDENTS:
                grouped[host].append(incident)
    return grouped
