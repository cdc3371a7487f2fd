"""A trial, results/tries/<stamp>.json: what a command measured of two TVMs, and what that says.

`try`, `compare`, `bisect`, `reproduce` and `backfill` write this one file, and `signoff --json` what it found in theirs
and the nights'; `TrialRequest` waits for a `try`.
"""

from __future__ import annotations

import enum
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.records.metrics import Kind
from tvmdash.trials.signoff import Signoff
from tvmdash.trials.suspect import Suspect

SCHEMA_VERSION = 1
REQUEST_VERSION = 1
LEAST_PAIRS = 10
"""Of fewer pairs a narrow interval may be luck, and to end on it would keep the luck."""


class TrialKind(enum.StrEnum):
    """The command that made it."""

    TRY = "try"
    COMPARE = "compare"
    BISECT = "bisect"
    REPRODUCE = "reproduce"
    BACKFILL = "backfill"
    SIGNOFF = "signoff"


class TrialState(enum.StrEnum):
    """The state of a trial: measuring, or killed at it; done; out of time; interrupted."""

    RUNNING = "running"
    DONE = "done"
    OVER = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class RunOfPairs:
    """The pairs of one run: the mean of their natural logarithms of candidate / base, and their deviation.

    logs: those of each pair; empty in older files.
    """

    log: float
    std: float
    pairs: int
    logs: tuple[float, ...] = ()

    @classmethod
    def of(cls, logs: Sequence[float]) -> Self:
        return cls(statistics.fmean(logs), statistics.stdev(logs) if len(logs) > 1 else 0.0, len(logs), tuple(logs))


@dataclass(frozen=True)
class TrialChange:
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
        """Return True where the interval is within `until`, but for luck, and rests on enough pairs."""
        measured = self.within if self.measured is None else self.measured
        return measured <= until and self.pairs >= LEAST_PAIRS


@dataclass(frozen=True)
class TrialTvm:
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
        """The name of this very commit or version, also after a branch has moved."""
        if not self.version:
            return self.asked
        remote, sign, _ = self.asked.rpartition("@")
        if self.asked.startswith(("pypi:", "pypi+pre:")):
            return f"{self.asked.partition(':')[0]}:{self.version}"
        if self.asked.startswith("wheel:"):
            # Without a source it is of the home's own page: `wheel:VERSION` names it again.
            is_of_home = not sign and (self.asked == "wheel:latest" or self.asked[len("wheel:")].isdigit())
            return f"wheel:{self.version}" if is_of_home else f"{remote or self.asked}@{self.version}"
        if self.commit and self.asked.startswith("git:"):
            return f"git:{self.commit}"
        return f"{remote}@{self.commit}" if self.commit and sign else self.asked


@dataclass(frozen=True)
class TrialSeries:
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
    change: TrialChange | None = None
    unit: str = ""
    rounds: tuple[tuple[float, float], ...] = ()
    kind: Kind = "time"

    @property
    def pairs(self) -> int:
        """Number of times that both were measured."""
        return sum(run.pairs for run in self.runs) + len(self.rounds)

    @property
    def has_ratio(self) -> bool:
        """True where its values can be divided."""
        return bool(self.runs) or all(min(values) > 0 for values in self.rounds)

    @property
    def levels(self) -> tuple[float, ...]:
        """The geometric mean of the rounds on the base and on the candidate, where they have a ratio."""
        return tuple(map(statistics.geometric_mean, zip(*self.rounds, strict=True)))

    @property
    def logs(self) -> tuple[float, ...]:
        """The logarithm of candidate / base of each pair or round that is kept by itself."""
        in_rounds = (math.log(candidate / base) for base, candidate in self.rounds)
        return (*(log for run in self.runs for log in run.logs), *in_rounds)

    def is_known(self, until: float) -> bool:
        """Return True where its interval is as narrow as it should be."""
        return self.change is not None and self.change.is_known(until)


@dataclass(frozen=True)
class TrialNumber:
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
        """True where the two differ in every run."""
        return not self.varies and self.base != self.candidate


@dataclass(frozen=True)
class Asked:
    """Who asked for a try and when, and how long had been measured before."""

    by: str
    at: Stamp
    measured_s: float = 0.0


class BisectionState(enum.StrEnum):
    """One culprit; a range that cannot be made shorter; the ends do not differ; not found yet."""

    FOUND = "found"
    RANGE = "range"
    NO_STEP = "no step"
    OPEN = "open"


@dataclass(frozen=True)
class BisectionStep:
    """A TVM between the ends of a bisection: the logarithms of its value / the good end's, by pair; or a failure."""

    logs: tuple[float, ...] = ()
    failed: str = ""


