"""The first page: the account, the forest plot, what is open, the last nights; then what there is to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from views import incidents as incident_views
from views import night as night_views
from views import night_facts
from views.alerts import Alerts, PutAside
from views.context import SiteContext
from views.forest import NightForest, count_told, is_control, make_forest
from views.incidents import IncidentView
from views.night import NightFailure
from views.night_facts import CalendarDay, NextRun, machine_changes, make_calendar
from views.night_results import KeptResults
from views.overview import Overall, read_overall
from views.series import EXACT_KIND, GONE, MISSING, YOUNG, SeriesView, counts, some_of_each
from views.tonight import ExperimentView, ReportView, report_views

from tvmdash.dashboard_info import RUNNING
from tvmdash.incidents.text import format_level
from tvmdash.records.metrics import WAYS
from tvmdash.text import format_exact
from tvmdash.verdict import Absence
from tvmdash.verdict.account import describe_disturbed

_MOST_EXACT, _MOST_VALUES = 20, 8
MOST_INCIDENTS = 3
"""More are behind a click."""


@dataclass(frozen=True)
class MissingView:
    """An experiment of which series have no value tonight. page: its own; failed: whether `failures` tells more."""

    name: str
    page: str
    count: str
    words: str
    failed: bool


@dataclass(frozen=True)
class ExactNumbers:
    """Sizes, counts and accuracies, which have no noise: of `count`, those that are others than `since`, with both."""

    count: int
    since: str
    changed: tuple[tuple[str, str, str], ...]
    more: int


@dataclass(frozen=True)
class FirstScreen:
    """index.html; `to_come` had not had its turn when it was written.

    put_aside: what is retired or muted, each with the page of its experiment. why_retired: by what it was said of.
    """

    judged: bool
    completeness: str
    took: str
    versions: tuple[str, ...]
    measured: int
    expected: int
    tallies: Mapping[str, int]
    is_first: bool
    against: str
    disturbed: str
    incidents: list[IncidentView]
    more_incidents: list[IncidentView]
    faults: list[str]
    calendar: tuple[CalendarDay, ...]
    overall: Overall | None
    forest: NightForest | None
    values: list[SeriesView]
    exact: ExactNumbers | None
    controls: list[SeriesView]
    moved_controls: list[SeriesView]
    missing: list[MissingView]
    retired: int
    muted: int
    put_aside: list[tuple[PutAside, str]]
    why_retired: Mapping[str, str]
    against_itself: bool
    young: int
    too_young: str
    next_run: NextRun
    to_come: tuple[str, ...]
    failures: list[NightFailure]
    with_failed_points: list[ExperimentView]
    experiments: list[ExperimentView]
    inactive: list[ExperimentView]
    reports: list[ReportView]


def make_index_page(
    context: SiteContext,
    experiments: list[ExperimentView],
    nights: Mapping[str, tuple[str, KeptResults]],
    own: str = "website",
) -> FirstScreen:
    """Make the first page, which subsystem `own` writes. nights: how the jobs of each went, and what was kept."""
    night, series = context.tonight, context.series
    states = counts(series)
    earlier = context.last_nights[1] if len(context.last_nights) > 1 else None
    judged = night_views.judge(night, is_tonight=True)
    incidents = _incidents(context)
    told = context.verdict.value
    beside = told.beside.reference if told and told.beside and told.beside.is_first else ""
    young = [each for each in series if each.state == YOUNG]
    controls = [each for each in series if is_control(context, each)]
    wall = {key: ratio for view in experiments if view.points for key, ratio in view.points.wall.items()}
    forest = make_forest(context, wall)
    shown = [each for each in series if each.state not in (MISSING, GONE)]
    return FirstScreen(
        judged=context.alerts.night == night.stamp,
        completeness=judged.completeness,
        took=judged.elapsed + (" up to this page" if night.state == RUNNING else ""),
        versions=night_facts.format_versions(night, earlier),
        measured=len(series) - states[MISSING] - states[GONE],
        expected=len(series) - states[GONE],
        retired=told.retired if told else 0,
        muted=told.muted if told else 0,
        put_aside=[(each, _page_of(each, experiments)) for each in (*context.retired, *context.muted)],
        why_retired={each.scope: each.words for each in context.retired},
        tallies=count_told(context),
        is_first=len(context.stamps) == 1,
        against=_describe_basis(context, beside),
        disturbed=describe_disturbed(context.telemetry if context.telemetry.stamp == night.stamp else None),
        incidents=incidents[:MOST_INCIDENTS],
        more_incidents=incidents[MOST_INCIDENTS:],
        faults=_faults(context, experiments),
        calendar=make_calendar(nights, machine_changes(context.own_machines)) if len(nights) > 1 else (),
        overall=read_overall(context),
        forest=forest,
        values=[] if forest else some_of_each(shown, _MOST_VALUES),
        exact=_list_exact(context),
        controls=controls,
        moved_controls=[each for each in controls if each.state in WAYS],
        missing=_missing(context, experiments),
        against_itself=bool(told and told.beside and told.beside.is_itself),
        young=len(young),
        too_young=_too_young(context.alerts, young[0], len(context.stamps)) if young else "",
        next_run=night_facts.next_run(context.stamps),
        to_come=night_facts.still_to_come(night, own),
        failures=night_views.failures(night.jobs),
        with_failed_points=[view for view in experiments if view.points and view.points.failed],
        experiments=[view for view in experiments if view.job],
        inactive=[view for view in experiments if not view.job],
        reports=report_views(context.home, night, context.old),
    )


def _describe_basis(context: SiteContext, reference: str) -> str:
    if reference:
        return f"Beside TVM {reference}"
    return "On this first night" if len(context.stamps) == 1 else "Against earlier nights"


def _page_of(decision: PutAside, experiments: list[ExperimentView]) -> str:
    """Return the page of the experiment that a decision names first; empty where it is about several."""
    name = decision.scope.split(" ")[0]
    return next((view.page for view in experiments if view.name == name), "")


def _missing(context: SiteContext, experiments: list[ExperimentView]) -> list[MissingView]:
    """Make a line for each experiment, in the verdict's order."""
    told = context.verdict.value.missing if context.verdict.value else ()
    pages = {view.name: view.page for view in experiments}
    return [
        MissingView(
            one.experiment,
            pages.get(one.experiment, ""),
            f"{one.series} of {one.expected} series",
            _ABSENCES[one.why],
            one.why in (Absence.FAILED, Absence.BLOCKED),
        )
        for one in told
    ]


