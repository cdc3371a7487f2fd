"""What the score subsystem leaves: page.json, the scores of tonight, and scores.json, those of all nights."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash.structured import Stamp

PAGE_FILE, SCORES_FILE = "page.json", "scores.json"
SCHEMA_VERSION = 1


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
    """Why a workload has no value."""

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
        """The same for workloads that the same thing keeps from having a value."""
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
    """The scores of the night `stamp`; `faults` of the config say what of it cannot be used, `history` is a file."""

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
        """Whether no workload is missing; an incomplete score is compared with nothing."""
        return self.value is not None and bool(self.expected) and not self.missing


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
