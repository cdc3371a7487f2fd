"""A page for each experiment: what it is, tonight, its graphs and series, its nights, its config."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from files import graphs
from files.graphs import SiteGraph
from markup.sparks import svg
from markupsafe import Markup
from render import page as pages
from views.alerts import PutAside
from views.context import SiteContext
from views.night import cell
from views.series import SeriesView
from views.tonight import ExperimentView

from pages.code_changes import CodeNight, find_code_nights
from tvmdash.dashboard_info import JobResult
from tvmdash.dashboard_info.pages import TelemetryRun
from tvmdash.dashboard_info.stages import PRECHECK, pipeline
from tvmdash.text import format_duration

MOST_SERIES = 1000
STAGES = tuple(dict.fromkeys((PRECHECK, *(stage.name for stage in pipeline("experiment").stages))))
_WIDTH, _HEIGHT = 640, 120
_LEAST_COLUMNS = 15


@dataclass(frozen=True)
class HistoryNight:
    """The experiment on one night; None where it took no part."""

    stamp: str
    state: str
    job: JobResult | None


@dataclass(frozen=True)
class Page:
    """experiments/NAME.html of an experiment; `hidden` series are left out, for there are too many."""

    about: ExperimentView
    series: Sequence[SeriesView]
    hidden: int
    history: Sequence[HistoryNight]
    durations: Markup
    run: TelemetryRun | None
    run_graph: SiteGraph | None
    code: Sequence[CodeNight]
    put_aside: Sequence[PutAside]


def write_experiments(context: SiteContext, views: Iterable[ExperimentView], new: Path) -> None:
    """Fill `new`/experiments; the graphs are in the site already."""
    (new / "experiments").mkdir(exist_ok=True)
    by_experiment: dict[str, list[SeriesView]] = {}
    for series in context.series:
        by_experiment.setdefault(series.experiment, []).append(series)
    nights = [(night.stamp, {job.name: job for job in night.experiments}) for night in reversed(context.last_nights)]
    for about in views:
        history = [_on(stamp, jobs.get(about.name)) for stamp, jobs in nights]
        page = _page(context, about, by_experiment.get(about.name, []), history, new)
        text = pages.render(
            "experiment.html", context.frame("experiment", "../"), view=page, stages=STAGES, stamp=context.tonight.stamp
        )
        (new / about.page).write_text(text, encoding="utf-8")


def _page(
    context: SiteContext,
    about: ExperimentView,
    series: Sequence[SeriesView],
    history: Sequence[HistoryNight],
    new: Path,
) -> Page:
    runs = context.telemetry.runs if context.telemetry.stamp == context.tonight.stamp else ()
    run = next((run for run in runs if run.experiment == about.name), None)
    run_graph = None
    if run is not None:
        run_graph = graphs.take_picture(context.telemetry_file(run.graph.file), "telemetry", new, context.old)
    return Page(
        about=about,
        series=series[:MOST_SERIES],
        hidden=max(0, len(series) - MOST_SERIES),
        history=history,
        durations=durations(history),
        run=run,
        run_graph=run_graph,
        code=find_code_nights(context, about.name),
        put_aside=_find_put_aside(context, about.name, series),
    )


def _find_put_aside(context: SiteContext, experiment: str, series: Sequence[SeriesView]) -> list[PutAside]:
    names = [view.name for view in series]
    return [each for each in (*context.retired, *context.muted) if each.covers(experiment, names)]


def _on(stamp: str, job: JobResult | None) -> HistoryNight:
    return HistoryNight(stamp, cell(job) if job else "absent", job)


def durations(history: Sequence[HistoryNight]) -> Markup:
    """Draw a column for each night, a piece for each stage, as high as the stage took long; empty where nothing ran."""
    most = max((item.job.elapsed_s for item in history if item.job), default=0.0)
    if most <= 0:
        return Markup("")
    width = _WIDTH / max(len(history), _LEAST_COLUMNS)
    parts = []
    for index, item in enumerate(history):
        top = float(_HEIGHT)
        for step in item.job.steps if item.job else ():
            height = step.elapsed_s / most * _HEIGHT
            top -= height
            if height >= 0.05:
                kind = STAGES.index(step.stage) if step.stage in STAGES else len(STAGES)
                parts.append(
                    f'<rect class="s{kind}" x="{index * width + 1:.1f}" y="{top:.1f}"'
                    f' width="{max(1.0, width - 2):.1f}" height="{height:.1f}"/>'
                )
    text = f"Duration by stage over {len(history)} nights; the longest took {format_duration(most)}."
    return svg("chart durations", (_WIDTH, _HEIGHT), text, parts)
