"""incidents/ID.html: a page for each incident."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

from files.code_changes import file_of
from files.incremental import IncrementalSite, fingerprint
from markup.night_chart import ChartMark, Curve, NightChart
from markup.sparks import clean, svg
from markupsafe import Markup, escape
from render import page as pages
from render.page import anchor
from views import incidents as incident_views
from views.context import SiteContext
from views.incidents import experiment_of, find_code_pages, id_of_point
from views.series import match_ratios, read_levels

from incident.code import draw_difference, read_differences
from tvmdash import common
from tvmdash.common.http_util import is_link
from tvmdash.incidents.differences import (
    ComparedNight,
    DifferencePart,
    EnvironmentDifference,
    OneSidedPasses,
    compare_dependencies,
    compare_passes,
    compare_records,
    describe_why,
    read_night,
)
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.incidents.text import format_bisection
from tvmdash.notify.state import read_states
from tvmdash.series import naming, store
from tvmdash.text import format_percent, format_quantity
from tvmdash.trials.receipt import ReceiptRecord

FOLDER = "incidents"
_MOST_DIFFERENCES, _MOST_KERNELS = 4, 2
_MOST_EXPLORED = 50
"""As many series fit on the explorer's chart."""


@dataclass(frozen=True)
class IncidentTrace:
    """A trace that can be opened: of which experiment and night, where."""

    experiment: str
    stamp: str
    place: str


@dataclass(frozen=True)
class DifferenceView:
    """A difference with its picture."""

    value: EnvironmentDifference
    picture: Markup


@dataclass(frozen=True)
class IncidentEvidence:
    """The difference between the last good and the first bad night. lacking: why there is none, a line an experiment.

    passes: that ran on one side only, with the names of the series of which that is so. dependencies: of TVM, which
    differ. kernels: functions whose TIR or code differs.
    """

    differences: tuple[DifferenceView, ...]
    traces: tuple[IncidentTrace, ...]
    lacking: tuple[str, ...]
    passes: Mapping[OneSidedPasses, Sequence[str]]
    dependencies: tuple[str, ...]
    kernels: tuple[KernelSides, ...]


@dataclass(frozen=True)
class KernelSides:
    """A function on the last good night and on the first bad one: the lines of its TIR, or else of its code."""

    name: str
    before: Markup
    after: Markup


@dataclass(frozen=True)
class PageView:
    """All that the page shows beside the incident itself. again: what was measured again the night it was found.

    explore: the explorer's state for its series, of which that shows so many, and its nights.
    """

    courses: Courses
    picture: Markup
    evidence: IncidentEvidence
    again: tuple[str, ...]
    bisected: str
    why: str
    explore: str
    explored: int
    discussions: tuple[str, ...]


def page_of(incident_id: str) -> str:
    return f"{FOLDER}/{anchor(incident_id)}.html"


def write_incidents(context: SiteContext, carrier: IncrementalSite) -> None:
    """Have the pages of all incidents; those of which nothing is new are carried over."""
    carrier.folder(FOLDER)
    for incident in context.alerts.incidents:
        name = page_of(incident.id)
        made_from = fingerprint(*_sources(context, incident, carrier))
        if not carrier.carry(name, made_from):
            carrier.write(name, _render(context, incident, carrier.new).encode(), made_from)


def _sources(context: SiteContext, incident: Incident, carrier: IncrementalSite) -> Iterator[str]:
    """Yield the page's sources, as texts."""
    yield common.dump_json(incident.to_json())
    yield from shown_stamps(context, incident)
    yield str(incident.id in context.alerts.silent)
    yield from _list_discussions(context, incident)
    if incident.is_open:
        yield context.tonight.stamp
    for name in _experiments(context, incident):
        yield carrier.files.get(file_of(name, incident.begin), ("", 0))[0]
    yield from (link.page for link in find_code_pages(incident, context))
    for experiment in _experiments(context, incident):
        for stamp in (incident.after, incident.begin):
            night = read_night(carrier.new, experiment, stamp)
            yield f"{experiment} {stamp} {bool(night.receipt)} {night.trace}"


def _experiments(context: SiteContext, incident: Incident) -> list[str]:
    names = (experiment_of(item, context) for item in incident.worst_first)
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
        describe_why(site, incident),
        _explore(context, incident),
        min(len(incident.moved), _MOST_EXPLORED),
        _list_discussions(context, incident),
    )
    return pages.render("incident.html", context.lasting_frame(FOLDER, "../"), one=view, page=page)


def _list_discussions(context: SiteContext, incident: Incident) -> tuple[str, ...]:
    found = (state.discussions.get(incident.id, "") for state in read_states(context.home))
    return tuple(address for address in found if is_link(address))


def _explore(context: SiteContext, incident: Incident) -> str:
    ids = [naming.file_name_of(item.series) for item in incident.worst_first][:_MOST_EXPLORED]
    state = {"series": ",".join(ids), "relative": "1"}
    nights = shown_stamps(context, incident)
    if nights:
        state |= {"from": nights[0], "to": nights[-1]}
    return urlencode(state, safe=",~")


