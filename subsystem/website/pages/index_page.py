"""The first page: the verdict, the incidents, the strip, the series, what comes next; then what there is to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from views import incidents as incident_views
from views import night as night_views
from views import night_facts
from views import tally as verdict
from views.alerts import Alerts, PutAside
from views.context import SiteContext
from views.incidents import IncidentView
from views.night import NightFailure
from views.night_facts import NextRun
from views.overview import Overall, OverviewMatrix, make_matrix, read_overall
from views.series import GONE, MISSING, YOUNG, SeriesView, counts, some_of_each
from views.strip import Strip, machine_changes, make_strip
from views.tally import Tally
from views.tonight import ExperimentView, ReportView, report_views

from tvmdash.account import Account, describe_disturbed
from tvmdash.dashboard_info import RUNNING, Night
from tvmdash.pages import DeadlineAhead, ScoreTonight
from tvmdash.verdict import Absence

MOST_SERIES = 50
MOST_YOUNG = 8
"""As long as none can be judged."""
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
class FirstScreen:
    """What index.html shows; `to_come` had not had its turn when it was written.

    put_aside: what is retired or muted, each with the page of its experiment. why_retired: by what it was said of.
    """

    night: Night
    account: Account
    judged: bool
    completeness: str
    took: str
    versions: tuple[str, ...]
    measured: int
    expected: int
    tallies: list[Tally]
    disturbed: str
    incidents: list[IncidentView]
    more_incidents: list[IncidentView]
    faults: list[str]
    strip: Strip
    overall: Overall | None
    matrix: OverviewMatrix | None
    series: list[SeriesView]
    all_shown: int
    missing: list[MissingView]
    retired: int
    muted: int
    put_aside: list[tuple[PutAside, str]]
    why_retired: Mapping[str, str]
    beside: list[SeriesView]
    against_itself: bool
    reference: str
    too_young: str
    all_series: int
    deadlines: Sequence[DeadlineAhead]
    next_run: NextRun
    to_come: tuple[str, ...]
    failures: list[NightFailure]
    with_failed_points: list[ExperimentView]
    experiments: list[ExperimentView]
    inactive: list[ExperimentView]
    scores: tuple[ScoreTonight, ...]
    scores_stamp: str
    reports: list[ReportView]


def make_index_page(context: SiteContext, experiments: list[ExperimentView], own: str = "website") -> FirstScreen:
    """The view; `own` is the subsystem that writes this."""
    night, series = context.tonight, context.series
    states = counts(series)
    failed_points = sum(view.points.failed for view in experiments if view.points)
    earlier = context.last_nights[1] if len(context.last_nights) > 1 else None
    judged = night_views.judge(night, is_tonight=True)
    incidents = _incidents(context)
    told = context.verdict.value
    young = bool(series) and states[YOUNG] == len(series)
    beside = _beside(context)
    shown = [each for each in series if each.state not in (MISSING, GONE)]
    return FirstScreen(
        night=night,
        account=context.account,
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
        tallies=verdict.tallies(states, failed_points),
        disturbed=describe_disturbed(context.telemetry if context.telemetry.stamp == night.stamp else None),
        incidents=incidents[:MOST_INCIDENTS],
        more_incidents=incidents[MOST_INCIDENTS:],
        faults=_faults(context, experiments),
        strip=make_strip(context.last_nights, machine_changes(context.own_machines)),
        overall=read_overall(context),
        matrix=make_matrix(series),
        series=some_of_each(series, MOST_YOUNG) if young else shown[:MOST_SERIES],
        all_shown=len(shown),
        missing=_missing(context, experiments),
        beside=beside,
        against_itself=context.verdict.value is not None
        and context.verdict.value.beside is not None
        and context.verdict.value.beside.is_itself,
        reference=beside[0].beside.reference if beside and beside[0].beside else "",
        too_young=_too_young(context.alerts, series[0], len(context.stamps)) if young else "",
        all_series=len(series),
        deadlines=context.deadlines,
        next_run=night_facts.next_run(context.stamps),
        to_come=night_facts.still_to_come(night, own),
        failures=night_views.failures(night.jobs),
        with_failed_points=[view for view in experiments if view.points and view.points.failed],
        experiments=[view for view in experiments if view.job],
        inactive=[view for view in experiments if not view.job],
        scores=context.scores.scores,
        scores_stamp=context.scores.stamp,
        reports=report_views(context.home, night, context.old),
    )


def _page_of(decision: PutAside, experiments: list[ExperimentView]) -> str:
    """The page of the experiment that a decision names first; empty where it is about several."""
    name = decision.scope.split(" ")[0]
    return next((view.page for view in experiments if view.name == name), "")


def _missing(context: SiteContext, experiments: list[ExperimentView]) -> list[MissingView]:
    """A line for each experiment, in the verdict's order."""
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
    Absence.NO_VALUE: "it ran but did not measure them",
}


def _beside(context: SiteContext) -> list[SeriesView]:
    """On the first night beside a reference what was measured on both, what differs most first."""
    told = context.verdict.value
    if told is None or told.beside is None or not told.beside.is_first:
        return []
    return sorted((view for view in context.series if view.beside), key=_distance, reverse=True)[:MOST_SERIES]


def _distance(view: SeriesView) -> tuple[bool, float]:
    return (view.beside.differs, abs(view.beside.effect)) if view.beside else (False, 0.0)


def _faults(context: SiteContext, experiments: list[ExperimentView]) -> list[str]:
    """What cannot be read, in words."""
    texts = [f"{name}: {fault}" for name, faults in context.faults.items() for fault in faults]
    unreadable = [view for view in experiments if view.data_fault]
    texts += [f"Verdict: {context.verdict.fault}"] if context.verdict.fault else []
    return texts + [f"{view.title}: Its data could not be read: {view.data_fault}" for view in unreadable]


def _too_young(alerts: Alerts, series: SeriesView, nights: int) -> str:
    """Why no series, as this one, has a verdict yet, and from when on they will."""
    verdict = alerts.series.get(series.id)
    needed = verdict.why.needed if verdict and verdict.why else None
    so_far = "this was the first night" if nights == 1 else f"so far there are {nights}"
    return f"A series is judged once it has {f'{needed:g} nights' if needed else 'enough nights'}; {so_far}."


def _incidents(context: SiteContext) -> list[IncidentView]:
    """What tonight found and is open, what is open from before, each worst first, then what else tonight found."""
    alerts = context.alerts
    found = alerts.news(context.tonight.stamp)
    still = sorted(alerts.open, key=lambda incident: incident not in found)
    settled = [incident for incident in found if incident not in still]
    return [incident_views.view(incident, context, silent=False) for incident in (*still, *settled)]
