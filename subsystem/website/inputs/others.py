"""What telemetry and deadline left for the page."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from inputs import parsing
from tvmdash import structured
from tvmdash.contracts import deadlines, telemetry
from tvmdash.contracts.deadlines import DeadlineAhead, DeadlinesAhead
from tvmdash.contracts.telemetry import TelemetryPage, TelemetryRun
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

TELEMETRY, DEADLINE = "telemetry", "deadline"


@dataclass(frozen=True)
class TelemetryRuns:
    """The runs of one night ("" where there is none)."""

    stamp: str = ""
    runs: tuple[TelemetryRun, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def disturbed(self) -> list[str]:
        """The experiments in whose run something was abnormal."""
        return [run.experiment for run in self.runs if run.abnormal]

    def of(self, experiment: str) -> TelemetryRun | None:
        return next((run for run in self.runs if run.experiment == experiment), None)


@dataclass(frozen=True)
class Deadline:
    """What is due; `left` as in "in 11 days", `words` its moment, `url` only where it leads to a web page.

    Of a file that has no parts, `left` is all of its words.
    """

    title: str
    left: str
    words: str
    url: str
    near: bool


@dataclass(frozen=True)
class Deadlines:
    """Those that were ahead when they were written, nearest first."""

    coming: tuple[Deadline, ...] = ()
    faults: tuple[str, ...] = ()


def read_telemetry(home: Home) -> TelemetryRuns:
    """What stands there; damaged, it is told."""
    path = home.output(TELEMETRY) / telemetry.PAGE_FILE
    try:
        page = structured.read(TelemetryPage, path)
    except DashboardError as error:
        return TelemetryRuns(faults=(parsing.fault_of(path, error),))
    return TelemetryRuns() if page is None else TelemetryRuns(page.stamp, page.runs, page.faults)


def read_deadlines(home: Home, now: datetime.datetime) -> Deadlines:
    """Those that are still ahead of `now`; damaged, it is told."""
    path = home.output(DEADLINE) / deadlines.DEADLINES_FILE
    try:
        parsed = structured.read(DeadlinesAhead, path)
        rows = [_deadline(deadline, now) for deadline in parsed.deadlines] if parsed else []
    except (ValueError, DashboardError) as error:
        return Deadlines(faults=(parsing.fault_of(path, error),))
    return Deadlines(tuple(row for row in rows if row is not None))


def _deadline(ahead: DeadlineAhead, now: datetime.datetime) -> Deadline | None:
    moment = datetime.datetime.strptime(ahead.utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
    if moment <= now:
        return None
    safe = ahead.url if ahead.url.startswith(("https://", "http://")) else ""
    return Deadline(ahead.title, ahead.left or ahead.words, ahead.moment, safe, near=ahead.near)
