"""Experiments and subsystems: the latest of each, and from which night."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from files import graphs
from files.files import WRONG, carry_over, reason_of, regular_file_bytes
from files.graphs import SiteGraph

from tvmdash import common, config_util, records, redaction
from tvmdash.dashboard_info import Home, JobResult, Night, experiment_of, make_title
from tvmdash.errors import DashboardError
from tvmdash.measure.reduction import combine_pairs
from tvmdash.records.metrics import RUN_TIME
from tvmdash.series.naming import label_of
from tvmdash.text import format_bytes
from tvmdash.verdict.account import sort_experiments
from views.context import SiteContext
from views.night import ABSENT, OK, PARTIAL, job_state, subsystems

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
    """Tonight's points of an experiment: how many were tried, and which failed why.

    wall: by the ID of a run time that was measured in turn by the CPU clock, its change by the wall clock.
    """

    total: int
    failed: int
    told: tuple[tuple[str, str], ...]
    href: str
    size: str
    wall: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ExperimentView:
    """An experiment that this home knows, or knew. job: how it went tonight, None where it took no part.

    active: as its config says; None where that does not say. last_stamp: of its last data.
    """

    name: str
    title: str
    description: str
    page: str
    job: JobResult | None
    active: bool | None
    state: str
    last_stamp: str | None
    summary: Text | None
    graphs: tuple[SiteGraph, ...]
    graphs_stamp: str | None
    left_out: tuple[str, ...]
    points: Points | None
    data_fault: str
    config: str


@dataclass(frozen=True)
class ReportView:
    """A subsystem's words."""

    job: JobResult
    text: Text


def page_of(experiment: str) -> str:
    """Return the experiment's page, from the site's root."""
    return f"experiments/{common.safe_name(experiment)}.html"


def experiment_views(context: SiteContext, site: Path) -> list[ExperimentView]:
    """List all experiments that the home knows or knew; put their graphs and tonight's data into `site`."""
    home, nights, old = context.home, context.last_nights, context.old
    reported = _find_newest_jobs(nights)
    configs = _configs(home)
    jobs = {job.name: job for job in sort_experiments(nights[0])}
    views = []
    own = configs.keys() - find_measured_elsewhere(home, nights[0])
    for name in {*reported, *own, *home.experiments_with_data()}:
        config, known = configs.get(experiment_of(name)), reported.get(name)
        title = known.title if known else _title(name, config)
        if name not in jobs and name not in configs and _active(config):  # on a TVM that the home names no more
            config = None
        description = known.description if known else str((config or {}).get("description", ""))
        taken = graphs.take(home.graph(name), site, name, old)
        points, fault = _points(context, name, site)
        stamps = home.data_stamps(name)
        view = ExperimentView(
            name=name,
            title=title,
            description=description,
            page=page_of(name),
            job=jobs.get(name),
            active=_active(config),
            state=_state(jobs.get(name), points),
            last_stamp=stamps[-1] if stamps else None,
            summary=_text(home.read_summary(name), home.stamp_of(home.summary(name)), nights[0].stamp),
            graphs=taken.shown,
            graphs_stamp=_if_older(home.stamp_of(home.graph(name)), nights[0].stamp),
            left_out=taken.left_out,
            points=points,
            data_fault=fault,
            config="" if config is None else _format_config(config),
        )
        views.append(view)
    return sorted(views, key=lambda view: (view.job is None, view.title.lower(), view.name))


def _title(name: str, config: Mapping[str, Any] | None) -> str:
    title = (config or {}).get("title")
    return make_title(name, str(title)) if title else name


def find_measured_elsewhere(home: Home, tonight: Night) -> set[str]:
    """Find the experiments without data of their own that tonight took part on other hosts or TVMs alone."""
    jobs = {job.name for job in tonight.experiments}
    return {experiment_of(name) for name in jobs} - jobs - set(home.experiments_with_data())


def _find_newest_jobs(nights: Iterable[Night]) -> dict[str, JobResult]:
    """Find by name the newest that the nights tell of each experiment."""
    jobs: dict[str, JobResult] = {}
    for night in nights:
        for job in sort_experiments(night):
            jobs.setdefault(job.name, job)
    return jobs


def _configs(home: Home) -> dict[str, Mapping[str, Any]]:
    """Read the configs that can be read; what cannot be is told by the precheck."""
    folder = home.configs("experiment")
    configs: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        with contextlib.suppress(DashboardError):
            config = common.read_json(path / config_util.CONFIG_FILE, max_bytes=4 << 20)
            if isinstance(config, dict):
                configs[path.name] = config
    return configs


def _format_config(config: Mapping[str, Any]) -> str:
    return json.dumps(redaction.remove_secrets(config), indent=1, ensure_ascii=False)


def _active(config: Mapping[str, Any] | None) -> bool | None:
    value = (config or {}).get("active")
    return value if isinstance(value, bool) else None


def _state(job: JobResult | None, points: Points | None) -> str:
    state = job_state(job) if job else ABSENT
    return PARTIAL if state == OK and points and points.failed else state


def _text(summary: tuple[str, str] | None, stamp: str | None, tonight: str) -> Text | None:
    if summary is None:
        return None
    title, value = summary
    return Text(title, value if len(value) <= MAX_TEXT else value[:MAX_TEXT] + " …", _if_older(stamp, tonight))


def _if_older(stamp: str | None, tonight: str) -> str | None:
    """Return None for tonight; "" where what should be a stamp is none."""
    if stamp == tonight:
        return None
    with contextlib.suppress(DashboardError):
        common.parse_stamp(stamp or "")
        return stamp
    return ""


def _points(context: SiteContext, experiment: str, site: Path) -> tuple[Points | None, str]:
    """Read tonight's points, or say why the data cannot be read."""
    path = context.home.data_file(experiment, context.tonight.stamp)
    size = regular_file_bytes(path)
    if size is None:
        return None, ""
    try:
        data = records.read_data(path, experiment)
        reported, wall = _report_of(data.failures[:MAX_POINTS]), _read_wall(data)
    except (DashboardError, *WRONG) as error:
        return None, reason_of(path, error)
    href = f"data/{common.safe_name(experiment)}/{path.name}"
    (site / href).parent.mkdir(parents=True, exist_ok=True)
    carry_over(path, site / href)
    total = len(data.records) + len(data.failures) or len(data.leaves)
    return Points(total, len(data.failures), reported, href, format_bytes(size), wall), ""


def _read_wall(data: records.NightData) -> dict[str, float]:
    found = {}
    for record in data.records:
        paired = common.object_in(record.additional_info, "paired")
        logs = common.object_in(common.object_in(paired, "ratios"), RUN_TIME).get("wall_log_ratios")
        if isinstance(logs, list) and logs:
            key = records.SeriesKey.of(data.experiment, RUN_TIME, record.labels, data.home)
            found[key.id] = combine_pairs(logs).ratio - 1
    return found


def _report_of(failures: Sequence[records.Failure]) -> tuple[tuple[str, str], ...]:
    return tuple((label_of(failure.workload, failure.values), failure.error) for failure in failures)


def report_views(home: Home, tonight: Night, output: Path) -> list[ReportView]:
    """List the reports of the subsystems that have had their turn, but the one whose folder is `output`."""
    return [
        ReportView(job, text)
        for job in subsystems(tonight)
        if home.output(job.name).resolve() != output
        and any(step.stage == "run" for step in job.steps)
        and (text := _text(home.read_report(job.name), tonight.stamp if _has_run(job) else None, tonight.stamp))
    ]


def _has_run(job: JobResult) -> bool:
    return any(step.stage == "run" and step.success for step in job.steps)
