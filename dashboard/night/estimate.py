"""Estimated durations of a night's jobs: as measured last time, else as the author states, else unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.night import setup_cache
from dashboard.night.deadlines import is_shortened
from dashboard.plan.job import Job
from dashboard.plan.night_plan import Plan
from tvmdash import common, config_util
from tvmdash.dashboard_info import Home, JobResult
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.text import format_duration

NIGHTS_BACK = 30
"""Nights searched for one that measured in full."""


@dataclass(frozen=True)
class DurationEstimate:
    """Seconds of all stages of a job together, None where nothing tells; `source` says whose word that is."""

    job: Job
    seconds: float | None
    source: str

    def __str__(self) -> str:
        size = f" ({self.job.config['size']})" if "size" in self.job.config else ""
        duration = format_duration(self.seconds) if self.seconds is not None else "unknown"
        return f"{self.job.name}{size}: {duration}{', ' if self.source else ''}{self.source}"


def estimates(plan: Plan) -> list[DurationEstimate]:
    """One for each job that takes part, in order."""
    return [_estimate(plan.home, job) for job in (*plan.experiments, *plan.away, *plan.subsystems)]


def summarize(plan: Plan) -> list[str]:
    """A line for each job, and the sum."""
    estimated = estimates(plan)
    if not estimated:
        return []
    hosts = dict.fromkeys(item.job.host for item in estimated)
    together = [_sum_up([item for item in estimated if item.job.host == host], host) for host in hosts]
    return ["Time:", *(f"  {item}" for item in estimated), *together]


def _sum_up(estimated: Sequence[DurationEstimate], host: str) -> str:
    known = [item.seconds for item in estimated if item.seconds is not None]
    unknown = len(estimated) - len(known)
    rest = f", and {unknown} of {len(estimated)} jobs whose time is unknown" if unknown else ""
    total = format_duration(sum(known)) if known else "unknown"
    return f"  Together{f' on {host}, at the same time,' if host else ''} {total}{rest}; without the time to get TVM."


def _estimate(home: Home, job: Job) -> DurationEstimate:
    for name in dict.fromkeys((job.name, job.experiment)):  # one that is new on a TVM: as on the home's own
        stamps = _find_alike(home, job, name) if job.measures else _find_newest(home)
        results = {stamp: _read_result(home, job.kind, name, stamp) for stamp in dict.fromkeys(stamps)}
        went_well = {stamp: result.elapsed_s for stamp, result in results.items() if result and _is_whole(result)}
        if went_well:
            return _describe_nights(job, name, went_well)
    stated = config_util.read_takes_minutes(job.folder / config_util.FIELDS_FILE) if job.measures else {}
    minutes = stated.get(job.config.get("size", ""))
    bound = job.config.get("max_minutes")
    if minutes and isinstance(bound, (int, float)) and bound < minutes:
        return DurationEstimate(job, bound * 60, "by its max_minutes")
    return DurationEstimate(job, minutes and minutes * 60, "by its author with its defaults" if minutes else "")


def _is_whole(result: JobResult) -> bool:
    return bool(result.steps) and all(step.success for step in result.steps)


def _describe_nights(job: Job, name: str, seconds: Mapping[str, float]) -> DurationEstimate:
    """As on the first of the nights; the second one, if any, had less to measure."""
    (stamp, elapsed_s), *shorter = seconds.items()
    source = f"as {f'{name} ' if name != job.name else ''}on {stamp}"
    for other, less_s in shorter:
        source += f"; {format_duration(less_s)} where TVM is unchanged, as on {other}"
    return DurationEstimate(job, elapsed_s, source)


def _find_newest(home: Home) -> list[str]:
    return list(home.night_stamps())[-1:]


def _find_alike(home: Home, job: Job, name: str) -> list[str]:
    """Nights of `name` with the files and config of today: the newest that measured in full, and the newest."""
    now, found = setup_cache.fingerprint(job.folder, job.config), list[str]()
    for stamp in data_stamps(home.data(name))[: -NIGHTS_BACK - 1 : -1]:
        try:
            value = common.read_json(home.data_file(name, stamp))
        except DashboardError:
            break
        if common.object_in(value, "night").get("fingerprint") != now:
            break
        found.append(stamp)
        if not is_shortened(value):
            return [stamp, found[0]]
    return found[:1]


def _read_result(home: Home, kind: str, name: str, stamp: str) -> JobResult | None:
    try:
        night = home.read_night(stamp)
    except DashboardError:
        return None
    return next((item for item in night.jobs if (item.kind, item.name) == (kind, name)), None)
