"""How long each job of a night will take: as measured last time, else as its author states it, else unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.night import setup_cache
from dashboard.plan.job import Job
from dashboard.plan.night_plan import Plan
from tvmdash import common, config_util
from tvmdash.dashboard_info import Home, JobResult
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.text import format_duration


@dataclass(frozen=True)
class Estimate:
    """Seconds of all stages of a job together, None where nothing tells; `source` says whose word that is."""

    job: Job
    seconds: float | None
    source: str

    def __str__(self) -> str:
        size = f" ({self.job.config['size']})" if "size" in self.job.config else ""
        duration = format_duration(self.seconds) if self.seconds is not None else "unknown"
        return f"{self.job.name}{size}: {duration}{', ' if self.source else ''}{self.source}"


def estimates(plan: Plan) -> list[Estimate]:
    """One for each job that takes part, in order."""
    return [_estimate(plan.home, job) for job in (*plan.experiments, *plan.subsystems)]


def summarize(plan: Plan) -> list[str]:
    """A line for each job, and the sum."""
    estimated = estimates(plan)
    if not estimated:
        return []
    known = [item.seconds for item in estimated if item.seconds is not None]
    unknown = len(estimated) - len(known)
    rest = f", and {unknown} of {len(estimated)} jobs whose time is unknown" if unknown else ""
    total = format_duration(sum(known)) if known else "unknown"
    return ["Time:", *(f"  {item}" for item in estimated), f"  Together {total}{rest}; without the time to get TVM."]


def _estimate(home: Home, job: Job) -> Estimate:
    for name in dict.fromkeys((job.name, job.experiment)):  # one that is new on a TVM: as on the home's own
        stamp = _find_unchanged(home, job, name) if job.measures else _find_newest(home)
        result = _read_result(home, job.kind, name, stamp) if stamp else None
        if result is not None and result.steps and all(step.success for step in result.steps):
            return Estimate(job, result.elapsed_s, f"as {f'{name} ' if name != job.name else ''}on {stamp}")
    stated = config_util.read_takes_minutes(job.folder / config_util.FIELDS_FILE) if job.measures else {}
    minutes = stated.get(job.config.get("size", ""))
    bound = job.config.get("max_minutes")
    if minutes and isinstance(bound, (int, float)) and bound < minutes:
        return Estimate(job, bound * 60, "by its max_minutes")
    return Estimate(job, minutes and minutes * 60, "by its author with its defaults" if minutes else "")


def _find_newest(home: Home) -> str | None:
    return next(reversed(home.night_stamps()), None)


def _find_unchanged(home: Home, job: Job, name: str) -> str | None:
    """The newest night that has data under `name`, where the experiment's files and config were those of today."""
    stamps: Sequence[str] = data_stamps(home.data(name))
    if not stamps:
        return None
    try:
        value = common.read_json(home.data_file(name, stamps[-1]))
    except DashboardError:
        return None
    night = value.get("night") if isinstance(value, dict) else None
    then = night.get("fingerprint") if isinstance(night, dict) else None
    return stamps[-1] if then == setup_cache.fingerprint(job.folder, job.config) else None


def _read_result(home: Home, kind: str, name: str, stamp: str) -> JobResult | None:
    try:
        night = home.read_night(stamp)
    except DashboardError:
        return None
    return next((item for item in night.jobs if (item.kind, item.name) == (kind, name)), None)