@dataclass(frozen=True)
class Bisection:
    """The record of a bisection: base and candidate of its trial are the good and the bad end, its series is searched.

    candidates: how many TVMs come after the good end. steps: by ID, what was measured of those between the ends.
    suspects: one of them is the culprit with this probability. builds: made for this search. noise: deviation of one
    pair. measurements: runs of the experiment, two a pair. least: those that information theory asks for.
    """

    answer: BisectionState = BisectionState.OPEN
    good: Suspect = field(default_factory=Suspect)
    bad: Suspect = field(default_factory=Suspect)
    candidates: int = 0
    steps: Mapping[str, BisectionStep] = field(default_factory=dict)
    builds: int = 0
    error: float = 0.0
    suspects: tuple[Suspect, ...] = ()
    probability: float = 0.0
    noise: float | None = None
    least: float | None = None
    measurements: int = 0

    @property
    def is_answered(self) -> bool:
        """True where the step is there and no more measuring would narrow its range."""
        return self.answer in (BisectionState.FOUND, BisectionState.RANGE)


class Reproduced(enum.StrEnum):
    """The verdict on a number that was measured again."""

    HOLDS = "holds"
    DOES_NOT_HOLD = "does not hold"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class ReproducedSeries:
    """A number of a receipt: its `value` then, what is said of it now, and why it cannot be told.

    now: the mean of what was measured. pairs: those of then, of a ratio to the reference.
    """

    verdict: Reproduced
    value: float
    now: float | None = None
    why: str = ""
    pairs: RunOfPairs | None = None


@dataclass(frozen=True)
class Reproduction:
    """The record of a reproduction: the base of its trial is the receipt, the candidate the same TVM now.

    lines: by the ID of the series. is_same_machine is None where the receipt does not say. reference: the key of the
    TVM that both were measured beside. differs: name of a fact, then, now.
    """

    verdict: Reproduced
    source: str = ""
    experiment: str = ""
    night: str = ""
    lines: Mapping[str, ReproducedSeries] = field(default_factory=dict)
    is_same_machine: bool | None = None
    is_same_code: bool = False
    code: str = ""
    matters: float = 0.0
    reference: str = ""
    differs: tuple[tuple[str, str, str], ...] = ()
    why: str = ""


@dataclass(frozen=True)
class BackfillStep:
    """From one TVM that `backfill` measured to the next; of each series all rounds that measured both."""

    before: str
    after: str
    series: tuple[TrialSeries, ...] = ()
    numbers: tuple[TrialNumber, ...] = ()


@dataclass(frozen=True)
class Backfill:
    """The record of one `backfill`; the two sides of its trial are the ends of the range `artifacts`.

    done: data files. there: TVMs that were measured before. had: TVMs that could be built or were at hand. failed,
    unbuilt: what could not be measured, by experiment and TVM, or not be had, and why. left: nights that remain.
    steps: what all calls measured, from TVM to TVM; the series of the trial are from the first TVM to the last.
    """

    artifacts: str = ""
    wanted: int = 0
    done: tuple[str, ...] = ()
    there: int = 0
    had: tuple[str, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    unbuilt: Mapping[str, str] = field(default_factory=dict)
    left: int = 0
    steps: tuple[BackfillStep, ...] = ()

    def levels_of(self, series: str) -> dict[str, float]:
        """The geometric mean of the series' rounds on each TVM that has some, by its ID."""
        return {
            tvm: level
            for step in self.steps
            for item in step.series
            if item.id == series and item.has_ratio
            for tvm, level in zip((step.before, step.after), item.levels, strict=False)
        }


@dataclass(frozen=True)
class Trial:
    """A trial of two TVMs. until: how far the 95 % interval of every series was to reach at most, as a fraction.

    experiments: the fingerprint of the code and config of each that takes part. runs: how many each had. errors: why
    one could not go on. left_out: why one says nothing of these two TVMs. alone: series that were measured on the
    candidate only. measured_s: the time that measuring took, over all calls. requests: who asked for it, by the
    request's ID. ended: why it ended early. bisection, reproduction, backfill, signoff: what these commands add.
    """

    stamp: str
    state: TrialState
    candidate: TrialTvm
    base: TrialTvm
    until: float
    machine: str
    experiments: Mapping[str, str]
    runs: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    alone: tuple[str, ...] = ()
    series: tuple[TrialSeries, ...] = ()
    numbers: tuple[TrialNumber, ...] = ()
    measured_s: float = 0.0
    requests: Mapping[str, Asked] = field(default_factory=dict)
    kind: TrialKind = TrialKind.TRY
    ended: str = ""
    bisection: Bisection | None = None
    reproduction: Reproduction | None = None
    backfill: Backfill | None = None
    signoff: Signoff | None = None

    @property
    def outcome(self) -> str:
        """The state in one word: its answer, where it has one of its own."""
        if self.bisection and self.bisection.answer is not BisectionState.OPEN:
            return self.bisection.answer
        part = self.reproduction or self.signoff
        return part.verdict if part else self.state

    @property
    def is_wanting(self) -> bool:
        """True where some of what was asked for was not measured, or has no answer."""
        unjudged = {item.experiment for item in self.series} - {item.experiment for item in self.series if item.change}
        filled = self.backfill
        return bool(
            self.errors
            or (self.kind is TrialKind.COMPARE and unjudged)
            or (self.bisection and not self.bisection.is_answered)
            or (filled and (filled.left or filled.failed or filled.unbuilt))
        )

    def to_json(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **structured.to_json(self)}


@dataclass(frozen=True)
class TrialRequest:
    """A request for a try: results/tries/queue/<id>.json, and results/tries/running/<id>.json while it is measured.

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
