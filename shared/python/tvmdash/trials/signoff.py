"""The sign-off of a trial: every series with its change, what is open, what is waived."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tvmdash.common.structured import written_as
from tvmdash.trials.suspect import Suspect


class SignoffState(enum.StrEnum):
    """The state of a series from A to B, the gravest first.

    worse, changed, better: a real change. unclear: it cannot be said. lost, new: only with A, only with B. same:
    nothing real, and a change that matters would have been seen.
    """

    WORSE = "worse"
    LOST = "lost"
    UNCLEAR = "unclear"
    CHANGED = "changed"
    BETTER = "better"
    NEW = "new"
    SAME = "same"


class SignoffEvidence(enum.StrEnum):
    """The evidence for a state, the strongest first.

    same_code: both ran the same, byte for byte. exact: a number without noise. paired: pairs of processes of A and B
    that took turns. chain: pairs with other TVMs that join them. compared: rounds of `compare`. ledger: what the nights
    between told. none: nothing.
    """

    SAME_CODE = "same_code"
    EXACT = "exact"
    PAIRED = "paired"
    CHAIN = "chain"
    COMPARED = "compared"
    LEDGER = "ledger"
    NONE = "none"


class SignoffDoubt(enum.StrEnum):
    """Why it cannot be said.

    not_measured: it was not measured with one of them. not_joined: no pairs join the two, and no nights between judged
    it. wide: its interval reaches a change that matters. luck: it does because two builds may differ so much by luck,
    and no more pairs of these two would tell. own_code: the experiment's own code or config is another.
    """

    NOT_MEASURED = "not_measured"
    NOT_JOINED = "not_joined"
    WIDE = "wide"
    LUCK = "luck"
    OWN_CODE = "own_code"


@dataclass(frozen=True)
class SignoffTvm:
    """One of the two: as it was asked for, what it is, the artifacts that are it.

    id: its commit or version, by which waivers know it. spec: what other commands call it. own, beside: on how many
    nights it was measured as the home's TVM, or as one of its `tvms`; and beside another.
    """

    asked: str
    id: str
    version: str
    commit: str | None
    spec: str
    artifacts: tuple[str, ...]
    own: int = 0
    beside: int = 0


@dataclass(frozen=True)
class SignoffWaiver:
    """Somebody answers for a series from A on. state, effect, value: as it was when the waiver was given."""

    at: str
    who: str
    reason: str
    pattern: str
    base: str
    candidate: str
    series: str
    name: str
    state: SignoffState
    effect: float | None = None
    value: float | None = None


@dataclass(frozen=True)
class WaiverEvent:
    """A line of results/signoff/waivers.jsonl: a waiver, or the end of it (`taken_back`)."""

    waiver: SignoffWaiver
    taken_back: bool = False


@dataclass(frozen=True)
class SignoffSeries:
    """One series from A to B. effect: B against A as a fraction, `low` and `high` bound it with 95 %.

    before, after: exact numbers, in their unit. odds: for a change against none. pairs, nights: what the
    evidence rests on. visible: the least change that the nights would have told, of `ledger`. doubt: why it cannot be
    said; lacks: which of the two was not measured. error: why it could not be measured with B. waiver: what covers it;
    outgrown: one that does not any more, because it is clearly worse than it was then.
    """

    id: str
    name: str
    experiment: str
    metric: str
    unit: str
    direction: Literal["lower", "higher", "none"]
    labels: Mapping[str, Any]
    state: SignoffState
    evidence: SignoffEvidence = SignoffEvidence.NONE
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    after: float | None = None
    odds: float | None = None
    pairs: int = 0
    nights: int = 0
    visible: float | None = None
    doubt: SignoffDoubt | None = None
    lacks: Literal["A", "B", ""] = ""
    error: str = ""
    incident: str | None = None
    waiver: SignoffWaiver | None = None
    outgrown: SignoffWaiver | None = None

    @property
    def is_in_the_way(self) -> bool:
        """True where it must be waived before a release: of a number without a better way, only where it is lost."""
        if self.state in (SignoffState.WORSE, SignoffState.LOST):
            return True
        return self.state is SignoffState.UNCLEAR and self.direction != "none"

    @property
    def is_open(self) -> bool:
        """True where it is in the way and nobody waived it."""
        return self.is_in_the_way and self.waiver is None

    @property
    def has_moved(self) -> bool:
        """True where a change is real."""
        return self.state in (SignoffState.WORSE, SignoffState.BETTER, SignoffState.CHANGED)

    @property
    def log(self) -> float:
        """The way that it moved, and of a time how far."""
        if self.before is not None and self.after is not None:
            return self.after - self.before
        return math.log1p(self.effect or 0.0)


@dataclass(frozen=True)
class SignoffBisection:
    """The bisection of a series: one of the last `count` suspects did it, with that probability."""

    series: str
    suspects: tuple[Suspect, ...]
    probability: float
    count: int


@dataclass(frozen=True)
class SignoffIncident:
    """An incident of the nights from A to B: it came after `versions[0]` and not later than `versions[1]`."""

    id: str
    versions: tuple[str, str]
    state: str
    who: str = ""
    words: str = ""


class SignoffVerdict(enum.StrEnum):
    """The outcome of a sign-off: a regression or a doubt that nobody waived, or neither."""

    REGRESSION = "regression"
    UNCLEAR = "unclear"
    CLEAR = "clear"


@dataclass(frozen=True)
class Signoff:
    """Everything from A to B. matters: a change for the worse that must be excluded, as a fraction.

    waivers: the whole history of those from A on. faults: files that could not be read. commands: what gets the
    evidence that is missing.
    """

    a: SignoffTvm
    b: SignoffTvm
    matters: float
    series: tuple[SignoffSeries, ...] = ()
    incidents: tuple[SignoffIncident, ...] = ()
    bisections: tuple[SignoffBisection, ...] = ()
    waivers: tuple[WaiverEvent, ...] = ()
    faults: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    @property
    @written_as("verdict")
    def verdict(self) -> SignoffVerdict:
        """The gravest that is not waived; nothing is clear where no series is known of both."""
        open_states = {item.state for item in self.series if item.is_open}
        if SignoffState.WORSE in open_states:
            return SignoffVerdict.REGRESSION
        is_known = any(item.evidence is not SignoffEvidence.NONE for item in self.series)
        return SignoffVerdict.UNCLEAR if open_states or not is_known else SignoffVerdict.CLEAR
