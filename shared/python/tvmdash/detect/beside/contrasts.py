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


def steps_before(builds: Builds, pair: Spread) -> tuple[FloatArray, FloatArray]:
    """From each build before tonight's to the next: the difference, and the variance of its error."""
    between = np.diff(builds.errors[:-1], axis=0) ** 2
    errors = pair.variance * (between / builds.pairs).sum(axis=1) + NIGHT_VARIANCE * between.sum(axis=1)
    return np.diff(builds.places[:-1]), np.asarray(errors)


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
    sizes = np.arange(1, min(MOST_NEW, count - 1) + 1)
    is_new = (np.arange(count)[:, None] >= count - sizes).astype(float)
    weights = _weigh(np.asarray(np.linalg.inv(covariance), float), is_new)
    columns = zip(
        level.places @ weights,
        (weights * (shared @ weights)).sum(axis=0),
        (weights**2).sum(axis=0),
        (weights * (nights @ weights)).sum(axis=0),
        _scatters(level, is_new),
        strict=True,
    )
    return tuple(_contrast(level, new, parts) for new, parts in enumerate(columns, start=1))


def _weigh(inverse: FloatArray, is_new: FloatArray) -> FloatArray:
    """By build and way to part them: what each counts in the difference of the two sides' means."""
    of_new = inverse @ is_new
    of_old = inverse.sum(axis=1, keepdims=True) - of_new
    new, both, old = (is_new * of_new).sum(axis=0), (is_new * of_old).sum(axis=0), ((1 - is_new) * of_old).sum(axis=0)
    return np.asarray(((old + both) * of_new - (new + both) * of_old) / (new * old - both**2))


def _contrast(level: Builds, new: int, parts: tuple[float, float, float, float, tuple[Spread, float]]) -> Contrast:
    shift, pairs, luck, nights, (inside, inside_pairs) = parts
    count = len(level.builds)
    old, newest = level.builds[: count - new], level.builds[count - new :]
    codes = {build.code for build in newest}
    way = level.places if shift > 0 else -level.places
    return Contrast(
        shift=float(shift),
        pairs=float(pairs),
        luck=float(luck),
        nights=float(nights),
        cut=newest[0].first,
        after=old[-1].last,
        builds=new,
        same_code=None if 0 in codes or not old[-1].code else codes == {old[-1].code},
        inside=inside,
        inside_pairs=inside_pairs,
        is_apart=bool(way[count - new :].min() > way[: count - new].max()),
    )


def _scatters(level: Builds, is_new: FloatArray) -> list[tuple[Spread, float]]:
    """By way to part them: how builds of one side differ, errors included, and these in variances of one pair."""
    count, ways = is_new.shape
    if count == 2 or not level.have_one_reference:
        return [(NOTHING, 0.0)] * ways
    sides = np.stack([is_new, 1 - is_new])
    sizes = sides.sum(axis=1, keepdims=True)
    centred = level.places[:, None] - level.places.mean()
    means = (sides * centred).sum(axis=1, keepdims=True) / sizes
    variance = (sides * (centred - means) ** 2).sum(axis=(0, 1)) / (count - 2)
    own = (level.errors**2 / level.pairs).sum(axis=1)[:, None]
    several = sides * (sizes > 1)
    pairs = (several * own).sum(axis=(0, 1)) / several.sum(axis=(0, 1))
    return [(Spread(float(of_way), count - 2), float(of_pair)) for of_way, of_pair in zip(variance, pairs, strict=True)]
