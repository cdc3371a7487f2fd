"""The raw evidence of one night's re-measuring, kept in remeasured/<stamp>.json."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.errors import DashboardError
from tvmdash.verdict.remeasured import SCHEMA_VERSION, ConfirmationSummary, Lack, Outcome, RatioRun, Remeasured, Run

FOLDER = "remeasured"
RUNNING, COMPLETE, BUDGET, BROKEN = "running", "complete", "budget", "broken"
"""Why measuring ended: it has not; all is clear; the time was over; it could not be called."""
MEASURED = "measured"
MOST_NIGHTS = 60
"""Older pairs say nothing of builds that are still in question."""


@dataclass(frozen=True)
class Evidence(Remeasured):
    """All of one night, in the order of time."""

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)

    @functools.cached_property
    def _values(self) -> Mapping[tuple[str, str], Sequence[float]]:
        values: dict[tuple[str, str], list[float]] = {}
        for run in (run for run in self.runs if not run.beside):
            for series, value in run.values.items():
                values.setdefault((series, run.artifact), []).append(value)
        return values

    def values(self, series: str, artifact: str) -> Sequence[float]:
        """Return the series' values with that artifact, in the order they were measured."""
        return self._values.get((series, artifact), ())

    def ratios(self, series: str, artifact: str, beside: str) -> Sequence[RatioRun]:
        """Return the series' ratios of the two artifacts, in the order they were measured."""
        runs = (run for run in self.runs if (run.artifact, run.beside) == (artifact, beside))
        return [run.ratios[series] for run in runs if series in run.ratios]

    def lack(self, series: str, experiment: str, artifact: str, beside: str = "") -> Lack | None:
        """Find why the series can no longer be measured with that artifact, in turn with `beside` where given."""
        asked = (experiment, artifact, beside)
        same = (lack for lack in self.lacks if (lack.experiment, lack.artifact, lack.beside) == asked)
        return next((lack for lack in same if lack.series in {"", series}), None)

    def with_more(self, runs: Sequence[Run], lacks: Sequence[Lack]) -> Evidence:
        return replace(self, runs=(*self.runs, *runs), lacks=(*self.lacks, *lacks))


@dataclass(frozen=True)
class PairsOfNight:
    """One run of two artifacts in turn on the night `stamp`: ratios by the ID of the series."""

    stamp: str
    artifact: str
    beside: str
    ratios: Mapping[str, RatioRun]


def read_pairs(output: Path) -> list[PairsOfNight]:
    """Read the pairs of the last nights that measured any again; a damaged file counts for nothing."""
    found = []
    for path in sorted((output / FOLDER).glob("*.json"))[-MOST_NIGHTS:]:
        with contextlib.suppress(DashboardError):  # told on the night whose file it is
            kept = read(output, path.stem)
            found += (
                [PairsOfNight(path.stem, run.artifact, run.beside, run.ratios) for run in kept.runs if run.beside]
                if kept
                else []
            )
    return found


def file(output: Path, stamp: str) -> Path:
    return output / FOLDER / f"{stamp}.json"


def read(output: Path, stamp: str) -> Evidence | None:
    """Return None where nothing was measured again. Raise DashboardError where the file is damaged."""
    return structured.read(Evidence, file(output, stamp), remedy="Restore it from the backup, or delete it.")


def write(output: Path, evidence: Evidence) -> None:
    """Keep the evidence, also an unfinished one: whoever goes on with that night measures none of it twice."""
    path = file(output, evidence.night)
    path.parent.mkdir(exist_ok=True)
    common.write_json(path, {"schema_version": SCHEMA_VERSION, **structured.to_json(evidence)})


@dataclass(frozen=True)
class Confirmation:
    """The night's re-measuring as a whole. `off`: why there is none."""

    evidence: Evidence
    outcomes: tuple[Outcome, ...] = ()
    off: str = ""

    @property
    def summary(self) -> ConfirmationSummary:
        """As the page holds it."""
        evidence = self.evidence
        return ConfirmationSummary(
            self.off,
            len(evidence.runs),
            round(evidence.seconds, 3),
            evidence.budget_s,
            evidence.ended,
            evidence.words,
            self.outcomes,
            evidence.lacks,
        )
