"""What `bisect` leaves as its answer, results/bisections/NAME.json, and an incident may be told."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SCHEMA_VERSION = 1


class BisectionState(enum.StrEnum):
    """How it ended: one culprit; a range that cannot be made shorter; the ends do not differ; the budget was over."""

    FOUND = "found"
    RANGE = "range"
    NO_STEP = "no step"
    OVER = "budget"


@dataclass(frozen=True)
class Suspect:
    """A TVM of the range: the commit's 40 digits, or the version; of a version, title, author and date are empty."""

    id: str = ""
    title: str = ""
    author: str = ""
    date: str = ""

    @property
    def text(self) -> str:
        """As in `1b565e7c3 "Title" by Ada, 2026-08-07`."""
        if not self.title:
            return self.id
        return f'{self.id[:12]} "{self.title}" by {self.author}, {self.date[:10]}'


@dataclass(frozen=True)
class Bisection:
    """The answer. suspects: one of them is the culprit with this probability. effect, low, high: fractions, 95 %.

    measurements: runs of the experiment, two a pair; `least` of them by information theory. builds: made for this
    search. failed: why, by commit. noise: deviation of one pair. elapsed_s: of all calls that went into it.
    """

    state: BisectionState
    series: str
    name: str
    builds: int
    measurements: int
    elapsed_s: float
    experiment: str = ""
    direction: Literal["lower", "higher", "none"] = "lower"
    good: Suspect = field(default_factory=Suspect)
    bad: Suspect = field(default_factory=Suspect)
    candidates: int = 0
    ends: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    error: float = 0.0
    journal: str = ""
    suspects: tuple[Suspect, ...] = ()
    probability: float = 0.0
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    noise: float | None = None
    least: float | None = None

    @property
    def is_answered(self) -> bool:
        """Whether no more can be had, and the step is there."""
        return self.state in (BisectionState.FOUND, BisectionState.RANGE)
