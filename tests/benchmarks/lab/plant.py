"""What can happen in a world. Sizes are fractions: 0.03 is 3 % more; of a signed number, its own units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tests.benchmarks.lab.world import EXPERIMENT, MACHINE, TVM, Change, World

Changes = list[Change]


def step(
    world: World, rows: Sequence[int], night: int, size: float, *, until: int | None = None, code: bool = True
) -> Changes:
    """TVM changes the rows from its build of a night on, until that of another; with other generated code or not."""
    planted = []
    for row in rows:
        change = _size_in(world, row, size)
        world.level[row, night:until] += change
        world.code_changes[row, night] = code
        planted.append(Change(row, night, change, night))
        if until is not None and until < world.nights:
            world.code_changes[row, until] = code
            planted.append(Change(row, until, -change, until))
    world.changes += planted
    return planted


def _size_in(world: World, row: int, size: float) -> float:
    return size if world.rows[row].is_signed else math.log1p(size)


def creep(world: World, rows: Sequence[int], first: int, last: int, size: float) -> Changes:
    """TVM changes the rows a little each night."""
    path = np.interp(np.arange(world.nights), [first, last], [0.0, math.log1p(size)])
    world.level[rows] += path
    planted = [Change(row, first, math.log1p(size), last, TVM) for row in rows]
    world.changes += planted
    return planted


def move_machine(world: World, night: int, size: float, *, last: int | None = None) -> Changes:
    """Every time changes on that night for good, or by degrees until the night `last`."""
    last = night if last is None else last
    first = night - 1 if last == night else night
    world.machine += np.interp(np.arange(world.nights), [first, last], [0.0, math.log1p(size)])
    rows = world.is_time.nonzero()[0].tolist()
    planted = [Change(row, night, math.log1p(size) * float(world.sensitivity[row]), last, MACHINE) for row in rows]
    world.changes += planted
    return planted


def slow_nights(world: World, nights: Iterable[int], size: float) -> None:
    """Single nights on which every time is longer, on the CPU's clock too."""
    world.machine[list(nights)] += math.log1p(size)


def load(world: World, nights: Iterable[int]) -> None:
    """Hours under load: wall times 3 to 6 times as long, CPU times 1 to 4 %."""
    rng = world.rng(2)
    for night in nights:
        world.wall[night], world.cold[night] = rng.uniform(3, 6), rng.uniform(0.01, 0.04)


def stay_loaded(world: World, first: int, last: int) -> Changes:
    """Load on all nights from `first` to `last`: by the wall clock the machine is slower until then."""
    load(world, range(first, last + 1))
    size = math.log(float(np.median(world.wall[first : last + 1])))
    ends = [(first, size), *([(last + 1, -size)] if last + 1 < world.nights else [])]
    ways = [(row, float(np.sign(world.sensitivity[row]))) for row in world.is_time.nonzero()[0].tolist()]
    planted = [Change(row, night, way * jump, night, MACHINE) for row, way in ways for night, jump in ends]
    world.changes += planted
    return planted


def change_experiment(world: World, experiment: str, night: int, size: float) -> Changes:
    """The experiment's own code changes what it measures, with every TVM."""
    rows = [row for row in world.pick(experiment) if world.is_time[row]]
    world.own[rows, night:] += math.log1p(size)
    planted = [Change(row, night, math.log1p(size), night, EXPERIMENT) for row in rows]
    world.changes += planted
    return planted


def lack(world: World, rows: Sequence[int], nights: Iterable[int]) -> None:
    """The points of the rows have no value on those nights."""
    world.present[np.ix_(_of_same_points(world, rows), list(nights))] = False


def _of_same_points(world: World, rows: Sequence[int]) -> list[int]:
    points = {(world.rows[row].experiment.name, world.rows[row].point) for row in rows}
    return [at for at, row in enumerate(world.rows) if (row.experiment.name, row.point) in points]


def retire(world: World, rows: Sequence[int], night: int) -> None:
    """The points of the rows are not measured any more, and nobody expects them to be."""
    lack(world, rows, range(night, world.nights))
    world.retired[_of_same_points(world, rows), night:] = True


def fail(world: World, experiment: str, nights: Sequence[int]) -> None:
    """The experiment leaves no data on those nights."""
    lack(world, world.pick(experiment), nights)
    for night in nights:
        world.failing.setdefault(night, set()).add(experiment)


def take_reference(world: World, night: int, name: str, levels: float | None = None) -> None:
    """From that night on the reference is another: the TVM of that night, or one so far from the first."""
    level = world.level[:, world.built_on(night)].copy() if levels is None else np.full(len(world.rows), levels)
    world.references.append((night, name, level))
