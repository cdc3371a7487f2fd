"""Suspects measured again by stat_alerts, remeasured/<stamp>.json, and its page's account of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

SCHEMA_VERSION = 1
FOLDER = "remeasured"


@dataclass(frozen=True)
class RatioRun:
    """A ratio of two artifacts over pairs of processes: its mean logarithm, the deviation of one pair, their number.

    layout: the number of the layout in which the code of both was linked anew; 0 where it lay as it was built.
    """

    log: float
    std: float
    pairs: int
    layout: int = 0


@dataclass(frozen=True)
class Run:
    """One run of an experiment with the artifact of the night `stamp`; values by the ID of the series.

    beside: the artifact that was measured in turn with it; ratios: to that one, by the ID of the series of times.
    """

    experiment: str
    stamp: str
    artifact: str
    values: Mapping[str, float]
    seconds: float
    beside: str = ""
    ratios: Mapping[str, RatioRun] = field(default_factory=dict)


@dataclass(frozen=True)
class Lack:
    """An artifact that could not be measured (`state`: gone, failed, ...), or one series with it.

    beside: in turn with this one.
    """

    experiment: str
    stamp: str
    artifact: str
    state: str
    error: str
    series: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Remeasured:
    """All of one night, in the order of time. ended: why; `words` say more of it."""

    night: str
    budget_s: float = 0.0
    runs: tuple[Run, ...] = ()
    lacks: tuple[Lack, ...] = ()
    ended: str = "running"
    words: str = ""


class OutcomeKind(enum.StrEnum):
    """The outcome of measuring a suspect again.

    reproduced: told. outlier, machine, modes: it is not TVM's. unclear, young: still open, with an interval.
    unmeasured: still open, without one.
    """

    REPRODUCED = "reproduced"
    OUTLIER = "outlier"
    MACHINE = "machine"
    UNCLEAR = "unclear"
    MODES = "modes"
    YOUNG = "young"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True)
class Outcome:
    """One series measured again. new, old: how many runs of artifacts since and before the suspected cut.

    same: all were of one artifact. changed: the experiment's code or config did, within what was compared.
    effect, low, high: of the new against the old, both measured tonight, with 95 % confidence. evidence: what says that
    it was the machine, as the kinds of evidence of a cause are named.
    """

    series: str
    name: str
    outcome: OutcomeKind
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
class ConfirmationSummary:
    """Tonight's measuring again as a whole. `off`: why there was none; runs: how many."""

    off: str = ""
    runs: int = 0
    seconds: float = 0.0
    budget_s: float = 0.0
    ended: str = ""
    words: str = ""
    series: tuple[Outcome, ...] = ()
    lacking: tuple[Lack, ...] = ()