_ABSENCES = {
    Absence.FAILED: "it failed",
    Absence.BLOCKED: "it was blocked",
    Absence.NOT_RUN: "it did not run",
    Absence.NO_VALUE: "it ran without measuring them",
}


def _list_exact(context: SiteContext) -> ExactNumbers | None:
    """List on the first night beside a reference the numbers that differ from its own, else tonight's that moved."""
    told = context.verdict.value
    beside = told.beside if told is not None and told.beside is not None and told.beside.is_first else None
    if beside is not None and beside.numbers and not beside.is_itself:
        known = [
            (each.name, format_exact(each.reference, each.unit), format_exact(each.value, each.unit))
            for each in beside.exact
        ]
        return ExactNumbers(
            beside.numbers, f"on TVM {beside.reference}", tuple(known[:_MOST_EXACT]), len(known[_MOST_EXACT:])
        )
    views = [view for view in context.series if view.grade == EXACT_KIND and view.state not in (MISSING, GONE)]
    moved = [(view, *context.alerts.open_moves()[view.id]) for view in views if view.state in WAYS]
    known = [(view.name, format_level(part.before, part), format_level(part.after, part)) for view, _, part in moved]
    kept = ExactNumbers(len(views), "before", tuple(known[:_MOST_EXACT]), len(known[_MOST_EXACT:]))
    return kept if views and len(context.stamps) > 1 else None


def _faults(context: SiteContext, experiments: list[ExperimentView]) -> list[str]:
    texts = [f"{name}: {fault}" for name, faults in context.faults.items() for fault in faults]
    unreadable = [view for view in experiments if view.data_fault]
    texts += [f"Verdict: {context.verdict.fault}"] if context.verdict.fault else []
    return texts + [f"{view.title}: Its data could not be read: {view.data_fault}" for view in unreadable]


def _too_young(alerts: Alerts, series: SeriesView, nights: int) -> str:
    """Say why series, as this one, have no verdict yet, and from when on they will."""
    verdict = alerts.series.get(series.id)
    needed = verdict.why.needed if verdict and verdict.why else None
    so_far = "this was the first night" if nights == 1 else f"so far there are {nights}"
    return f"A series is judged once it has {f'{needed:g} nights' if needed else 'enough nights'}; {so_far}."


def _incidents(context: SiteContext) -> list[IncidentView]:
    """List what tonight found and is open, what is open from before, each worst first, then what else tonight found."""
    alerts = context.alerts
    found = alerts.news(context.tonight.stamp)
    still = sorted(alerts.open, key=lambda incident: incident not in found)
    settled = [incident for incident in found if incident not in still]
    return [incident_views.view(incident, context, silent=False) for incident in (*still, *settled)]