def _list_again(incident: Incident) -> Iterator[str]:
    for item in incident.worst_first:
        if item.again_new or item.again_old:
            yield f"{item.name}: {item.again_new} times with the new TVM, {item.again_old} times with the old one"


def _gather_evidence(context: SiteContext, incident: Incident, site: Path) -> IncidentEvidence:
    differences: list[DifferenceView] = []
    traces: list[IncidentTrace] = []
    lacking: list[str] = []
    passes: dict[OneSidedPasses, list[str]] = {}
    dependencies: list[str] = []
    for experiment in _experiments(context, incident):
        nights = [read_night(site, experiment, stamp) for stamp in (incident.after, incident.begin)]
        traces += [IncidentTrace(experiment, night.stamp, night.trace) for night in nights if night.trace]
        faults = [f"{experiment}, {common.format_day(night.stamp)}: {night.fault}" for night in nights if night.fault]
        if faults:
            lacking += faults
            continue
        dependencies += compare_dependencies(*(night.receipt for night in nights if night.receipt))
        for item, good, bad in _list_sides(context, incident, experiment, nights):
            if (one_sided := compare_passes(good, bad)) is not None:
                passes.setdefault(one_sided, []).append(item.name)
        found = list(_compare(context, incident, experiment, nights))
        if not found:
            lacking.append(f"{experiment}, whose operators were not profiled undisturbed on both nights")
        differences += [DifferenceView(difference, draw(difference)) for difference in found]
    kernels = tuple(itertools.islice(_list_kernels(context, incident, site), _MOST_KERNELS))
    dependencies = list(dict.fromkeys(dependencies))
    shown = tuple(differences[:_MOST_DIFFERENCES])
    return IncidentEvidence(shown, tuple(traces), tuple(lacking), passes, tuple(dependencies), kernels)


def _compare(
    context: SiteContext, incident: Incident, experiment: str, nights: Sequence[ComparedNight]
) -> Iterator[EnvironmentDifference]:
    for item, good, bad in _list_sides(context, incident, experiment, nights):
        difference = compare_records(item.name, item.metric, good, bad) if item.is_time else None
        if difference is not None and not (item.relative and difference.contradicts(item.effect)):
            yield difference


def _list_sides(
    context: SiteContext, incident: Incident, experiment: str, nights: Sequence[ComparedNight]
) -> Iterator[tuple[Moved, ReceiptRecord, ReceiptRecord]]:
    """List what moved of an experiment, the worst first, with its records of both nights where both have one."""
    for item in incident.worst_first:
        if experiment_of(item, context) == experiment:
            good, bad = (night.record_of(naming.file_name_of(item.series), item.metric) for night in nights)
            if good and bad:
                yield item, good, bad


def _list_kernels(context: SiteContext, incident: Incident, site: Path) -> Iterator[KernelSides]:
    """List the kernels of the points that moved, the worst first."""
    read = functools.cache(lambda name: read_differences(site / file_of(name, incident.begin)))
    for item in incident.worst_first:
        night = read(experiment_of(item, context))
        own = id_of_point(context.series_by_id.get(item.series))
        for point in night.points if night else ():
            for function in point.functions if point.id == own else ():
                difference = function.tir or function.code
                if difference is not None:
                    lines = ([line for line in difference.lines if line[:1] != sign] for sign in "+-")
                    sides = (replace(difference, lines=tuple(kept)) for kept in lines)
                    before, after = (draw_difference(side) or Markup("") for side in sides)
                    yield KernelSides(function.name, before, after)


WIDTH, _ROW = 960, 26
_LETTER = 7.0
_STRONG, _WEAK = 0.2, 0.02
"""A change beyond these is drawn in the strong colour, in the weak one."""


def draw(difference: EnvironmentDifference) -> Markup:
    """Draw the parts side by side below the whole, each as wide as its longer side; empty where nothing takes time."""
    widths = [max(part.good_ms or 0.0, part.bad_ms or 0.0) for part in difference.parts]
    total = max(sum(widths), difference.good_ms, difference.bad_ms)
    if total <= 0:
        return Markup("")
    whole = f"{format_quantity(difference.good_ms, 'ms')} → {format_quantity(difference.bad_ms, 'ms')}"
    text = f"{difference.kind} of {difference.name}: {whole}"
    boxes = [_box(0, WIDTH, 0, _kind(difference.change), f"all {difference.kind}, {whole}")]
    boxes += _parts(difference, widths, total)
    return svg("difference", (WIDTH, 2 * _ROW), str(clean(text)), boxes)


def _parts(difference: EnvironmentDifference, widths: list[float], total: float) -> Iterator[str]:
    left = 0.0
    for part, duration in zip(difference.parts, widths, strict=True):
        width = duration / total * WIDTH
        yield _box(left, width, 1, _kind(_change(part)), f"{part.name}, {format_sides(part)}")
        left += width


