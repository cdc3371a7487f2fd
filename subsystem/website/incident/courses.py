"""The series of an incident over the nights around it, each as a fraction of its level before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markup.night_chart import Curve, Mark, NightChart
from markupsafe import Markup
from views.context import SiteContext
from views.night import format_day

from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.series import naming, store

MOST_SERIES = 6
"""As many can be told apart on one chart."""
_BEFORE, _AFTER = 30, 60
"""Nights of the chart before the incident's first one, and from it on."""


@dataclass(frozen=True)
class Courses:
    """What the chart shows: the nights, oldest first, with the TVM of each ("" where unknown), and the series."""

    stamps: tuple[str, ...]
    versions: tuple[str, ...]
    begin: int
    curves: tuple[Curve, ...]
    more: int

    def draw(self, text: str) -> Markup:
        """The chart; empty where no series has a value on any of its nights."""
        days = tuple(map(format_day, self.stamps))
        return NightChart(days, self.versions, self.curves, (Mark(self.begin, "", ""),)).draw(text)


def shown_stamps(context: SiteContext, incident: Incident) -> tuple[str, ...]:
    """The nights of the incident's chart."""
    before = [stamp for stamp in context.stamps if stamp < incident.begin][-_BEFORE:]
    return (*before, *[stamp for stamp in context.stamps if stamp >= incident.begin][:_AFTER])


def read_courses(context: SiteContext, incident: Incident) -> Courses:
    """The incident's series, those that moved farthest for the worse first."""
    stamps = shown_stamps(context, incident)
    moved = [item for item in rank_moves(incident) if item.relative and item.before]
    wanted = {item.series: item for item in moved[:MOST_SERIES]}
    found: dict[str, Curve] = {}
    versions: dict[str, str] = {}
    for experiment in sorted({experiment_of(item, context) for item in wanted.values()} - {""}):
        read, measured = _read(context, experiment, wanted, stamps)
        found.update(read)
        versions.update(measured)
    curves = tuple(found[key] for key in wanted if key in found)
    begin = sum(stamp < incident.begin for stamp in stamps)
    return Courses(
        stamps, tuple(versions.get(stamp, "") for stamp in stamps), begin, curves, len(incident.moved) - len(curves)
    )


def rank_moves(incident: Incident) -> list[Moved]:
    """What moved, the worst first."""
    return sorted(incident.moved, key=lambda item: (not item.worse, -abs(item.effect)))


def experiment_of(item: Moved, context: SiteContext) -> str:
    """The experiment of a series that moved; empty where the home has none of that name any more."""
    view = context.series_by_id.get(item.series)
    if view is not None:
        return view.experiment
    names = context.home.experiments_with_data()
    return next((name for name in sorted(names, key=len, reverse=True) if item.name.startswith(f"{name} ")), "")


def _read(
    context: SiteContext, experiment: str, wanted: Mapping[str, Moved], stamps: Sequence[str]
) -> tuple[dict[str, Curve], dict[str, str]]:
    home = context.home
    with store.open_for_reading(home.store_file, home.data(experiment), experiment) as opened:
        outlines = opened.outlines(experiment)
        found = {}
        for outline, key in zip(outlines, naming.keys(outlines), strict=True):
            item = wanted.get(key)
            if item is None:
                continue
            series = opened.points_of(outline, since=stamps[0])
            values = dict(zip(series.stamps, series.values, strict=True))
            changes = [values[stamp] / item.before - 1 if stamp in values else None for stamp in stamps]
            found[key] = Curve(item.name, tuple(changes))
        return found, opened.versions(experiment)
