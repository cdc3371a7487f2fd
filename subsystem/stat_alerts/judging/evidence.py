"""What was measured again on one night: the raw evidence, kept in remeasured/<stamp>.json."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, structured

FOLDER = "remeasured"
SCHEMA_VERSION = 1
RUNNING, COMPLETE, BUDGET, BROKEN = "running", "complete", "budget", "broken"
"""Why measuring ended: it has not; all is clear; the time was over; it could not be called."""
MEASURED = "measured"


@dataclass(frozen=True)
class Run:
    """One run of an experiment with the artifact of the night `stamp`; values by the ID of the series."""

    experiment: str
    stamp: str
    artifact: str
    values: Mapping[str, float]
    seconds: float


@dataclass(frozen=True)
class Lack:
    """What could not be measured: an artifact (`state`: gone, failed, ...), or one series with it."""

    experiment: str
    stamp: str
    artifact: str
    state: str
    error: str
    series: str = ""


@dataclass(frozen=True)
class Evidence:
    """All of one night, in the order of time."""

    night: str
    budget_s: float = 0.0
    runs: tuple[Run, ...] = ()
    lacks: tuple[Lack, ...] = ()
    ended: str = RUNNING
    words: str = ""

    @property
    def seconds(self) -> float:
        """What the runs took."""
        return sum(run.seconds for run in self.runs)

    @functools.cached_property
    def _values(self) -> Mapping[tuple[str, str], Sequence[float]]:
        found: dict[tuple[str, str], list[float]] = {}
        for run in self.runs:
            for series, value in run.values.items():
                found.setdefault((series, run.artifact), []).append(value)
        return found

    def values(self, series: str, artifact: str) -> Sequence[float]:
        """The series' values with that artifact, as they were measured one after the other."""
        return self._values.get((series, artifact), ())

    def lack(self, series: str, experiment: str, artifact: str) -> Lack | None:
        """Why the series cannot be measured with that artifact any more."""
        same = (lack for lack in self.lacks if (lack.experiment, lack.artifact) == (experiment, artifact))
        return next((lack for lack in same if lack.series in {"", series}), None)

    def with_more(self, runs: Sequence[Run], lacks: Sequence[Lack]) -> Evidence:
        return replace(self, runs=(*self.runs, *runs), lacks=(*self.lacks, *lacks))


def file(output: Path, stamp: str) -> Path:
    """Where a night's evidence lies."""
    return output / FOLDER / f"{stamp}.json"


def read(output: Path, stamp: str) -> Evidence | None:
    """What is kept of a night; None where nothing was measured again. DashboardError where it is damaged."""
    return structured.read(Evidence, file(output, stamp), remedy="Restore it from the backup, or delete it.")


def write(output: Path, evidence: Evidence) -> None:
    """Keep the evidence, also an unfinished one: whoever goes on with that night measures none of it twice."""
    path = file(output, evidence.night)
    path.parent.mkdir(exist_ok=True)
    common.write_json(path, {"schema_version": SCHEMA_VERSION, **structured.to_json(evidence)})


REPRODUCED, OUTLIER, MACHINE, UNCLEAR = "reproduced", "outlier", "machine", "unclear"
MODES, YOUNG, UNMEASURED = "modes", "young", "unmeasured"


@dataclass(frozen=True)
class Outcome:
    """What measuring one series again came to. new, old: how many runs of artifacts since and before the suspected cut.

    same: all were of one artifact. changed: the experiment's code or config did, within what was compared.
    effect, low, high: of the new against the old, both measured tonight, with 95 % confidence. evidence: what says that
    it was the machine, in the words of change_cause.
    """

    series: str
    name: str
    outcome: str
    new: int = 0
    old: int = 0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    same: bool = False
    changed: bool = False
    why: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Confirmation:
    """The night's re-measuring as a whole. `off`: why there is none."""

    evidence: Evidence
    outcomes: tuple[Outcome, ...] = ()
    off: str = ""

    def to_json(self) -> dict[str, Any]:
        """As the page holds it."""
        evidence = self.evidence
        return {
            "off": self.off,
            "runs": len(evidence.runs),
            "seconds": round(evidence.seconds, 3),
            "budget_s": evidence.budget_s,
            "ended": evidence.ended,
            "words": evidence.words,
            "series": [asdict(one) for one in self.outcomes],
            "lacking": [asdict(one) for one in evidence.lacks],
        }
