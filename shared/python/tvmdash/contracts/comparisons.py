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
class ComparedSeries:
    """One series with what each round that measured both gave, as (A, B)."""

    id: str
    experiment: str
    metric: str
    unit: str
    labels: Mapping[str, Any]
    direction: Direction = "lower"
    kind: Kind = "time"
    title: str = ""
    rounds: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class ComparisonFile:
    """Two TVMs measured in alternation."""

    a: ComparedTvm
    b: ComparedTvm
    series: tuple[ComparedSeries, ...] = ()
