"""Homes of other sizes, points that come, go and fail, references that change, nights without pairs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tests.benchmarks.lab.claims import Case, must_tell, never_green
from tests.benchmarks.lab.plant import Changes, change_experiment, fail, lack, retire, step, take_reference
from tests.benchmarks.lab.rows import CANARY, Experiment
from tests.benchmarks.lab.situations.situation import situation
from tests.benchmarks.lab.world import RELEASE, Draw, World

MISSING = "expected series have no value"


def series(draw: Draw, count: int, nights: int) -> Case:
    """A home of so many series: the last third of the nights brings regressions of 5 and 10 %."""
    metrics = ("run_time", "compile_time", "code_size") if count > 8 else ("run_time",)
    points = max(1, count // len(metrics))
    parts = -(-points // 16)
    experiments = tuple(Experiment(f"part{at}", points // parts, metrics) for at in range(parts))
    world = World(draw, nights, experiments)
    rows = world.pick(metric="run_time")
    changes: Changes = step(world, rows[:1], nights * 2 // 3, 0.05)
    changes += step(world, rows[1:2], nights * 2 // 3 + 2, 0.10)
    return Case(world, must_tell(world, changes))


def missing_points(draw: Draw) -> Case:
    """Two points have no value on nights 25 to 27."""
    world = World(draw, 40)
    lack(world, world.pick("nets", "run_time")[:2], range(24, 27))
    return Case(world, never=[never_green(world, 24, 26, why=MISSING)])


def missing_experiment(draw: Draw) -> Case:
    """One of five experiments, 36 of 180 series, fails on nights 21 and 22."""
    parts = tuple(Experiment(f"part{at}", 12, ("run_time", "compile_time", "code_size")) for at in range(5))
    world = World(draw, 24, parts)
    fail(world, "part2", [20, 21])
    return Case(world, never=[never_green(world, 20, 21, why=MISSING)])


def retired_and_new_points(draw: Draw) -> Case:
    """Two points are retired on night 16, two are new; one of the new is 10 % slower on its fifth night."""
    world = World(draw, 40)
    rows = world.pick("ops")
    retire(world, rows[:4], 15)
    lack(world, rows[4:8], range(15))
    changes = step(world, [row for row in rows[4:6] if world.is_time[row]], 19, 0.10)
    return Case(world, must_tell(world, changes))


def scattered_gaps(draw: Draw) -> Case:
    """One value in twenty is missing; one series gets 5 % slower on a night on which it has a value."""
    world = World(draw, 50)
    row = world.pick("nets", "run_time")[0]
    for timed in world.pick(metric="run_time"):
        missing = np.flatnonzero(world.rng(9, timed).random(world.nights) < 0.05).tolist()
        lack(world, [timed], [night for night in missing if (timed, night) != (row, 30)])
    return Case(world, must_tell(world, step(world, [row], 30, 0.05)))


def first_night(draw: Draw, differ: bool) -> Case:
    """The reference was 3, 5 and 10 % faster than tonight's TVM, in three series; or it was not."""
    world = World(draw, 4)
    levels = np.zeros(len(world.rows))
    levels[world.pick("ops", "run_time")[:3]] = [-math.log1p(size) * differ for size in (0.03, 0.05, 0.10)]
    world.references = [(0, RELEASE, levels)]
    return Case(world, on_first_night=True)


def new_reference(draw: Draw, *, with_step: bool = False) -> Case:
    """The reference is another from night 31 on; before it a series got 10 % slower. Perhaps one more with it."""
    world = World(draw, 50)
    first, second = world.pick("ops", "run_time")[:2]
    changes = step(world, [first], 20, 0.10)
    take_reference(world, 0, RELEASE)
    take_reference(world, 30, "newer")
    changes += step(world, [second], 30, 0.05) if with_step else []
    return Case(world, must_tell(world, changes))


def other_reference(draw: Draw) -> Case:
    """From night 31 on the reference is one that was 4 % slower in everything; TVM does not change."""
    world = World(draw, 50)
    take_reference(world, 0, RELEASE)
    take_reference(world, 30, "older", 0.04)
    return Case(world)


def own_reference(draw: Draw) -> Case:
    """The reference is tonight's own TVM, so that every ratio is 1; a series gets 10 % slower."""
    world = World(draw, 45)
    world.references = [(0, "own", None)]
    return Case(world, must_tell(world, step(world, world.pick("ops", "run_time")[:1], 30, 0.10), within=3))


def gaining_pairs(draw: Draw) -> Case:
    """Pairs are measured from night 30 on; a series gets 5 % slower on that night, another one 5 nights later."""
    world = World(draw, 50)
    world.paired[:29] = False
    first, second = world.pick("ops", "run_time")[:2]
    return Case(world, must_tell(world, [*step(world, [first], 29, 0.05), *step(world, [second], 34, 0.05)]))


def missing_reference(draw: Draw) -> Case:
    """On one night in four nothing is measured beside the reference; two regressions, one on such a night."""
    world = World(draw, 50)
    world.paired[1::4] = False
    first, second = world.pick("ops", "run_time")[:2]
    return Case(world, must_tell(world, [*step(world, [first], 29, 0.05), *step(world, [second], 32, 0.05)]))


def points_without_reference(draw: Draw) -> Case:
    """The reference cannot run two of the points, and a third only every other night; each gets 6 % slower."""
    world = World(draw, 45)
    rows = world.pick("ops", "run_time")[:3]
    world.pairable[rows[:2]] = False
    world.pairable[rows[2], ::2] = False
    return Case(world, must_tell(world, step(world, rows, 29, 0.06)))


def history_alone(draw: Draw) -> Case:
    """No pairs, and no artifact is kept: regressions of 3 and 5 % on night 61."""
    world = World(replace(draw, paired=False), 75, kept_artifacts=0)
    rows = world.rng(9).permutation([row for row in world.pick(metric="run_time") if world.is_tvms[row]]).tolist()
    changes = [*step(world, rows[:3], 60, 0.03), *step(world, rows[3:5], 60, 0.05)]
    young = never_green(world, 0, 1, why="nothing can be seen in two nights")
    return Case(world, must_tell(world, changes, within=3), [young])


def experiment_code(draw: Draw) -> Case:
    """The experiment's own code makes it 7 % slower on night 31; the other experiments have a regression of 10 %."""
    world = World(draw, 45)
    change_experiment(world, "nets", 30, 0.07)
    return Case(world, must_tell(world, step(world, world.pick("ops", "run_time")[:1], 33, 0.10)))


def forty_series(draw: Draw) -> Case:
    """Forty series and nothing happens."""
    return Case(World(draw, 45, (Experiment("many", 36, ("run_time",)), CANARY)))


SITUATIONS = (
    *(situation(series, count, count=count, nights=nights) for count, nights in (
        (1, 40), (3, 40), (8, 40), (48, 36), (240, 21),
    )),
    situation(missing_points),
    situation(missing_experiment),
    situation(retired_and_new_points),
    situation(scattered_gaps),
    situation(first_night, "differs", differ=True),
    situation(first_night, "is_the_same", differ=False),
    situation(new_reference),
    situation(new_reference, "with_step", with_step=True),
    situation(other_reference),
    situation(own_reference),
    situation(gaining_pairs),
    situation(missing_reference),
    situation(points_without_reference),
    situation(history_alone),
    situation(experiment_code),
    situation(forty_series),
)  # fmt: skip
