"""What came of a comparison, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dashboard.investigate.rounds import RoundOutcome, RoundState
from dashboard.investigate.series_selection import WantedSeries
from tvmdash.series import naming
from tvmdash.stats.comparison import LEAST_ROUNDS, ComparedDifference, find_differences

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Side:
    """One of the two: as it was asked for, what it was, and a sentence where that is not quite the same."""

    asked: str
    artifact: Mapping[str, Any]
    note: str = ""


@dataclass
class Compared:
    """One series with what each round that measured both gave, as (A, B)."""

    series: WantedSeries
    rounds: list[tuple[float, float]] = field(default_factory=list)
    difference: ComparedDifference | None = None

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        return {**asdict(self.series), "rounds": self.rounds, "difference": self.difference and asdict(self.difference)}


@dataclass
class Comparison:
    """What came of it. rounds: how many each experiment had. errors: why one could not go on, by its name.

    over: experiments that did not get all their rounds, because the budget was over.
    """

    stamp: str
    a: Side
    b: Side
    seed: int
    machine: Mapping[str, Any]
    repository: Mapping[str, Any]
    series: dict[str, Compared] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    fingerprints: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    over: list[str] = field(default_factory=list)
    elapsed_s: float = 0.0

    @property
    def well(self) -> bool:
        """Whether every experiment was measured, often enough to be judged."""
        return not self.errors and all(self.rounds.get(name, 0) >= LEAST_ROUNDS for name in (*self.rounds, *self.over))

    def has_ended(self, experiment: str) -> bool:
        """Whether the experiment gets no more rounds."""
        return experiment in self.errors or experiment in self.over

    def add(self, outcome: RoundOutcome) -> None:
        """Count a round of A and B; what ended it ends the experiment's part of the comparison."""
        name = outcome.round.experiment
        if outcome.state is RoundState.BUDGET:
            self.over.append(name)
        elif not outcome.is_measured:
            version = (self.a, self.b)[outcome.at].artifact["version"]
            self.errors[name] = f"on {'AB'[outcome.at]}, TVM {version}: {outcome.error}"
        else:
            self.rounds[name] = self.rounds.get(name, 0) + 1
            a, b = (run.values for run in outcome.runs)
            values = {point.key.id: point.value for point in a}
            for point in b:
                if point.key.id in values:
                    compared = self.series.setdefault(point.key.id, Compared(WantedSeries.of(point)))
                    compared.rounds.append((values[point.key.id], point.value))

    def judge(self) -> None:
        """Name each series and say of each whether its difference is real."""
        every = list(self.series.values())
        names = naming.names([compared.series for compared in every])
        judged = find_differences([compared.rounds for compared in every])
        for compared, name, difference in zip(every, names, judged, strict=True):
            compared.series, compared.difference = replace(compared.series, name=name), difference

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        series = [compared.to_json() for compared in self.series.values()]
        return {"schema_version": SCHEMA_VERSION, **asdict(self), "series": series}
