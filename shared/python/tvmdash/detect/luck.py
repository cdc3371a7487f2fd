"""How much builds of one series differ by luck: code layout and alignment, which no change of TVM's explains.

Whoever measures the same builds again, as often as he likes, finds the same luck again. So a difference between builds
has an error of its own, which only more builds make smaller. What nights with different builds scatter is the most that
luck can be. Measuring some of the oddest builds again tells its part: luck comes out again, and the rest does not.

Sources: Mytkowicz et al. 2009 (layout), Kalibera & Jones 2013 (levels of repetition).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tvmdash.detect.noise import vif

PRIOR_SD = 0.01
"""By so much, as a fraction of the value, builds are believed to differ where nothing is known."""
PRIOR_BUILDS = 2.0
"""How many builds that belief counts for."""
PRIOR_ODD = 2.0
"""... and how much the belief that all of the scatter is luck: as measuring a build again that was so far off."""
PROVEN_ODD, PROVEN_SHARE = 6.0, 0.5
"""Once so much was measured again, and so much of it came out again, builds are known to differ by luck."""
ALIKE = (0.6, 1.6)
MOST_KNOWN = 40.0
"""What was learned long ago counts less."""


@dataclass(frozen=True)
class Build:
    """The build of one night of an earlier level: how far it was off that level, scaled."""

    night: int
    away: float
    level: float

    @property
    def side(self) -> float:
        return math.copysign(1.0, self.away)


@dataclass(frozen=True)
class Luck:
    """What is known of it. spread: what nights scatter, scaled; builds: how many different ones they had.

    again, odd: sums over builds that were measured again, of how far off they were times how far off they came out, and
    of the square of the first, in spreads. prior: the belief where nothing is known, scaled. phi: the nights' lag-1
    correlation: the luck of builds in a row may be alike. earlier: how far off nights of earlier levels were.
    """

    spread: float
    builds: int
    again: float = 0.0
    odd: float = 0.0
    prior: float = PRIOR_SD
    phi: float = 0.0
    earlier: tuple[float, ...] = ()

    def seen(self, before: float, now: float) -> Luck:
        """The luck after a build that was `before` from its level was measured again and came out `now` from it."""
        most = 3.0 * self.spread
        if not self.spread or abs(before) > 2 * most:
            return self
        before, now = (max(-most, min(most, away)) / self.spread for away in (before, now))
        again, odd = self.again + before * now, self.odd + before**2
        fade = min(1.0, MOST_KNOWN / odd)
        return replace(self, again=again * fade, odd=odd * fade)

    @property
    def share(self) -> float:
        """The part of the nights' variance that is luck of the build."""
        return min(1.0, max(0.0, (PRIOR_ODD + self.again) / (PRIOR_ODD + self.odd)))

    @property
    def is_proven(self) -> bool:
        """Whether builds are known to differ by luck."""
        return self.odd >= PROVEN_ODD and self.share >= PROVEN_SHARE

    @property
    def deviation(self) -> float:
        """The standard deviation of one build."""
        known = self.builds * self.share * self.spread**2
        return math.sqrt((PRIOR_BUILDS * self.prior**2 + known) / (PRIOR_BUILDS + self.builds))

    def error(self, new: int, old: int) -> float:
        """The standard error that luck leaves in the difference between so many new builds, in a row, and old ones."""
        new = max(1, new)
        return self.deviation * math.sqrt(float(vif(np.asarray(self.phi), new)) / new + 1 / max(1, old))

    def explains(self, shift: float) -> bool:
        """Whether builds of earlier levels were as far off, either way, and builds are known to differ by luck.

        Asked of young levels, whose few nights may themselves be that far off.
        """
        if not self.is_proven:
            return False
        size = np.abs(self.earlier) / abs(shift)
        return bool(np.any((size >= ALIKE[0]) & (size <= ALIKE[1])))
