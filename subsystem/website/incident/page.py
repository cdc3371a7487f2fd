"""incidents/ID.html: a page for each incident."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from files.incremental import IncrementalSite, fingerprint
from markupsafe import Markup
from render import page as pages
from render.formats import anchor
from views import incidents as incident_views
from views.code_links import find_code_pages
from views.context import SiteContext
from views.night import format_day

from incident import icicle
from incident.courses import Courses, experiment_of, rank_moves, read_courses, shown_stamps
from incident.differences import Difference, Night, compare_records, read_night
from tvmdash import common
from tvmdash.contracts.routes import read_states
from tvmdash.http_util import is_link
from tvmdash.incidents.ledger import Incident
from tvmdash.incidents.text import format_bisection
from tvmdash.series import naming

FOLDER = "incidents"
_MOST_DIFFERENCES = 4
_MOST_EXPLORED = 50
"""As many series fit on the explorer's chart."""


@dataclass(frozen=True)
class Trace:
    """A trace that can be opened: of which experiment and night, where."""

    experiment: str
    stamp: str
    place: str


@dataclass(frozen=True)
class DifferenceView:
    """A difference with its picture."""

    value: Difference
    picture: Markup


@dataclass(frozen=True)
class Evidence:
    """What the last good and the first bad night left. lacking: why there is no difference, a line an experiment."""

    differences: tuple[DifferenceView, ...]
    traces: tuple[Trace, ...]
    lacking: tuple[str, ...]


@dataclass(frozen=True)
class PageView:
    """All that the page shows beside the incident itself. again: what was measured again the night it was found.

    explore: the explorer's state for its series, of which that shows so many, and its nights.
    """

    courses: Courses
    picture: Markup
    evidence: Evidence
    again: tuple[str, ...]
    bisected: str
    explore: str
    explored: int
    discussions: tuple[str, ...]


def page_of(incident_id: str) -> str:
    """Where the incident's page lies in the site."""
    return f"{FOLDER}/{anchor(incident_id)}.html"


def write_incidents(context: SiteContext, carrier: IncrementalSite) -> None:
    """Have the pages of all incidents; those of which nothing is new are carried over."""
    carrier.folder(FOLDER)
    for incident in context.alerts.incidents:
        name = page_of(incident.id)
        made_from = fingerprint(*_sources(context, incident, carrier.new))
        if not carrier.carry(name, made_from):
            carrier.write(name, _render(context, incident, carrier.new).encode(), made_from)


def _sources(context: SiteContext, incident: Incident, site: Path) -> Iterator[str]:
    """What the page is made from, in texts."""
    yield common.dump_json(incident.to_json())
    yield from shown_stamps(context, incident)
    yield str(incident.id in context.alerts.silent)
    yield from _list_discussions(context, incident)
    if incident.is_open:
        yield context.tonight.stamp
    yield from (link.page for link in find_code_pages(incident, context))
    for experiment in _experiments(context, incident):
        for stamp in (incident.after, incident.begin):
            night = read_night(site, experiment, stamp)
            yield f"{experiment} {stamp} {bool(night.receipt)} {night.trace}"


def _experiments(context: SiteContext, incident: Incident) -> list[str]:
    names = (experiment_of(item, context) for item in rank_moves(incident))
    return list(dict.fromkeys(filter(None, names)))


def _render(context: SiteContext, incident: Incident, site: Path) -> str:
    courses = read_courses(context, incident)
    view = incident_views.view(incident, context, silent=incident.id in context.alerts.silent)
    text = f"{view.headline}: {len(courses.curves)} series in percent of the level before"
    page = PageView(
        courses,
        courses.draw(text),
        _gather_evidence(context, incident, site),
        tuple(_list_again(incident)),
        format_bisection(incident.bisected) if incident.bisected else "",
        _explore(context, incident),
        min(len(incident.moved), _MOST_EXPLORED),
        _list_discussions(context, incident),
    )
    return pages.render("incident.html", context.lasting_frame(FOLDER, "../"), one=view, page=page)


def _list_discussions(context: SiteContext, incident: Incident) -> tuple[str, ...]:
    found = (state.discussions.get(incident.id, "") for state in read_states(context.home))
    return tuple(address for address in found if is_link(address))


def _explore(context: SiteContext, incident: Incident) -> str:
    ids = [naming.file_name_of(item.series) for item in rank_moves(incident)][:_MOST_EXPLORED]
    state = {"series": ",".join(ids), "relative": "1"}
    nights = shown_stamps(context, incident)
    if nights:
        state |= {"from": nights[0], "to": nights[-1]}
    return urlencode(state, safe=",~")


def _list_again(incident: Incident) -> Iterator[str]:
    for item in rank_moves(incident):
        if item.again_new or item.again_old:
            yield f"{item.name}: {item.again_new} times with the new TVM, {item.again_old} times with the old one"


def _gather_evidence(context: SiteContext, incident: Incident, site: Path) -> Evidence:
    differences: list[DifferenceView] = []
    traces: list[Trace] = []
    lacking: list[str] = []
    for experiment in _experiments(context, incident):
        nights = [read_night(site, experiment, stamp) for stamp in (incident.after, incident.begin)]
        traces += [Trace(experiment, night.stamp, night.trace) for night in nights if night.trace]
        faults = [f"{experiment}, {format_day(night.stamp)}: {night.fault}" for night in nights if night.fault]
        if faults:
            lacking += faults
            continue
        found = list(_compare(context, incident, experiment, nights))
        if not found:
            lacking.append(f"{experiment}, whose operators were not profiled on both nights")
        differences += [DifferenceView(difference, icicle.draw(difference)) for difference in found]
    return Evidence(tuple(differences[:_MOST_DIFFERENCES]), tuple(traces), tuple(lacking))


def _compare(
    context: SiteContext, incident: Incident, experiment: str, nights: Sequence[Night]
) -> Iterator[Difference]:
    for item in rank_moves(incident):
        if not item.is_time or experiment_of(item, context) != experiment:
            continue
        key = naming.file_name_of(item.series)
        good, bad = (night.record_of(key, item.metric) for night in nights)
        difference = compare_records(item.name, item.metric, good, bad) if good and bad else None
        if difference is not None:
            yield difference
