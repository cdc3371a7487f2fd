"""What is wrong in a world on a night, so that nothing green may be said of it."""

from __future__ import annotations

import math

import numpy as np

from tests.benchmarks.lab.measuring import PAIRS
from tests.benchmarks.lab.noise import Array
from tests.benchmarks.lab.rows import Row
from tests.benchmarks.lab.world import World

EVIDENT, EVIDENT_SIGMAS = 0.029, 4.0
"""A standing regression speaks against a night from this size on, and from so many standard deviations of a night."""
_DRAWS = 400
_WORSE = {"lower": 1.0, "higher": -1.0, "none": 0.0}


def speaks_against(world: World, night: int) -> bool:
    """Whether an expected series has no value, a count changed, or a regression stands that nobody can overlook."""
    return _is_lacking(world, night) or _has_changed(world, night) or bool(_regressed(world, night).any())


def _is_lacking(world: World, night: int) -> bool:
    """Whether a series that is not retired, and has had a value, has none."""
    expected = world.present[:, :night].any(axis=1) & ~world.retired[:, night]
    return bool((expected & ~world.present[:, night]).any())


def _has_changed(world: World, night: int) -> bool:
    """Whether an exact number is another one tonight, either way."""
    tonight = (change for change in world.changes if world.built_on(night) == night == change.night)
    rows = (change.row for change in tonight if world.present[change.row, night])
    return any(world.rows[row].kind == "exact" for row in rows)


def _regressed(world: World, night: int) -> Array:
    """By row, whether it is evidently worse than it was at its best."""
    worse = np.array([_WORSE[row.direction] * (row.kind != "exact") for row in world.rows])
    nights = sorted({world.built_on(past) for past in range(night + 1)})
    path = worse[:, None] * world.level[:, nights]
    excess = path[:, -1] - path.min(axis=1)
    least = np.array([_least(world, at) for at in range(len(world.rows))])
    return np.asarray((excess > least) & world.present[:, night] & world.is_tvms)


def _least(world: World, at: int) -> float:
    """From where on a regression of the row is evident."""
    if at not in world.least:
        row = world.rows[at]
        noisy = max(math.log1p(EVIDENT), EVIDENT_SIGMAS * _night_sd(world, at))
        world.least[at] = noisy if row.noise is not None or row.is_signed else 1e-9
    return world.least[at]


def _night_sd(world: World, at: int) -> float:
    """How far the row's value scatters from night to night without any change."""
    row: Row = world.rows[at]
    if row.noise is None:
        return row.number.sd if row.number else 0.0
    luck = float(np.std(row.noise.processes(world.rng(5, at), _DRAWS))) / math.sqrt(PAIRS)
    return math.sqrt(float(np.std(world.weather[at])) ** 2 + luck**2 + world.luck.sd**2)
