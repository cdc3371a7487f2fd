"""Time limits of stages: from the config, else from the stage's own history, else from the protocol.

A stage that hangs is ended after a small multiple of what it usually takes, not after hours. Only nights of the same
code and config count, and none that had less to measure; docs/decisions/0140-deadlines-learn.md says why these numbers.
"""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.plan.job import Job
from dashboard.plan.settings import HomeConfig
from tvmdash import common
from tvmdash.dashboard_info import OK, Home
from tvmdash.dashboard_info.stages import Stage
from tvmdash.errors import DashboardError
from tvmdash.text import format_duration

TIMES, FLOOR_S, CAP_TIMES = 4, 900, 3
"""Multiples of the longest night; never less than the floor, nor more than so many times the protocol's limit."""
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
        """Return the deadline of a stage of a job whose code and config have that fingerprint."""
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
