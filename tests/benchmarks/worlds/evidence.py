"""What a judge is given: everything that was measured of a home's series, night by night."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True)
class Build:
    """One artifact as a series meets it.

    order: its place in TVM's history (by ancestry), so that an older commit measured later has a smaller number; None
    where that is not known. code: a hash of the generated code that the series times, which does not depend on link
    order; "" where unknown. layout: 0 as it was built, other numbers for relinked children of it.
    """

    artifact: str
    order: int | None = None
    code: str = ""
    layout: int = 0


@dataclass(frozen=True)
class Pairs:
    """Pairs of fresh processes of `base` and `build`, in turn: log(build / base) of each pair.

    host: the machine they ran on; "" where unknown.
    """

    night: str
    build: Build
    base: Build
    logs: tuple[float, ...]
    host: str = ""


@dataclass(frozen=True)
class Value:
    """An absolute value of one night; disturbed: the machine was busy or its clock was another."""

    night: str
    build: Build
    value: float
    disturbed: bool = False
    host: str = ""


@dataclass(frozen=True)
class SeriesEvidence:
    """All of one series, the oldest first, tonight's last. values: where nothing was measured in turn, all there is.

    What a judge had measured again on a night is among the pairs from the next night on.
    """

    series: str
    experiment: str
    metric: str
    kind: Literal["time", "rate", "exact", "accuracy", "ratio", "number"] = "time"
    direction: Literal["lower", "higher", "none"] = "lower"
    pairs: Sequence[Pairs] = ()
    values: Sequence[Value] = ()
    is_control: bool = False


@dataclass(frozen=True)
class Told:
    """What a judge says on a night of one cause. effect: B / A - 1, with its 95 % interval.

    decision: told, suspect (amber), better, fixed (an open one of `incident` is back), withdrawn (it was none), drift,
    machine (not TVM's).
    begin: the first build of the new level. scope: "point", "code", "experiment" or "home".
    """

    decision: Literal["told", "suspect", "better", "fixed", "withdrawn", "drift", "machine"]
    series: tuple[str, ...]
    effect: float
    low: float
    high: float
    begin: str
    scope: str = "point"
    incident: str = ""


@dataclass(frozen=True)
class Verdict:
    """A night. open: the incidents that are open after it, with their series; undecided: series of which too little is
    known tonight to call them unchanged. by_chance: how many tellings it expects tonight though nothing changed."""

    told: tuple[Told, ...] = ()
    open: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    undecided: tuple[str, ...] = ()
    by_chance: float | None = None


class Measure(Protocol):
    """Measures one series again tonight: `count` pairs of two builds; with `relinked`, both of a new layout where the
    world can relink them: a night makes a few children of a build, which then take turns. None where the build is gone
    or the night's budget is spent."""

    def __call__(self, series: str, build: Build, base: Build, count: int, *, relinked: bool) -> Pairs | None: ...


class Judge(Protocol):
    """One home's judge: it is asked each night once, with what was known up to that night, and keeps its own memory."""

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict: ...
