"""Figures of many worlds: each a share with its own interval. They add up, also over runs that left them as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.benchmarks.lab.intervals import Share
from tests.benchmarks.lab.matching import Outcome
from tests.benchmarks.lab.scoring import Hit, Result
from tvmdash.verdict import Level

_Key = TypeVar("_Key")
DELAYS = (0, 2, 3, 10)
SIZES = (0.01, 0.02, 0.03, 0.05, 0.10)
LARGER, GRADUAL, EXACT = "larger", "gradual", "exact"
SIZE_NAMES = (*(f"{100 * size:.0f} %" for size in SIZES), LARGER, GRADUAL, EXACT)


@dataclass(frozen=True)
class Figures:
    """Of some worlds. shares: by name. sizes: told within so many nights, by size of the change and by delay."""

    shares: Mapping[str, Share] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[int, Share]] = field(default_factory=dict)
    nights: int = 0
    measured_s: float = 0.0
    again_s: float = 0.0

    def __add__(self, other: Figures) -> Figures:
        names = sorted({*self.sizes, *other.sizes}, key=SIZE_NAMES.index)
        return Figures(
            _added(self.shares, other.shares),
            {name: _added(self.sizes.get(name, {}), other.sizes.get(name, {})) for name in names},
            self.nights + other.nights,
            self.measured_s + other.measured_s,
            self.again_s + other.again_s,
        )

    @property
    def minutes(self) -> tuple[float, float]:
        """Of a night: measured, and measured again."""
        nights = max(1, self.nights)
        return self.measured_s / 60 / nights, self.again_s / 60 / nights

    @property
    def wrong_at_one_true(self) -> float:
        """The share of tellings that is wrong with one true change that has to be told in 1,000 metric-nights.

        NaN where nothing would be told.
        """
        false, right = 1000 * self.shares["false per metric-night"].value, self.shares["told within 10"].value
        return false / (false + right) if false + right else math.nan

    def to_json(self) -> dict[str, Any]:
        shares = {name: share.to_json() for name, share in self.shares.items()}
        sizes = {name: {str(n): share.to_json() for n, share in row.items()} for name, row in self.sizes.items()}
        times = {"nights": self.nights, "measured_s": self.measured_s, "again_s": self.again_s}
        return {**times, "shares": shares, "sizes": sizes}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Figures:
        """What `to_json` made."""
        shares = {name: Share.from_json(share) for name, share in value["shares"].items()}
        sizes = {
            name: {int(nights): Share.from_json(share) for nights, share in row.items()}
            for name, row in value["sizes"].items()
        }
        return cls(shares, sizes, value["nights"], value["measured_s"], value["again_s"])


def _added(first: Mapping[_Key, Share], second: Mapping[_Key, Share]) -> dict[_Key, Share]:
    return {key: first.get(key, Share()) + second.get(key, Share()) for key in {**first, **second}}


def add(figures: Iterable[Figures]) -> Figures:
    """All of them together."""
    return sum(figures, start=Figures())


def figures_of(result: Result) -> Figures:
    """Of one world."""
    shares = {**_tellings(result), **_hits(result), **_verdicts(result), **_intervals(result)}
    groups: dict[str, list[Hit]] = {}
    for hit in result.hits:
        groups.setdefault(_size_name(hit), []).append(hit)
    sizes = {name: {nights: _told_within(hits, nights) for nights in DELAYS} for name, hits in groups.items()}
    return Figures(shares, sizes, result.nights, result.measured_s, result.again_s)


def _size_name(hit: Hit) -> str:
    """The nearest of SIZES, or what else the change is."""
    if hit.is_exact:
        return EXACT
    if hit.must.change.last > hit.must.change.night:
        return GRADUAL
    if hit.size > 1.5 * SIZES[-1]:
        return LARGER
    return f"{100 * min(SIZES, key=lambda size: abs(size - hit.size)):.0f} %"


def _count(flags: Iterable[bool]) -> Share:
    known = list(flags)
    return Share(sum(known), len(known))


def _told_within(hits: Iterable[Hit], nights: int) -> Share:
    return _count(hit.is_told(nights) for hit in hits)


def _tellings(result: Result) -> dict[str, Share]:
    """What was told: wrong of all metric-nights but those of the first night, and of all that was told."""
    outcomes = [judgement.outcome for judgement in result.judgements]
    late = sum(judgement.after_change for judgement in result.wrong)
    backs = [judgement.outcome for judgement in result.judgements if judgement.telling.is_back]
    wrong = [outcome for outcome in Outcome if outcome != Outcome.RIGHT]
    return {
        "worlds held": Share(int(result.is_held), 1),
        "false per metric-night": Share(len(result.wrong), result.metric_nights),
        "false after a change": Share(late, result.late_nights),
        "wrong among told": _count(outcome != Outcome.RIGHT for outcome in outcomes),
        **{f"told, {name}": _count(outcome == name for outcome in outcomes) for name in wrong},
        "recoveries told, wrong": _count(outcome != Outcome.RIGHT for outcome in backs),
    }


def _hits(result: Result) -> dict[str, Share]:
    """What had to be told."""
    hits = [hit for hit in result.hits if hit.must.within is not None]
    return {
        "told in time": _count(hit.is_told(hit.must.within or 0) for hit in hits),
        **{f"told within {nights}": _told_within(hits, nights) for nights in DELAYS},
        "verdict grave enough": _count(hit.graded for hit in hits if hit.delay is not None),
    }


def _verdicts(result: Result) -> dict[str, Share]:
    """Of nights."""
    levels = (Level.REGRESSION, Level.SUSPECT, Level.CHANGED, Level.BLIND)
    return {
        "green against the evidence": Share(result.green, result.nights),
        **{f"{level} before any change": _count(said == level for said in result.before) for level in levels},
        "forbidden levels": Share(len(result.violations), result.nights),
        "crashed": Share(len(result.crashes), result.nights),
    }


def _intervals(result: Result) -> dict[str, Share]:
    """Of intervals that hold the truth, and of what is said of the reference."""
    differs = result.differs
    return {
        "intervals told": _count(said.is_covered for said in result.judgements if said.is_covered is not None),
        "intervals of ratios": _count(result.covered),
        "intervals of the reference": _count(result.differs_covered),
        "reference: differences told": _count(found.told for found in differs if found.true),
        "reference: told without difference": _count(found.told for found in differs if not found.true),
        "the same, first night": _count(found.told for found in differs if not (found.true or found.night)),
    }
