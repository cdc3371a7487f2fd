"""How long a stage may take: as the config says, else as its own history says, else as the protocol does.

A stage that hangs is ended after a small multiple of what it usually takes, not after hours. Only nights of the same
code and config count, and none that had less to measure; docs/decisions/0140-deadlines-learn.md says why these numbers.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from dashboard.night.estimate import is_shortened
from dashboard.plan.job import Job
from dashboard.plan.settings import HomeConfig
from tvmdash import common
from tvmdash.dashboard_info import OK, Home, Night
from tvmdash.errors import DashboardError
from tvmdash.stages import Stage
from tvmdash.text import format_duration

TIMES, FLOOR_S, CAP_TIMES = 4, 900, 3
"""Of the longest night; never less than the floor, nor more than so many times what the protocol allows."""
_NIGHTS, _LEAST = 15, 5


@dataclass(frozen=True)
class Deadline:
    """The seconds that a stage may take; usual_s: it takes in the middle, where that is known, as of `nights`."""

    seconds: int
    usual_s: float | None = None
    longest_s: float = 0.0
    nights: int = 0

    @property
    def text(self) -> str:
        """What it usually takes, as a sentence; empty where that is not known."""
        if self.usual_s is None:
            return ""
        usual, longest = format_duration(self.usual_s), format_duration(self.longest_s)
        return f"Usual duration: {usual} (longest of {self.nights} nights: {longest})."


class Deadlines:
    """The deadlines of a home's stages; its last nights are read once."""

    def __init__(self, home: Home, config: HomeConfig) -> None:
        self._home, self._config = home, config
        self._alike: dict[tuple[str, str], frozenset[str]] = {}

    def find(self, job: Job, stage: Stage, fingerprint: str) -> Deadline:
        """The deadline of a stage of a job whose code and config have that fingerprint."""
        seconds = list(self._list_seconds(job, stage, fingerprint))
        stated = job.find_stated_timeout_s(stage, self._config)
        if len(seconds) < _LEAST:
            return Deadline(stated or stage.timeout_s)
        longest = max(seconds)
        learned = round(min(max(longest * TIMES, FLOOR_S), stage.timeout_s * CAP_TIMES))
        return Deadline(stated or learned, statistics.median(seconds), longest, len(seconds))

    @functools.cached_property
    def _nights(self) -> tuple[Night, ...]:
        return tuple(self._home.last_nights(_NIGHTS))

    def _list_seconds(self, job: Job, stage: Stage, fingerprint: str) -> Iterator[float]:
        """What the stage took on the last nights on which it went well, newest first."""
        alike = self._find_alike(job, fingerprint) if job.measures else None
        for night in self._nights:
            if alike is None or night.stamp in alike:
                jobs = [each for each in night.jobs if (each.kind, each.name) == (job.kind, job.name)]
                steps = [step for each in jobs for step in each.steps]
                yield from (step.elapsed_s for step in steps if (step.stage, step.state) == (stage.name, OK))

    def _find_alike(self, job: Job, fingerprint: str) -> frozenset[str]:
        """The nights on which the experiment had this code and config, and as much to measure."""
        key = (job.name, fingerprint)
        if key not in self._alike:
            stamps = [night.stamp for night in self._nights]
            self._alike[key] = frozenset(stamp for stamp in stamps if self._is_alike(job, stamp, fingerprint))
        return self._alike[key]

    def _is_alike(self, job: Job, stamp: str, fingerprint: str) -> bool:
        try:
            value = common.read_json(self._home.data_file(job.name, stamp))
        except DashboardError:
            return False
        return common.object_in(value, "night").get("fingerprint") == fingerprint and not is_shortened(value)
