"""Durations of stages: limits from the config, else from history, else from the protocol; and estimates for `plan`.

A stage that hangs is ended after a small multiple of what it usually takes, not after hours. Only nights of the same
code and config count, and none that had less to measure; docs/decisions/0140-deadlines-learn.md says why these numbers.
"""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.night import setup_cache
from dashboard.plan.job import Job
from dashboard.plan.night_plan import Plan
from dashboard.plan.settings import HomeConfig
from tvmdash import common, config_util
from tvmdash.dashboard_info import OK, Home, JobResult
from tvmdash.dashboard_info.stages import Stage
from tvmdash.errors import DashboardError
from tvmdash.records import data_stamps
from tvmdash.text import format_duration

TIMES, FLOOR_S, CAP_TIMES = 4, 900, 3
"""Of the longest night; never less than the floor, nor more than so many times what the protocol allows."""
_NIGHTS, _LEAST = 15, 5
_UNCHANGED = "unchanged"
"""The record's reason for a point that ended after one pair (docs/explanation/measuring.md)."""


@dataclass(frozen=True)
class JobDeadline:
    """The seconds that a stage may take; usual_s: it takes in the middle, where that is known, as of `nights`."""

    seconds: int
    usual_s: float | None = None
    longest_s: float = 0.0
    nights: int = 0

    @property
    def text(self) -> str:
        """The usual duration as a sentence; empty where it is not known."""
        if self.usual_s is None:
            return ""
        usual, longest = format_duration(self.usual_s), format_duration(self.longest_s)
        return f"Usual duration: {usual} (longest of {self.nights} nights: {longest})."


class NightDeadlines:
    """The deadlines of a home's stages; its last nights are read once."""

    def __init__(self, home: Home, config: HomeConfig) -> None:
        self._home, self._config = home, config
        self._found: dict[tuple[str, str, str, str], JobDeadline] = {}
        self._alike: dict[tuple[str, str, str], bool] = {}

    def find(self, job: Job, stage: Stage, fingerprint: str) -> JobDeadline:
        """The deadline of a stage of a job whose code and config have that fingerprint."""
        key = (job.kind, job.name, stage.name, fingerprint)
        if key not in self._found:
            self._found[key] = self._learn(job, stage, fingerprint)
        return self._found[key]

    def _learn(self, job: Job, stage: Stage, fingerprint: str) -> JobDeadline:
        went_well = self._seconds_by_step.get((job.kind, job.name, stage.name), [])
        seconds = [
            elapsed_s for stamp, elapsed_s in went_well if not job.measures or self._is_alike(job, stamp, fingerprint)
        ]
        stated = job.find_stated_timeout_s(stage, self._config)
        if len(seconds) < _LEAST:
            return JobDeadline(stated or stage.timeout_s)
        longest = max(seconds)
        learned = round(min(max(longest * TIMES, FLOOR_S), stage.timeout_s * CAP_TIMES))
        return JobDeadline(stated or learned, statistics.median(seconds), longest, len(seconds))

    @functools.cached_property
    def _seconds_by_step(self) -> Mapping[tuple[str, str, str], list[tuple[str, float]]]:
        """Stamp and seconds of each stage that went well on the last nights, by kind and name of its job.

        The nights themselves are not kept: of 2,000 jobs each they fill hundreds of megabytes.
        """
        seconds = defaultdict[tuple[str, str, str], list[tuple[str, float]]](list)
        for night in self._home.last_nights(_NIGHTS):
            for job in night.jobs:
                for step in job.steps:
                    if step.state == OK:
                        seconds[job.kind, job.name, step.stage].append((night.stamp, step.elapsed_s))
        return seconds

    def _is_alike(self, job: Job, stamp: str, fingerprint: str) -> bool:
        """Return True where the experiment had this code and config on that night, and as much to measure."""
        key = (job.name, stamp, fingerprint)
        if key not in self._alike:
            self._alike[key] = self._read_whether_alike(*key)
        return self._alike[key]

    def _read_whether_alike(self, name: str, stamp: str, fingerprint: str) -> bool:
        try:
            value = common.read_json(self._home.data_file(name, stamp))
        except DashboardError:
            return False
        return common.object_in(value, "night").get("fingerprint") == fingerprint and not is_shortened(value)


def is_shortened(value: common.Json) -> bool:
    """Return True where points of that night ended after one pair, as the code that they ran was unchanged."""
    records = value.get("records") if isinstance(value, dict) else None
    infos = (common.object_in(record, "additional_info") for record in (records if isinstance(records, list) else ()))
    return any(info.get("ended_by") == _UNCHANGED for info in infos)


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


def summarize_estimates(plan: Plan) -> list[str]:
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
