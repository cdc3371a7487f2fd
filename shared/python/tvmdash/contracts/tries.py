"""What `try` and `compare` leave, results/tries/<stamp>.json: what was measured of two TVMs, and what it says."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tvmdash.records.metrics import Kind
from tvmdash.structured import Stamp

SCHEMA_VERSION = 1
REQUEST_VERSION = 1
LEAST_PAIRS = 10
"""Of fewer pairs a narrow interval may be luck, and to end on it would keep the luck."""


class TryState(enum.StrEnum):
    """How far it came: measuring, or killed at it; all intervals narrow enough; out of time; interrupted."""

    RUNNING = "running"
    DONE = "done"
    OVER = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class RunOfPairs:
    """What the pairs of one run say: the mean of their natural logarithms of candidate / base, and how they scatter."""

    log: float
    std: float
    pairs: int


@dataclass(frozen=True)
class PooledChange:
    """The candidate against the base: `effect` is a fraction (0.05: 5 % more), `low` and `high` bound it with 95 %.

    within: how far the interval reaches from the effect. visible: the least change that would have been called real.
    real: told. standing: as the judge decides, empty in older files. measured: how far the interval would reach if
    builds did not differ by luck, which is what more pairs narrow.
    """

    effect: float
    low: float
    high: float
    within: float
    visible: float
    pairs: int
    real: bool
    standing: str = ""
    measured: float | None = None

    def is_known(self, until: float) -> bool:
        """Whether more pairs would narrow the interval below that no more, and not by luck."""
        measured = self.within if self.measured is None else self.measured
        return measured <= until and self.pairs >= LEAST_PAIRS


@dataclass(frozen=True)
class TriedTvm:
    """One of the two TVMs: as it was asked for, the key of the artifact, what it is.

    note: why it was taken, where nobody named it, or how it is not quite what was asked for.
    """

    asked: str
    key: str
    version: str
    commit: str | None = None
    note: str = ""

    @property
    def exact_name(self) -> str:
        """What asks for this very commit or version again, also after a branch has moved."""
        remote, sign, _ = self.asked.rpartition("@")
        if self.asked.startswith(("pypi:", "pypi+pre:")):
            return f"{self.asked.partition(':')[0]}:{self.version}"
        if self.asked.startswith("wheel:"):
            is_of_home = not sign and (self.asked == "wheel:latest" or self.asked[len("wheel:")].isdigit())
            return f"wheel:{self.version}" if is_of_home else f"{remote or self.asked}@{self.version}"
        if self.commit and self.asked.startswith("git:"):
            return f"git:{self.commit}"
        return f"{remote}@{self.commit}" if self.commit and sign else self.asked


@dataclass(frozen=True)
class TriedSeries:
    """One series: what was measured of it, and what that says together.

    runs: of a time that pairs of processes measured in turn, what each run gave. rounds: of any other number, that of
    the base and that of the candidate in each run. change: null with fewer than five pairs or rounds.
    """

    id: str
    experiment: str
    metric: str
    labels: Mapping[str, Any]
    direction: Literal["lower", "higher", "none"] = "lower"
    title: str = ""
    name: str = ""
    runs: tuple[RunOfPairs, ...] = ()
    change: PooledChange | None = None
    unit: str = ""
    rounds: tuple[tuple[float, float], ...] = ()

    @property
    def pairs(self) -> int:
        """How often both were measured."""
        return sum(run.pairs for run in self.runs) + len(self.rounds)

    @property
    def has_ratio(self) -> bool:
        """Whether its values can be divided."""
        return bool(self.runs) or all(min(values) > 0 for values in self.rounds)

    def is_known(self, until: float) -> bool:
        """Whether its interval is as narrow as it should be."""
        return self.change is not None and self.change.is_known(until)


@dataclass(frozen=True)
class TriedNumber:
    """A number without noise, as a size: on the base and the candidate. It varies where runs disagree about it."""

    id: str
    experiment: str
    metric: str
    labels: Mapping[str, Any]
    base: float
    candidate: float
    unit: str = ""
    direction: Literal["lower", "higher", "none"] = "lower"
    title: str = ""
    name: str = ""
    varies: bool = False
    kind: Kind = "exact"
    tolerance: float = 0.0

    @property
    def is_changed(self) -> bool:
        """Whether the two differ, in every run."""
        return not self.varies and self.base != self.candidate


@dataclass(frozen=True)
class Asked:
    """Who asked for a try and when, and how long had been measured before."""

    by: str
    at: Stamp
    measured_s: float = 0.0


@dataclass(frozen=True)
class Try:
    """What came of it. until: how far the 95 % interval of every series was to reach at most, as a fraction.

    experiments: the fingerprint of the code and config of each that takes part. runs: how many each had. errors: why
    one could not go on. left_out: why one says nothing of these two TVMs. alone: series that were measured on the
    candidate only. measured_s: the time that measuring took, over all calls. requests: who asked for it, by the
    request's ID.
    """

    stamp: str
    state: TryState
    candidate: TriedTvm
    base: TriedTvm
    until: float
    machine: str
    experiments: Mapping[str, str]
    runs: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    series: tuple[TriedSeries, ...] = ()
    numbers: tuple[TriedNumber, ...] = ()
    measured_s: float = 0.0
    requests: Mapping[str, Asked] = field(default_factory=dict)


@dataclass(frozen=True)
class TryRequest:
    """What somebody asked for: results/tries/queue/<id>.json, and results/tries/running/<id>.json while it is measured.

    candidate, base: as people name TVMs; without a base it is what suits the candidate. experiments: none of them means
    all. until: as a fraction. budget_s: for measuring. rebuild: get what is not at hand. fresh: what earlier calls
    measured does not count. goes_on: the stamp of the try that it goes on with. failed: why nothing could be measured;
    it then waits until somebody resumes or cancels it. rounds: measure every series so often, however narrow its
    interval is; 0: until all are narrow.
    """

    candidate: str
    asked_by: str
    asked_at: Stamp
    base: str | None = None
    experiments: tuple[str, ...] = ()
    until: float = 0.01
    budget_s: float = 7200.0
    rebuild: bool = True
    seed: int | None = None
    fresh: bool = False
    goes_on: str = ""
    failed: str = ""
    rounds: int = 0
