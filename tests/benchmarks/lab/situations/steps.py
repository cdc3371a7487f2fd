"""TVM changes: single steps, several in a row, reverts, creep; in one series, in an experiment, in all."""

from __future__ import annotations

from tests.benchmarks.lab.claims import Case, must_tell, never_green
from tests.benchmarks.lab.plant import Changes, creep, step
from tests.benchmarks.lab.rows import TIMES
from tests.benchmarks.lab.situations.situation import situation
from tests.benchmarks.lab.world import Builds, Draw, World

SIZES = (0.01, 0.02, 0.03, 0.05, 0.10)
AFTER = 12
"""Nights that are played after the last change."""


def _run_times(world: World) -> list[int]:
    return [row for row in world.pick(metric="run_time") if world.is_tvms[row]]


def steps_on_night(draw: Draw, night: int) -> Case:
    """Five series get slower by 1, 2, 3, 5 and 10 % on that night, the first being number 1."""
    world = World(draw, night + AFTER)
    rows = world.rng(9).permutation(_run_times(world))[: len(SIZES)].tolist()
    changes: Changes = []
    for row, size in zip(rows, SIZES, strict=True):
        changes += step(world, [row], night - 1, size)
    return Case(world, must_tell(world, changes))


def several_steps(draw: Draw, count: int, gap: int) -> Case:
    """Series that change several times, so many nights apart: upwards, and up and half back again."""
    world = World(draw, 25 + gap * (count - 1) + AFTER)
    upwards, back = world.rng(9).permutation(_run_times(world))[:2].tolist()
    first = [*step(world, [upwards], 24, 0.05), *step(world, [back], 24, 0.10)]
    more: Changes = []
    for number in range(1, count):
        more += step(world, [upwards], 24 + gap * number, 0.05)
        more += step(world, [back], 24 + gap * number, -0.05 if number % 2 else 0.10)
    return Case(world, must_tell(world, first) + must_tell(world, more, within=2 if gap <= 3 else None))


def revert(draw: Draw, nights: int) -> Case:
    """A regression of 5 and one of 10 % that are reverted so many nights later."""
    world = World(draw, 30 + nights + AFTER)
    small, large = world.rng(9).permutation(_run_times(world))[:2].tolist()
    planted = [*step(world, [small], 29, 0.05, until=29 + nights), *step(world, [large], 29, 0.1, until=29 + nights)]
    return Case(world, must_tell(world, [change for change in planted if change.night == 29]))


def creeping(draw: Draw) -> Case:
    """Three series get slower by 6 % in 60 nights."""
    world = World(draw, 115)
    rows = world.rng(9).permutation(_run_times(world))[:3].tolist()
    return Case(world, must_tell(world, creep(world, rows, 20, 80, 0.06), within=90))


def one_experiment(draw: Draw, size: float) -> Case:
    """All run times of one experiment change on one night."""
    world = World(draw, 30 + AFTER)
    rows = world.pick("ops", "run_time")
    return Case(world, must_tell(world, step(world, rows, 29, size)))


def whole_home(draw: Draw, size: float) -> Case:
    """All times of the home change on one night, but not the canary's."""
    world = World(draw, 30 + AFTER)
    rows = [row for metric in TIMES for row in world.pick(metric=metric) if world.is_tvms[row]]
    return Case(world, must_tell(world, step(world, rows, 29, size)))


def improvements(draw: Draw) -> Case:
    """Three series get faster by 3, 5 and 10 %."""
    world = World(draw, 30 + AFTER)
    rows = world.rng(9).permutation(_run_times(world))[:3].tolist()
    changes = [change for row, size in zip(rows, (-0.03, -0.05, -0.10), strict=True) for change in step(
        world, [row], 29, size
    )]  # fmt: skip
    return Case(world, must_tell(world, changes))


def runtime_only(draw: Draw) -> Case:
    """TVM's runtime gets 8 % slower: all run times, with the generated code that there was."""
    world = World(draw, 30 + AFTER)
    return Case(world, must_tell(world, step(world, _run_times(world), 29, 0.08, code=False)))


def compile_times(draw: Draw) -> Case:
    """Compilation takes 10 % longer, in all points."""
    world = World(draw, 30 + AFTER)
    return Case(world, must_tell(world, step(world, world.pick(metric="compile_time"), 29, 0.10, code=False)))


def released_regression(draw: Draw) -> Case:
    """A home on wheels: the release of night 31 makes three series slower by 3, 5 and 10 %."""
    world = World(draw, 30 + AFTER, builds=Builds.RELEASES)
    rows = world.rng(9).permutation(_run_times(world))[:3].tolist()
    changes: Changes = []
    for row, size in zip(rows, (0.03, 0.05, 0.10), strict=True):
        changes += step(world, [row], 30, size)
    return Case(world, must_tell(world, changes))


def confirmed(draw: Draw) -> Case:
    """A regression of 10 % that stays: no night of it is green."""
    world = World(draw, 30 + AFTER)
    changes = step(world, _run_times(world)[:1], 29, 0.10)
    return Case(world, must_tell(world, changes), [never_green(world, 29, why="a regression of 10 % stands")])


SITUATIONS = (
    *(situation(steps_on_night, night, night=night) for night in (2, 3, 5, 10, 20, 40, 80)),
    *(situation(several_steps, f"2_each_{gap}", count=2, gap=gap) for gap in (1, 2, 3, 10)),
    *(situation(several_steps, f"3_each_{gap}", count=3, gap=gap) for gap in (1, 2, 3, 10)),
    *(situation(revert, f"after_{nights}", nights=nights) for nights in (1, 3, 10)),
    situation(creeping),
    *(situation(one_experiment, f"{100 * size:.0f}", size=size) for size in (0.03, 0.05)),
    *(situation(whole_home, f"{100 * size:.0f}", size=size) for size in (0.03, -0.05)),
    situation(improvements),
    situation(runtime_only),
    situation(compile_times),
    situation(released_regression),
    situation(confirmed),
)
