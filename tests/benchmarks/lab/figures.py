"""Figures of many results: each a share with its own interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.lab.claims import SOON
from tests.benchmarks.lab.intervals import Share
from tests.benchmarks.lab.matching import Outcome
from tests.benchmarks.lab.scoring import Hit, Result
from tvmdash.verdict import Level

DELAYS = (0, 2, 3, 10)
SIZES = (0.01, 0.02, 0.03, 0.05, 0.10)
EXACT, LARGER = "exact", "larger"


def size_name(hit: Hit) -> str:
    """The size of what had to be told: the nearest of SIZES, or that it is larger, or an exact number's."""
    if hit.is_exact:
        return EXACT
    if hit.size > 1.5 * SIZES[-1]:
        return LARGER
    return f"{100 * min(SIZES, key=lambda size: abs(size - hit.size)):.0f} %"


def count(flags: Iterable[bool]) -> Share:
    """How many of the flags are true."""
    known = list(flags)
    return Share(sum(known), len(known))


def told_within(hits: Iterable[Hit], nights: int) -> Share:
    """The share that was told within so many nights."""
    return count(hit.is_told(nights) for hit in hits)


@dataclass(frozen=True)
class Figures:
    """What several results of one situation, or of many, come to."""

    results: Sequence[Result]

    def hits(self) -> list[Hit]:
        """What had to be told."""
        return [hit for hit in self.changes() if hit.must.within is not None]

    def changes(self) -> list[Hit]:
        """The same and what is too small for that."""
        return [hit for result in self.results for hit in result.hits]

    def _sum(self, counted: Callable[[Result], int]) -> int:
        return sum(map(counted, self.results))

    @property
    def false(self) -> Share:
        """Tellings that were wrong, of all metric-nights but those of the first night."""
        return Share(self._sum(lambda result: len(result.wrong)), self._sum(lambda result: result.metric_nights))

    @property
    def false_after(self) -> Share:
        """The same in series after a true change."""
        wrong = self._sum(lambda result: sum(judgement.after_change for judgement in result.wrong))
        return Share(wrong, self._sum(lambda result: result.late_nights))

    def shares(self) -> dict[str, Share]:
        """By name, everything but the hits by size."""
        told = [judgement for result in self.results for judgement in result.judgements]
        before = [level for result in self.results for level in result.before]
        differs = [differs for result in self.results for differs in result.differs]
        return {
            "worlds held": count(result.is_held for result in self.results),
            "false per metric-night": self.false,
            "false after a change": self.false_after,
            "wrong among told": count(judgement.outcome != Outcome.RIGHT for judgement in told),
            **{
                f"told, {outcome}": count(judgement.outcome == outcome for judgement in told)
                for outcome in Outcome
                if outcome != Outcome.RIGHT
            },
            "told in time": count(hit.is_told(hit.must.within or 0) for hit in self.hits()),
            **{f"told within {nights}": told_within(self.hits(), nights) for nights in DELAYS},
            "verdict grave enough": count(hit.graded for hit in self.hits() if hit.delay is not None),
            "green against the evidence": Share(
                self._sum(lambda result: result.green), self._sum(lambda result: result.nights)
            ),
            **{
                f"{level} before any change": count(said == level for said in before)
                for level in (Level.REGRESSION, Level.SUSPECT, Level.CHANGED, Level.BLIND)
            },
            "forbidden levels": Share(
                self._sum(lambda result: len(result.violations)), self._sum(lambda result: result.nights)
            ),
            "crashed": Share(self._sum(lambda result: len(result.crashes)), self._sum(lambda result: result.nights)),
            "intervals told": count(j.is_covered for j in told if j.is_covered is not None),
            "intervals of ratios": count(flag for result in self.results for flag in result.covered),
            "intervals of the reference": count(flag for result in self.results for flag in result.differs_covered),
            "reference: differences told": count(found.told for found in differs if found.true),
            "reference: told without difference": count(found.told for found in differs if not found.true),
            "the same, first night": count(found.told for found in differs if not (found.true or found.night)),
        }

    def by_size(self) -> dict[str, dict[int, Share]]:
        """By size of what had to be told and by delay."""
        groups: dict[str, list[Hit]] = {}
        for hit in self.changes():
            groups.setdefault(size_name(hit), []).append(hit)
        order = [*(f"{100 * size:.0f} %" for size in SIZES), LARGER, EXACT]
        known = sorted(groups, key=order.index)
        return {name: {nights: told_within(groups[name], nights) for nights in DELAYS} for name in known}

    @property
    def minutes(self) -> tuple[float, float]:
        """Of a night: measured, and measured again."""
        nights = max(1, self._sum(lambda result: result.nights))
        measured, again = (sum(getattr(result, name) for result in self.results) for name in ("measured_s", "again_s"))
        return measured / 60 / nights, again / 60 / nights

    def to_json(self) -> dict[str, Any]:
        measured, again = self.minutes
        sizes = {
            name: {str(nights): share.to_json() for nights, share in row.items()}
            for name, row in self.by_size().items()
        }
        shares = {name: share.to_json() for name, share in self.shares().items()}
        return {"shares": shares, "told_within": sizes, "minutes": {"measured": measured, "again": again}}


def wrong_among_told(figures: Figures) -> float:
    """What share of tellings would be wrong with one true change of 3 % or more in 1,000 metric-nights.

    NaN where nothing at all would be told.
    """
    right = told_within([hit for hit in figures.hits() if hit.size >= SOON], 10).value
    false = 1000 * figures.false.value
    return false / (false + right) if false + right else math.nan
