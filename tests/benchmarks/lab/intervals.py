"""Shares with their 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvmdash.judge.student import Z_975


@dataclass(frozen=True)
class Share:
    """`hits` of `of`, which count as independent of one another."""

    hits: int = 0
    of: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.hits + other.hits, self.of + other.of)

    @property
    def value(self) -> float:
        """NaN where there was nothing to hit."""
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 % confidence (Wilson 1927)."""
        if not self.of:
            return math.nan, math.nan
        spread = Z_975**2 / self.of
        centre = (self.value + spread / 2) / (1 + spread)
        reach = Z_975 / (1 + spread) * math.sqrt(self.value * (1 - self.value) / self.of + spread / (4 * self.of))
        low = centre - reach if self.hits else 0.0
        high = centre + reach if self.hits < self.of else 1.0
        return low, high

    def format(self, scale: float = 100, digits: int = 1) -> str:
        """The share in units of 1 / `scale`, its interval, and what it is made of; a dash where that is nothing."""
        if not self.of:
            return "-"
        low, high = (f"{scale * end:.{digits}f}" for end in self.interval)
        return f"{scale * self.value:.{digits}f} [{low}, {high}] {self.hits}/{self.of}"

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Share:
        """What `to_json` made."""
        return cls(value["hits"], value["of"])

    def to_json(self) -> dict[str, float | int | None]:
        low, high = self.interval if self.of else (None, None)
        return {"hits": self.hits, "of": self.of, "low": low, "high": high}
