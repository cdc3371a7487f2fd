"""What the first page shows of each experiment and subsystem: the latest that there is, and from which night."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import graphs
from graphs import Graph
from night_views import OK, PARTIAL, Verdict, experiments, job_state, subsystems
from site_files import carry_over, regular_file_bytes, safe_name

from tvmdash import common, config_util, records
from tvmdash.dashboard_info import Home, JobResult, Night
from tvmdash.errors import DashboardError
from tvmdash.series_plots import label_of
from tvmdash.words import bytes_in_words

MAX_POINTS = 20
MAX_TEXT = 4000


@dataclass(frozen=True)
class Text:
    """A summary or report; `stamp` is the night that it is from where that is not tonight ("" = an unknown one)."""

    title: str
    value: str
    stamp: str | None


@dataclass(frozen=True)
class Points:
    """Tonight's points of an experiment: how many were tried, and which failed why."""

    total: int
    failed: int
    told: tuple[tuple[str, str], ...]
    href: str
    size: str


@dataclass(frozen=True)
class ExperimentView:
    """An experiment on the first page."""

    job: JobResult
    anchor: str
    state: str
    summary: Text | None
    graphs: tuple[Graph, ...]
    graphs_stamp: str | None
    left_out: tuple[str, ...]
    points: Points | None
    data_fault: str


@dataclass(frozen=True)
class AllPoints:
    """Tonight's points of all experiments together."""

    total: int
    failed: int


@dataclass(frozen=True)
class ReportView:
    """A subsystem's words."""

    job: JobResult
    text: Text


@dataclass(frozen=True)
class Inactive:
    """An experiment that this home knows and that takes no part."""

    name: str
    title: str
    description: str
    last_stamp: str | None


def anchor_of(experiment: str) -> str:
    """The experiment's place on the first page."""
    return f"e-{safe_name(experiment)}"


def experiment_views(home: Home, tonight: Night, site: Path) -> list[ExperimentView]:
    """The experiments of tonight; their graphs and data are put into `site`."""
    return [_experiment(home, tonight.stamp, job, site) for job in experiments(tonight)]


def all_points(views: Sequence[ExperimentView]) -> AllPoints | None:
    """The points of all, or None where no experiment left data tonight."""
    points = [view.points for view in views if view.points]
    return AllPoints(sum(item.total for item in points), sum(item.failed for item in points)) if points else None


def with_points(verdict: Verdict, points: AllPoints | None) -> Verdict:
    """The verdict with what only the data tells."""
    if points is None or not points.failed:
        return verdict
    words = f"{verdict.headline}; {points.failed} of {points.total} points failed"
    return dataclasses.replace(verdict, headline=words, state=PARTIAL if verdict.state == OK else verdict.state)


def _experiment(home: Home, stamp: str, job: JobResult, site: Path) -> ExperimentView:
    taken = graphs.take(home.graph(job.name), site, job.name)
    points, fault = _points(home, stamp, job.name, site)
    state = job_state(job)
    return ExperimentView(
        job=job,
        anchor=anchor_of(job.name),
        state=PARTIAL if points and points.failed and state == OK else state,
        summary=_text(home.read_summary(job.name), home.stamp_of(home.summary(job.name)), stamp),
        graphs=taken.shown,
        graphs_stamp=_if_older(home.stamp_of(home.graph(job.name)), stamp),
        left_out=taken.left_out,
        points=points,
        data_fault=fault,
    )


def _text(words: tuple[str, str] | None, stamp: str | None, tonight: str) -> Text | None:
    if words is None:
        return None
    title, value = words
    return Text(title, value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + " …", _if_older(stamp, tonight))


def _if_older(stamp: str | None, tonight: str) -> str | None:
    """None for tonight; "" where what should be a stamp is none."""
    if stamp == tonight:
        return None
    with contextlib.suppress(DashboardError):
        common.parse_stamp(stamp or "")
        return stamp
    return ""


def _points(home: Home, stamp: str, experiment: str, site: Path) -> tuple[Points | None, str]:
    """Tonight's points and, where the data cannot be read, why."""
    path = home.data_file(experiment, stamp)
    size = regular_file_bytes(path)
    if size is None:
        return None, ""
    try:
        data = records.read_data(path, experiment)
    except DashboardError as error:
        return None, str(error)
    href = f"data/{safe_name(experiment)}/{path.name}"
    carry_over(path, site / href)
    failed = data.failures
    total = len(data.records) + len(failed) or len(data.leaves)
    told = tuple((label_of(failure.workload, failure.values), failure.error) for failure in failed[:MAX_POINTS])
    return Points(total, len(failed), told, href, bytes_in_words(size)), ""


def report_views(home: Home, tonight: Night, output: Path) -> list[ReportView]:
    """The reports of the subsystems that have had their turn, but the one whose folder is `output`."""
    return [
        ReportView(job, text)
        for job in subsystems(tonight)
        if home.output(job.name).resolve() != output
        and any(step.stage == "run" for step in job.steps)
        and (text := _text(home.read_report(job.name), tonight.stamp if _has_run(job) else None, tonight.stamp))
    ]


def _has_run(job: JobResult) -> bool:
    return any(step.stage == "run" and step.success for step in job.steps)


def inactive_experiments(home: Home) -> list[Inactive]:
    """The experiments whose config says that they are not active; what cannot be read is told by the precheck."""
    folder = home.configs("experiment")
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(DashboardError):
            config = common.read_json(path / config_util.CONFIG_FILE, max_bytes=4 << 20)
            if isinstance(config, dict) and config.get("active") is False:
                title, words = str(config.get("title") or path.name), str(config.get("description", ""))
                stamps: Sequence[str] = home.data_stamps(path.name)
                found.append(Inactive(path.name, title, words, stamps[-1] if stamps else None))
    return found
