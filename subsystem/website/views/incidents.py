"""Incidents as the pages show them: what moved, from, to, by how much, since when, how sure; with a small line."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from files.code_changes import file_of, id_of
from markupsafe import Markup

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.incidents.cause_text import format_cause_in_short
from tvmdash.incidents.events import Moved
from tvmdash.incidents.headline import format_headline, format_size, shorten
from tvmdash.incidents.ledger import CHANGE, CREEP, DETECTOR, MACHINE, Incident
from tvmdash.incidents.next_step import PROGRAM, name_tvms
from tvmdash.incidents.text import format_errors, format_incident, format_level, format_nights
from tvmdash.records.metrics import BETTER, CHANGED, WORSE, Way
from tvmdash.text import format_percent, format_percent_range
from views.commits import NewCommits
from views.context import SiteContext
from views.series import SeriesView


@dataclass(frozen=True)
class MoveView:
    """One series of an incident."""

    series: str
    name: str
    way: Way
    before: str
    after: str
    size: str
    interval: str
    recovered: str | None


@dataclass(frozen=True)
class IncidentView:
    """An incident. what: Regression, Improvement, Change, Machine or Creep; moves: the worst first.

    brief: since when and how sure in half a line; sure: the same in the words of the alerts. new: what was new in the
    TVM with which it came; steps: the commands that come next. code: pages on the
    generated code that changed with it.
    """

    incident: Incident
    what: str
    silent: bool
    headline: str
    size: str
    moves: tuple[MoveView, ...]
    brief: str
    sure: str
    spark: Markup
    who: str
    new: tuple[NewCommits, ...]
    steps: tuple[IncidentStep, ...]
    code: tuple[CodeLink, ...]
    parts: tuple[str, ...]
    experiments: tuple[str, ...]

    @property
    def month(self) -> str:
        """That in which it began, as in 2026-06."""
        return common.format_day(self.incident.begin)[:7]


def view(incident: Incident, context: SiteContext, *, silent: bool) -> IncidentView:
    """Make the view, with the line of the worst series that is still measured."""
    series = context.series_by_id
    moved = incident.worst_first
    sure = format_incident(incident).since
    shown = next((series[item.series] for item in moved if item.series in series), None)
    people = [change.who for change in incident.changes if change.who != DETECTOR]
    return IncidentView(
        incident=incident,
        what=_what(incident),
        silent=silent,
        headline=format_headline(incident),
        size=format_size(moved[0]) if moved else format_percent(incident.size or 0.0),
        moves=tuple(map(_move, moved)),
        brief=_brief(incident) or sure,
        sure=sure,
        spark=shown.spark if shown else Markup(""),
        who=incident.owner or (people[-1] if people else ""),
        new=context.new_between(incident.after, incident.begin, incident.versions[1]) if _is_of_tvm(incident) else (),
        steps=tuple(list_steps(incident, shown, context.home)) if incident.is_open else (),
        code=find_code_pages(incident, context),
        parts=tuple(each.id for each in context.alerts.incidents if each.into == incident.id),
        experiments=tuple(dict.fromkeys(filter(None, (item.experiment for item in moved)))),
    )


def _brief(incident: Incident) -> str:
    """Say it in half a line; empty where it takes more words."""
    best = max(incident.moved, key=lambda item: abs(item.z or 0), default=None)
    if incident.kind != CHANGE or incident.notes or best is None or best.z is None or best.again_new:
        return ""
    before, after = map(shorten, incident.versions)
    version = f", TVM {after}" if after else ""
    if incident.is_rebuilt:
        version = f", another build of TVM {after}"
    elif before and after and incident.versions[0] != incident.versions[1]:
        version = f", TVM {before} → {after}"
    over = f" over {format_nights(best.nights)}" if best.nights else ""
    cause = f"; {format_cause_in_short(incident.cause)}" if incident.cause is not None else ""
    return f"Since {common.format_day(incident.begin)}{version}{cause}; {format_errors(best.z)}{over}."


def _is_of_tvm(incident: Incident) -> bool:
    """Tell whether TVM was another when it came."""
    before, after = incident.versions
    return bool(after) and (before != after or incident.is_rebuilt) and incident.kind != CREEP


def _what(incident: Incident) -> str:
    if incident.kind == MACHINE:
        return "Machine"
    if incident.kind == CREEP:
        return "Creep"
    return {WORSE: "Regression", BETTER: "Improvement", CHANGED: "Change"}[incident.way]


def _move(item: Moved) -> MoveView:
    interval = ""
    if item.relative and item.low is not None and item.high is not None:
        interval = format_percent_range(item.low, item.high)
    before, after = (format_level(value, item) for value in (item.before, item.after))
    return MoveView(item.series, item.name, item.way, before, after, format_size(item), interval, item.recovered)


@dataclass(frozen=True)
class IncidentStep:
    """A command, and what it is for."""

    purpose: str
    command: str


def list_steps(incident: Incident, series: SeriesView | None, home: Home) -> Iterator[IncidentStep]:
    """Yield commands on the incident; `series` is its worst that is still measured."""
    before, after = name_tvms(incident, home)
    if series is not None and before and after and before != after and incident.kind == CHANGE:
        words = f"HOME {shlex.quote(series.experiment)} {shlex.quote(series.id)} --good {before} --bad {after}"
        yield IncidentStep("Find the commit", f"{PROGRAM} bisect {words} --incident {incident.id}")
        experiment = f"--experiments {shlex.quote(series.experiment)}"
        yield IncidentStep("Remeasure both now", f"{PROGRAM} compare HOME {before} {after} {experiment}")
        if after.startswith("git:"):
            yield IncidentStep("Try a fix", f"{PROGRAM} try HOME git:BRANCH --against {after} {experiment}")
    yield IncidentStep("See the evidence", f"{PROGRAM} explain HOME {incident.id}")
    if series is not None:
        receipt = shlex.quote(f"{series.experiment}/{series.last_stamp}")
        yield IncidentStep("Remeasure its last value", f"{PROGRAM} reproduce HOME {receipt} {shlex.quote(series.id)}")
    yield IncidentStep("Acknowledge it", f"{PROGRAM} incidents HOME ack {incident.id}")
    yield IncidentStep("Silence it for a week", f"{PROGRAM} incidents HOME silence {incident.id} --days 7")


@dataclass(frozen=True)
class CodeLink:
    """A page, from the site's root, and whose code it is about."""

    page: str
    name: str


def find_code_pages(incident: Incident, context: SiteContext) -> tuple[CodeLink, ...]:
    """Find for each experiment in the incident what changed in its generated code on the night that it began.

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
    """Find the experiment of a series that moved; empty where the home has none of that name any more."""
    view = context.series_by_id.get(item.series)
    if view is not None:
        return view.experiment
    names = context.home.experiments_with_data()
    # a name may begin with another experiment's
    return next((name for name in sorted(names, key=len, reverse=True) if item.name.startswith(f"{name} ")), "")


def id_of_point(series: SeriesView | None) -> str:
    """Identify the series' point; empty where it is none of a template's."""
    if series is None or "workload_args" not in series.labels:
        return ""
    values = {**series.labels.get("build_config", {}), **series.labels["workload_args"]}
    return id_of(str(series.labels["workload"]), values)
