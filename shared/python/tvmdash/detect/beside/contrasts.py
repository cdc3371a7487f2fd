"""Ways to part the builds of a level into old and new ones: the difference, and what its error is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tvmdash.detect.beside.builds import Builds
from tvmdash.detect.noise import FloatArray
from tvmdash.stats.spread import NOTHING, Spread

MOST_NEW, MOST_OLD = 12, 24
"""So many builds at most are the new side of a step, and the old one."""
NIGHT_VARIANCE = 0.001**2
"""What a night's ratio differs by beyond its pairs."""


@dataclass(frozen=True)
class Contrast:
    """Newest builds against those before them in the level: `shift` (log) and its parts of error.

    pairs: the variance, in variances of one pair; luck: in variances of a build; nights: the rest. inside: how builds
    differ on either side, errors included, inside_pairs of one pair's variance. is_apart: each new build lies beyond
    all old ones.
    """

    shift: float
    pairs: float
    luck: float
    nights: float
    cut: int
    after: int
    builds: int
    same_code: bool | None
    inside: Spread = NOTHING
    inside_pairs: float = 0.0
    is_apart: bool = False

    def own_luck(self, pair: Spread) -> Spread:
        """How builds differ on either side beyond the error of each; below 0 where that is all of it."""
        return Spread(self.inside.variance - self.inside_pairs * pair.variance, self.inside.freedom)

    def error(self, pair: Spread) -> float:
        """The variance of the shift without luck."""
        return self.pairs * pair.variance + self.nights * NIGHT_VARIANCE


def contrasts_of(level: Builds, pair: Spread, luck: float) -> tuple[Contrast, ...]:
    """Every way to part the builds of a level, one to MOST_NEW of them new; none where there is one build only.

    pair, luck: about how far one pair of processes scatters, and the variance of builds; the means are weighed by them
    (generalised least squares), so that ratios to another reference each night count by how near they are.
    """
    count = len(level.builds)
    level = level.part(range(max(0, count - MOST_OLD - MOST_NEW), count))
    count = len(level.builds)
    if count < 2:
        return ()
    shared = (level.errors / level.pairs) @ level.errors.T
    nights = level.errors @ level.errors.T
    covariance: FloatArray = pair.variance * shared + NIGHT_VARIANCE * nights + luck * np.eye(count)
    inverse = np.asarray(np.linalg.inv(covariance), float)
    return tuple(_contrast(level, new, (shared, nights, inverse)) for new in range(1, min(MOST_NEW, count - 1) + 1))


def _contrast(level: Builds, new: int, matrices: tuple[FloatArray, FloatArray, FloatArray]) -> Contrast:
    shared, nights, inverse = matrices
    count = len(level.builds)
    sides = np.zeros((count, 2))
    sides[: count - new, 0] = sides[count - new :, 1] = 1.0
    means = np.linalg.solve(sides.T @ inverse @ sides, sides.T @ inverse)
    weights = means[1] - means[0]
    old, newest = level.builds[: count - new], level.builds[count - new :]
    codes = {build.code for build in newest}
    shift = float(weights @ level.places)
    way = level.places * np.sign(shift)
    inside, inside_pairs = _scatter(level, sides) if level.have_one_reference else (NOTHING, 0.0)
    return Contrast(
        shift=shift,
        pairs=float(weights @ shared @ weights),
        luck=float(weights @ weights),
        nights=float(weights @ nights @ weights),
        cut=newest[0].first,
        after=old[-1].last,
        builds=new,
        same_code=None if 0 in codes or not old[-1].code else codes == {old[-1].code},
        inside=inside,
        inside_pairs=inside_pairs,
        is_apart=bool(way[count - new :].min() > way[: count - new].max()),
    )


def _scatter(level: Builds, sides: FloatArray) -> tuple[Spread, float]:
    """How builds of one side differ, with their errors, and in variances of one pair what these are."""
    own = (level.errors**2 / level.pairs).sum(axis=1)
    parts = [(level.places[side > 0], own[side > 0]) for side in sides.T if side.sum() > 1]
    freedom = sum(len(places) - 1 for places, _ in parts)
    if not freedom:
        return NOTHING, 0.0
    squares = sum(float(((places - places.mean()) ** 2).sum()) for places, _ in parts)
    return Spread(squares / freedom, freedom), float(np.concatenate([errors for _, errors in parts]).mean())
