"""What telemetry and deadline left for the page."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inputs import parsing
from inputs.parsing import number, objects, stamp, text
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

TELEMETRY, DEADLINE = "telemetry", "deadline"
PAGE_FILE, DEADLINES_FILE = "page.json", "deadlines.json"


@dataclass(frozen=True)
class Range:
    """Least, median and greatest of one reading."""

    name: str
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class Run:
    """The machine during one experiment's run; `outliers` are trials with outlying samples, in words."""

    experiment: str
    readings: int
    abnormal: tuple[str, ...]
    ranges: tuple[Range, ...]
    outliers: tuple[str, ...]
    outliers_in_all: int
    file: str
    alt: str


@dataclass(frozen=True)
class TelemetryRuns:
    """The runs of one night ("" where there is none)."""

    stamp: str = ""
    runs: tuple[Run, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def disturbed(self) -> list[str]:
        """The experiments in whose run something was abnormal."""
        return [run.experiment for run in self.runs if run.abnormal]

    def of(self, experiment: str) -> Run | None:
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
    path = home.output(TELEMETRY) / PAGE_FILE
    try:
        page = parsing.read_object(path)
        if page is None:
            return TelemetryRuns()
        runs = tuple(map(_run, objects(page["runs"])))
        return TelemetryRuns(stamp(page["stamp"]), runs, parsing.texts(page["faults"]))
    except (*parsing.WRONG, DashboardError) as error:
        return TelemetryRuns(faults=(parsing.fault_of(path, error),))


def _run(one: Mapping[str, Any]) -> Run:
    return Run(
        text(one["experiment"]),
        int(one["readings"]),
        parsing.texts(one["abnormal"]),
        tuple(_range(name, values) for name, values in one["ranges"].items()),
        tuple(
            f"{text(item['label'])}: {number(item['times']) or 0:.1f} times its trial's median"
            for item in objects(one["outliers"])
        ),
        int(one["outliers_in_all"]),
        text(one["graph"]["file"]),
        text(one["graph"]["alt"]),
    )


def _range(name: str, values: object) -> Range:
    if not isinstance(values, list) or len(values) != 3:
        raise TypeError(f"{name}: {values!r:.60} is not least, median and greatest")
    low, middle, high = (number(value) for value in values)
    if low is None or middle is None or high is None:
        raise TypeError(f"{name}: {values!r:.60} has no number")
    return Range(text(name), low, middle, high)


def read_deadlines(home: Home, now: datetime.datetime) -> Deadlines:
    """Those that are still ahead of `now`; damaged, it is told."""
    path = home.output(DEADLINE) / DEADLINES_FILE
    try:
        page = parsing.read_object(path)
        rows = [] if page is None else [_deadline(one, now) for one in objects(page["deadlines"])]
        return Deadlines(tuple(row for row in rows if row is not None))
    except (*parsing.WRONG, DashboardError) as error:
        return Deadlines(faults=(parsing.fault_of(path, error),))


def _deadline(one: Mapping[str, Any], now: datetime.datetime) -> Deadline | None:
    moment = datetime.datetime.strptime(text(one["utc"]), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
    if moment <= now:
        return None
    left, words = text(one.get("left", one["words"])), text(one.get("moment", ""))
    url = text(one["url"])
    safe = url if url.startswith(("https://", "http://")) else ""
    return Deadline(text(one["title"]), left, words, safe, near=bool(one["near"]))
