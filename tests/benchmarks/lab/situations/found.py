"""What was found to be said wrongly (truth.md, section 1), where no other module plays the same."""

from __future__ import annotations

from tests.benchmarks.lab.claims import Case, must_tell
from tests.benchmarks.lab.plant import Changes, step
from tests.benchmarks.lab.situations.situation import situation
from tests.benchmarks.lab.world import Draw, World


def _rows(world: World) -> list[int]:
    return [int(row) for row in world.rng(9).permutation(world.pick("ops", "run_time"))]


def early(draw: Draw, night: int) -> Case:
    """A step of 10 and one of 100 % on night 6, 9 or 10 of a home; then 40 nights."""
    world = World(draw, night + 40)
    small, large = _rows(world)[:2]
    return Case(world, must_tell(world, [*step(world, [small], night - 1, 0.1), *step(world, [large], night - 1, 1.0)]))


def young(draw: Draw) -> Case:
    """Steps of 10 standard deviations of a night at nights 20 to 53."""
    world = World(draw, 60)
    changes: Changes = []
    for row in _rows(world)[:4]:
        changes += step(world, [row], int(world.rng(9, row).integers(20, 48)), 0.08)
    return Case(world, must_tell(world, changes))


def soon_again(draw: Draw) -> Case:
    """A first step of 8 % and another within 20 nights, in three series."""
    world = World(draw, 70)
    changes: Changes = []
    for row in _rows(world)[:3]:
        changes += step(world, [row], 35, 0.08)
        changes += step(world, [row], 35 + int(world.rng(9, row).integers(4, 20)), 0.10)
    return Case(world, must_tell(world, changes))


def second_step(draw: Draw) -> Case:
    """A second step of 10 % one, two and three nights after a first."""
    world = World(draw, 50)
    changes: Changes = []
    for gap, row in enumerate(_rows(world)[:3], start=1):
        changes += [*step(world, [row], 30, 0.10), *step(world, [row], 30 + gap, 0.10)]
    return Case(world, must_tell(world, changes, within=2))


SITUATIONS = (
    *(situation(early, night, night=night) for night in (6, 9, 10)),
    situation(young),
    situation(soon_again),
    situation(second_step),
)
