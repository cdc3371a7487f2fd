"""What came of a bisection, as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.investigate.candidate import Candidate
from tvmdash.records.metrics import Direction

SCHEMA_VERSION = 1
FOUND, RANGE, NO_STEP, OVER = "found", "range", "no step", "budget"
"""How it ended: one culprit; a range that cannot be made shorter; the ends do not differ; the budget was over."""


@dataclass(frozen=True)
class Result:
    """The answer. suspects: one of them is the culprit with this probability. effect, low, high: fractions, 95 %.

    measurements: runs of the experiment, two a pair; `least` of them by information theory. builds: made for this
    search. failed: why, by commit. noise: deviation of one pair. elapsed_s: of all calls that went into it.
    """

    state: str
    experiment: str
    series: str
    name: str
    direction: Direction
    good: Candidate
    bad: Candidate
    candidates: int
    ends: int
    builds: int
    failed: Mapping[str, str]
    measurements: int
    elapsed_s: float
    error: float
    journal: str
    suspects: tuple[Candidate, ...] = field(default=())
    probability: float = 0.0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    least: float | None = None

    @property
    def is_answered(self) -> bool:
        """Whether no more can be had, and the step is there."""
        return self.state in (FOUND, RANGE)

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        builds = {"good": self.good.to_json(), "bad": self.bad.to_json()}
        suspects = [candidate.to_json() for candidate in self.suspects]
        return {"schema_version": SCHEMA_VERSION, **asdict(self), **builds, "suspects": suspects}