def _change(part: DifferencePart) -> float:
    """Return the change as a fraction; all of it where one side has none."""
    if not part.good_ms or not part.bad_ms:
        return 1.0 if part.bad_ms else -1.0
    return part.bad_ms / part.good_ms - 1


def _kind(change: float) -> str:
    strength = "strong" if abs(change) >= _STRONG else "weak" if abs(change) >= _WEAK else "none"
    return f"{'slower' if change > 0 else 'faster'} {strength}"


def format_sides(part: DifferencePart) -> str:
    """Format as in "4.10 ms → 5.60 ms, +36.6 %"."""
    if part.good_ms is None or part.bad_ms is None:
        there = part.good_ms if part.bad_ms is None else part.bad_ms
        return f"{'gone' if part.bad_ms is None else 'new'}, {format_quantity(there or 0.0, 'ms')}"
    return (
        f"{format_quantity(part.good_ms, 'ms')} → {format_quantity(part.bad_ms, 'ms')}, {format_percent(_change(part))}"
    )


def _box(left: float, width: float, row: int, kind: str, text: str) -> str:
    shown, room = text.split(",", maxsplit=1)[0], max(0, int((width - 8) / _LETTER))
    shown = shown if len(shown) <= room else f"{shown[: room - 1]}\u2026" if room > 1 else ""
    label = f'<text x="{left + 4:.1f}" y="{row * _ROW + 17}">{escape(clean(shown))}</text>' if len(shown) > 2 else ""
    return (
        f'<g class="box {kind}"><title>{escape(clean(text))}</title>'
        f'<rect x="{left:.1f}" y="{row * _ROW}" width="{max(0.5, width):.1f}" height="{_ROW - 1}"/>{label}</g>'
    )


MOST_SERIES = 6
"""As many can be told apart on one chart."""
_BEFORE, _AFTER = 30, 60
"""Nights of the chart before the incident's first one, and from it on."""


@dataclass(frozen=True)
class Courses:
    """The chart: the nights, oldest first, with the TVM of each ("" where unknown), and the series."""

    stamps: tuple[str, ...]
    versions: tuple[str, ...]
    begin: int
    curves: tuple[Curve, ...]
    more: int

    def draw(self, text: str) -> Markup:
        """Draw the chart; empty where no series has a value on any of its nights."""
        days = tuple(map(common.format_day, self.stamps))
        return NightChart(days, self.versions, self.curves, (ChartMark(self.begin, "", ""),)).draw(text)


def shown_stamps(context: SiteContext, incident: Incident) -> tuple[str, ...]:
    """Return the nights of the incident's chart."""
    before = [stamp for stamp in context.stamps if stamp < incident.begin][-_BEFORE:]
    return (*before, *[stamp for stamp in context.stamps if stamp >= incident.begin][:_AFTER])


def read_courses(context: SiteContext, incident: Incident) -> Courses:
    """Read the incident's series, those that moved farthest for the worse first."""
    stamps = shown_stamps(context, incident)
    moved = [item for item in incident.worst_first if item.relative and item.before]
    wanted = {item.series: item for item in moved[:MOST_SERIES]}
    found: dict[str, Curve] = {}
    versions: dict[str, str] = {}
    for experiment in sorted({experiment_of(item, context) for item in wanted.values()} - {""}):
        read, measured = _read(context, experiment, wanted, stamps, incident.begin)
        found.update(read)
        versions.update(measured)
    curves = tuple(found[key] for key in wanted if key in found)
    begin = sum(stamp < incident.begin for stamp in stamps)
    return Courses(
        stamps, tuple(versions.get(stamp, "") for stamp in stamps), begin, curves, len(incident.moved) - len(curves)
    )


def _read(
    context: SiteContext, experiment: str, wanted: Mapping[str, Moved], stamps: Sequence[str], begin: str
) -> tuple[dict[str, Curve], dict[str, str]]:
    """Read each series over the level before; what was measured in turn by its ratios, as the incident is."""
    home = context.home
    with store.open_for_reading(home.store_file, home.data(experiment), experiment) as opened:
        outlines, builds = opened.outlines(experiment), opened.builds(experiment)
        ratios = match_ratios(outlines)
        found = {}
        for outline, key in zip(outlines, naming.keys(outlines), strict=True):
            item = wanted.get(key)
            if item is None:
                continue
            in_turn = read_levels(opened, ratios[outline.number], builds, stamps[0]) if outline.number in ratios else {}
            if begin in in_turn and item.effect > -1:
                before = in_turn[begin] - math.log1p(item.effect)
                changes = {stamp: math.expm1(level - before) for stamp, level in in_turn.items()}
            else:
                series = opened.points_of(outline, since=stamps[0])
                changes = {at: value / item.before - 1 for at, value in zip(series.stamps, series.values, strict=True)}
            found[key] = Curve(item.name, tuple(map(changes.get, stamps)))
        return found, opened.versions(experiment)
