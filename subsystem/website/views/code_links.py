"""The pages on changed code that an incident or a series leads to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from files.code_changes import file_of, id_of

from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from views.context import SiteContext
from views.series import SeriesView


@dataclass(frozen=True)
class CodeLink:
    """A page, from the site's root, and whose code it is about."""

    page: str
    name: str


def find_code_pages(incident: Incident, context: SiteContext) -> tuple[CodeLink, ...]:
    """Of each experiment in the incident, what changed in its generated code on the night that the incident began.

    Where all of its series are of one point, the page begins there.
    """
    return tuple(dict.fromkeys(_links(incident, context)))


def _links(incident: Incident, context: SiteContext) -> Iterator[CodeLink]:
    names = [experiment_of(moved, context) for moved in incident.moved]
    for name in dict.fromkeys(names):
        if (name, incident.begin) in context.code_nights:
            moved = [each for each, own in zip(incident.moved, names, strict=True) if own == name]
            ids = {id_of_point(context.series_by_id.get(each.series)) for each in moved}
            part = f"#point-{next(iter(ids))}" if len(ids) == 1 and "" not in ids else ""
            yield CodeLink(file_of(name, incident.begin, ".html") + part, name)


def experiment_of(item: Moved, context: SiteContext) -> str:
    """The experiment of a series that moved; empty where the home has none of that name any more."""
    view = context.series_by_id.get(item.series)
    if view is not None:
        return view.experiment
    names = context.home.experiments_with_data()
    return next((name for name in sorted(names, key=len, reverse=True) if item.name.startswith(f"{name} ")), "")


def id_of_point(series: SeriesView | None) -> str:
    """The series' point; empty where it is none of a template's."""
    if series is None or "workload_args" not in series.labels:
        return ""
    values = {**series.labels.get("build_config", {}), **series.labels["workload_args"]}
    return id_of(str(series.labels["workload"]), values)
