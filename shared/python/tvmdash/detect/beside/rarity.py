"""From standard errors to how rare something is, and back, where errors are known from few values."""

from __future__ import annotations

from statistics import NormalDist

from tvmdash.stats.student import t_975

_MOST_FREEDOM = 400


def points(freedom: float) -> float:
    return t_975(whole_freedom(freedom))


def whole_freedom(freedom: float) -> int:
    return max(1, round(min(freedom, _MOST_FREEDOM)))


def normal(rarity: float) -> float:
    """The standard errors of a normal distribution that are as rare, at most 30."""
    return -NormalDist().inv_cdf(max(rarity, 1e-190) / 2)
