"""Standard deviations that are known from few values: pooled, and with the degrees of freedom that they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A variance, and how many degrees of freedom it is known by; 0: nothing is known."""

    variance: float = 0.0
    freedom: float = 0.0

    @property
    def sd(self) -> float:
        return math.sqrt(max(0.0, self.variance))

    def limited(self, freedom: float) -> Spread:
        """The same, counting for no more than so many degrees of freedom."""
        return Spread(self.variance, min(self.freedom, freedom))

    def above_zero(self) -> Spread:
        """The same, where it was found by a difference that came out below 0."""
        return Spread(max(0.0, self.variance), self.freedom)


NOTHING = Spread()


def pool(spreads: Iterable[Spread]) -> Spread:
    """All of them as one, each by its degrees of freedom."""
    known = [spread for spread in spreads if spread.freedom > 0]
    freedom = sum(spread.freedom for spread in known)
    if not freedom:
        return Spread()
    return Spread(sum(spread.variance * spread.freedom for spread in known) / freedom, freedom)


def add(*parts: tuple[float, Spread]) -> Spread:
    """The variance of a sum of independent errors, each a multiple of a spread (Welch 1947, Satterthwaite 1946)."""
    variance = sum(times * spread.variance for times, spread in parts)
    below = sum((times * spread.variance) ** 2 / spread.freedom for times, spread in parts if spread.freedom > 0)
    return Spread(variance, variance**2 / below if below > 0 else math.inf)
