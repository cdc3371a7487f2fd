"""Pairs of processes of several runs taken together: how much each of many series changed, and what of that is real.

Every pair starts two processes of its own, so pairs of different runs count alike. Runs are added until the intervals
are narrow. That looks at widths alone, never at whether something changed; but of few pairs a narrow interval may be
luck, and to end on it would keep the luck. So LEAST_PAIRS are measured before a width counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.stats.student import t_975, two_sided, two_sided_point

ERROR = 0.05
"""How often any of the series is called changed where none did."""
LEAST_PAIRS = 10
"""With 5, one try in 9 of 12 series names one where none changed; with 10, one in 13 (tests/benchmarks/tries.py)."""
_SAME = 1e-12


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
    real: clearer than any of the series would be by chance in 95 % of cases (Sidak).
    """

    effect: float
    low: float
    high: float
    within: float
    visible: float
    pairs: int
    real: bool

    def is_known(self, until: float) -> bool:
        """Whether the interval reaches no farther than that, and not by luck."""
        return self.within <= until and self.pairs >= LEAST_PAIRS


@dataclass(frozen=True)
class _Mean:
    log: float
    error: float
    pairs: int

    @property
    def degrees(self) -> int:
        return self.pairs - 1

    def chance(self) -> float:
        """How often a mean is as far from 0 where nothing changed."""
        if self.error <= _SAME:
            return 1.0 if abs(self.log) <= _SAME else 0.0
        return two_sided(self.log / self.error, self.degrees)


def find_changes(series: Sequence[Sequence[RunOfPairs]]) -> list[PooledChange | None]:
    """For each series' runs its change; None where there are fewer than two pairs, which say nothing of the noise."""
    means = [_pool(runs) for runs in series]
    level = _level_for(sum(mean is not None for mean in means))
    return [None if mean is None else _make_change(mean, level) for mean in means]


def _pool(runs: Sequence[RunOfPairs]) -> _Mean | None:
    pairs = sum(run.pairs for run in runs)
    if pairs < 2:
        return None
    log = math.fsum(run.pairs * run.log for run in runs) / pairs
    squares = math.fsum((run.pairs - 1) * run.std**2 + run.pairs * (run.log - log) ** 2 for run in runs)
    return _Mean(log, math.sqrt(squares / (pairs - 1) / pairs), pairs)


def _level_for(count: int) -> float:
    """What each of so many series may be wrong by, so that all together are by ERROR (Sidak 1967)."""
    return -math.expm1(math.log1p(-ERROR) / max(1, count))


def _make_change(mean: _Mean, level: float) -> PooledChange:
    reach = t_975(mean.degrees) * mean.error
    return PooledChange(
        math.expm1(mean.log),
        math.expm1(mean.log - reach),
        math.expm1(mean.log + reach),
        within=math.expm1(reach),
        visible=math.expm1(two_sided_point(level, mean.degrees) * mean.error),
        pairs=mean.pairs,
        real=mean.chance() <= level,
    )
