"""What `compare` leaves, results/comparisons/<stamp>.json, as far as others read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.records.metrics import Direction, Kind


@dataclass(frozen=True)
class ComparedTvm:
    """One of the two: as it was asked for, and the artifact's identity."""

    asked: str
    artifact: Mapping[str, Any]


@dataclass(frozen=True)
class ComparedDifference:
    """B against A: `effect` is a fraction, `low` and `high` bound it with 95 % confidence."""

    effect: float
    low: float | None = None
    high: float | None = None
    rounds: int = 0


@dataclass(frozen=True)
class ComparedSeries:
    """One series with what each round that measured both gave, as (A, B), and what that says, if anything."""

    id: str
    experiment: str
    metric: str
    unit: str
    labels: Mapping[str, Any]
    direction: Direction = "lower"
    kind: Kind = "time"
    title: str = ""
    rounds: tuple[tuple[float, float], ...] = ()
    name: str = ""
    difference: ComparedDifference | None = None


@dataclass(frozen=True)
class ComparisonFile:
    """Two TVMs measured in alternation."""

    a: ComparedTvm
    b: ComparedTvm
    series: tuple[ComparedSeries, ...] = ()
    elapsed_s: float = 0.0
