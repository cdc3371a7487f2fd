"""What `reproduce` leaves: results/reproductions/<stamp>.json, and the same in the file that `--result` names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tvmdash.judge.repeated import CANNOT_TELL, DOES_NOT_HOLD, HOLDS, Repeated
from tvmdash.structured import among

SCHEMA_VERSION = 2
"""2: a verdict for each series and for all; labels and metric of each."""
VERDICTS = (HOLDS, DOES_NOT_HOLD, CANNOT_TELL)


@dataclass(frozen=True)
class Drawn:
    """What was drawn, and how: `chance` is its share of the weight of the `candidates`."""

    seed: int
    experiment: str
    night: str
    series: tuple[str, ...]
    candidates: int
    chance: float


@dataclass(frozen=True)
class ReproducedSeries:
    """One series: its value then and now, and what that says. found: None where it was not measured often enough.

    why: words behind a `verdict` that cannot be told.
    """

    name: str
    unit: str
    old: float
    verdict: str = field(metadata=among(*VERDICTS))
    new: tuple[float, ...] = ()
    found: Repeated | None = None
    why: str = ""
    id: str = ""
    experiment: str = ""
    metric: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)
    direction: Literal["lower", "higher", "none"] = "lower"
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class ReproductionResult:
    """What came of measuring a receipt again; where it could not be, `why`, and no more than what was drawn.

    is_same_machine is None where the receipt does not say. differs: name of a fact, then, now. ended: why it ended
    early.
    """

    verdict: str = field(metadata=among(*VERDICTS))
    why: str = ""
    drawn: Drawn | None = None
    stamp: str = ""
    source: str = ""
    experiment: str = ""
    night: str = ""
    artifact: Mapping[str, Any] = field(default_factory=dict)
    is_same_machine: bool | None = None
    is_same_code: bool = False
    code: str = ""
    matters: float = 0.0
    differs: tuple[tuple[str, str, str], ...] = ()
    lines: tuple[ReproducedSeries, ...] = ()
    rounds: int = 0
    ended: str = ""
    elapsed_s: float = 0.0
