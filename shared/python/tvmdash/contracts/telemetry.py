"""What the telemetry subsystem leaves: page.json, the machine during the runs of one night."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmdash import structured
from tvmdash.contracts.scores import Graph
from tvmdash.errors import DashboardError
from tvmdash.machine.telemetry import Cost
from tvmdash.structured import Stamp

PAGE_FILE = "page.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class OutlierTrial:
    """A trial with samples far above its median: `times` is the worst over the median, begin and end are of the run."""

    label: str
    times: float
    begin_s: float = 0.0
    end_s: float = 0.0
    count: int = 0
    worst_ms: float = 0.0
    median_ms: float = 0.0


@dataclass(frozen=True)
class TelemetryRun:
    """One experiment's run: what was `abnormal`, in sentences, and least, median and greatest of each reading.

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
    """The runs of the night `stamp` that were recorded, and what of them cannot be read."""

    stamp: Stamp
    runs: tuple[TelemetryRun, ...]
    faults: tuple[str, ...] = ()
    title: str = "The machine during the runs"


@dataclass(frozen=True)
class _AbnormalRun:
    """What those read of a run who tell nothing else of it."""

    experiment: str
    abnormal: tuple[str, ...]


@dataclass(frozen=True)
class _AbnormalRuns:
    stamp: Stamp
    runs: tuple[_AbnormalRun, ...]


def find_abnormal_runs(page: Path, stamp: str) -> dict[str, str] | None:
    """What was found abnormal in the night `stamp`, in sentences by experiment; "" where nothing.

    None where the subsystem did not judge this night: it may be off, or have left something else.
    """
    try:
        found = structured.read(_AbnormalRuns, page)
    except DashboardError:
        return None
    if found is None or found.stamp != stamp:
        return None
    return {run.experiment: " ".join(run.abnormal) for run in found.runs}
