"""Files that the subsystems score, telemetry and deadline leave for the website and other readers."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.machine.telemetry import Cost

SCORE, TELEMETRY, DEADLINE = "score", "telemetry", "deadline"
PAGE_FILE, SCORES_FILE, DEADLINES_FILE = "page.json", "scores.json", "deadlines.json"
SCHEMA_VERSION = 1
LIVE_FILE = "live.js"
"""State of the running or last night, in the website's folder. Every site has it."""


class LiveState(enum.StrEnum):
    """State of the night in LIVE_FILE; a `running` one that is not updated any more has died."""

    NONE = "none"
    RUNNING = "running"
    ENDED = "ended"
    INTERRUPTED = "interrupted"


def as_script(name: str, content: bytes) -> bytes:
    """Return JSON as a script, whole on its second line: a page opened from disk cannot fetch data."""
    return b'(globalThis.tvmdashFiles ??= {})["%b"]=\n%b\n' % (name.encode("ascii"), content)


@dataclass(frozen=True)
class WorkloadValue:
    """A workload's part of a score: a ratio, a time, or `value` correct points of `total`, and those not checked."""

    workload: str
    value: float
    low: float | None = None
    high: float | None = None
    total: int | None = None
    unchecked: int = 0


class Lack(enum.StrEnum):
    """Reasons for a workload without a value."""

    NO_DATA = "no_data"
    FAILED = "failed"
    NO_RECORD = "no_record"
    SEVERAL_RECORDS = "several_records"
    NO_METRIC = "no_metric"
    NOT_CHECKED = "not_checked"


@dataclass(frozen=True)
class Missing:
    """A workload without a value, and why: `reason` for people; for programs `lack`, with what it is `of`.

    of: the experiment, or what selects the records; then the error, or how many records there are.
    """

    workload: str
    reason: str
    lack: Lack | None = None
    of: tuple[str, ...] = ()

    @property
    def cause(self) -> tuple[str, ...]:
        """Return a key that is equal for workloads without a value for one reason."""
        return (self.lack, *self.of) if self.lack else ("", self.reason)


@dataclass(frozen=True)
class LeftOut:
    """A score that is not made, because these experiments that it reads are switched off."""

    id: str
    title: str
    experiments: tuple[str, ...]


@dataclass(frozen=True)
class Before:
    """The value of the last night that a score may be compared with."""

    stamp: Stamp
    value: float | None


@dataclass(frozen=True)
class Graph:
    """A picture, below the folder of the file that names it, with its content in words."""

    file: str
    alt: str


@dataclass(frozen=True)
class ScoreTonight:
    """One score tonight, over the workloads that have a value; complete where none is missing.

    words: all of it in words; headline, details: the value, and what belongs to it, where they are told apart.
    """

    id: str
    title: str
    kind: str
    unit: str
    lower_is_better: bool
    value: float | None
    low: float | None
    high: float | None
    complete: bool
    words: str
    before: Before | None
    workloads: tuple[WorkloadValue, ...]
    missing: tuple[Missing, ...]
    graphs: tuple[Graph, ...]
    headline: str = ""
    details: str = ""


@dataclass(frozen=True)
class ScorePage:
    """The scores of the night `stamp`; `faults` lists what is unusable of the config, `history` names a file."""

    stamp: Stamp
    scores: tuple[ScoreTonight, ...]
    faults: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    title: str = "Scores"
    history: str = SCORES_FILE


@dataclass(frozen=True)
class ScoredNight:
    """A score on one night, over the `expected` workloads without the `missing` ones.

    config names the experiments' own fields; without `has_data` they left nothing.
    """

    stamp: str
    value: float | None
    low: float | None
    high: float | None
    expected: tuple[str, ...]
    missing: tuple[str, ...]
    config: str = ""
    has_data: bool = True
    tvm_hash: str = ""

    @property
    def complete(self) -> bool:
        """Return True where no workload is missing; an incomplete score is compared with nothing."""
        return self.value is not None and bool(self.expected) and not self.missing

    def is_comparable(self, other: ScoredNight) -> bool:
        """Return True where both are complete, over the same workloads."""
        return self.complete and other.complete and set(self.expected) == set(other.expected)


@dataclass(frozen=True)
class ScoreHistory:
    """A score with its nights, oldest first; `definition` is that of the config it was made with."""

    id: str
    title: str
    unit: str
    points: tuple[ScoredNight, ...]
    lower_is_better: bool = False
    definition: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Scores:
    """Every score that ever was: those that the config defines now first."""

    scores: tuple[ScoreHistory, ...]


@dataclass(frozen=True)
class OutlierTrial:
    """A trial with samples far above its median: `times` is the worst over the median, begin and end are of the run.

    Raw data tells no closer when they were than the trial's span.
    """

    label: str
    times: float
    begin_s: float = 0.0
    end_s: float = 0.0
    count: int = 0
    worst_ms: float = 0.0
    median_ms: float = 0.0


@dataclass(frozen=True)
class TelemetryRun:
    """One experiment's run: `abnormal` sentences, and minimum, median and maximum of each reading.

    outliers: the worst of `outliers_in_all`; outliers_unknown: why they are not known. cost: of the recording itself.
    """

    experiment: str
    readings: int
    abnormal: tuple[str, ...]
    ranges: Mapping[str, tuple[float, float, float]]
    outliers: tuple[OutlierTrial, ...]
    outliers_in_all: int
    graph: Graph
    rate_per_s: float = 0.0
    cost: Cost | None = None
    outliers_unknown: str | None = None


@dataclass(frozen=True)
class TelemetryPage:
    """The recorded runs of the night `stamp`; `faults` lists unreadable ones."""

    stamp: Stamp
    runs: tuple[TelemetryRun, ...]
    faults: tuple[str, ...] = ()
    title: str = "The machine during the runs"

    def find_abnormal(self) -> dict[str, str]:
        """Return the abnormal readings of each experiment as text, "" where there are none."""
        return {run.experiment: " ".join(run.abnormal) for run in self.runs}


def read_telemetry(home: Home, stamp: str) -> TelemetryPage | None:
    """Read telemetry's page of the night `stamp`; None where it made none: it is off, or its file is another's."""
    with contextlib.suppress(DashboardError):
        page = structured.read(TelemetryPage, home.output(TELEMETRY) / PAGE_FILE)
        return page if page and page.stamp == stamp else None
    return None


@dataclass(frozen=True)
class DeadlineAhead:
    """A deadline at the moment `utc`; `left` and `moment` are words for people, `near`: it pings."""

    title: str
    utc: str
    words: str
    url: str
    near: bool
    name: str = ""
    local: str = ""
    time_zone: str = ""
    seconds_left: int = 0
    left: str = ""
    moment: str = ""


@dataclass(frozen=True)
class DeadlinesAhead:
    """Deadlines ahead on that night, nearest first."""

    deadlines: tuple[DeadlineAhead, ...]
    night: Stamp | None = None


def write(path: Path, page: ScorePage | TelemetryPage | DeadlinesAhead) -> None:
    """Write a page atomically."""
    common.write_json(path, {"schema_version": SCHEMA_VERSION, **structured.to_json(page)})
