"""The held-out part: seeds, kinds of noise and situations that nothing is tuned on.

Look at its figures, not into it.
"""

from __future__ import annotations

import numpy as np

from tests.benchmarks.lab.claims import Case, must_tell, never_green, never_regression
from tests.benchmarks.lab.noise import Array, Family, Generator, Noise, between, student
from tests.benchmarks.lab.plant import Changes, lack, load, move_machine, stay_loaded, step, take_reference
from tests.benchmarks.lab.situations.situation import Situation, situation
from tests.benchmarks.lab.world import RELEASE, Builds, Draw, Luck, World

FIRST_SEED = 900_000


def skewed(rng: Generator) -> Noise:
    """Processes are slower by luck and never faster: log-normal, its mean taken off."""
    night, process = between(rng, 0.001, 0.005), between(rng, 0.005, 0.014)

    def processes(r: Generator, n: int) -> Array:
        draws = np.exp(0.9 * r.standard_normal(n))
        return np.asarray(process * (draws - np.exp(0.405)) / 1.68)

    return Noise(lambda r, n: night * r.standard_normal(n), processes, sample=0.008)


def weekly(rng: Generator) -> Noise:
    """Two nights in seven are slower."""
    night, process, lift = between(rng, 0.001, 0.004), between(rng, 0.005, 0.015), rng.uniform(0.005, 0.02)
    first = int(rng.integers(7))

    def nights(r: Generator, n: int) -> Array:
        return np.asarray(night * r.standard_normal(n) + lift * ((np.arange(n) + first) % 7 >= 5))

    return Noise(nights, lambda r, n: student(r, process, 5, n))


def regimes(rng: Generator) -> Noise:
    """Weeks of calm and weeks of four times the scatter."""
    night, process = between(rng, 0.001, 0.004), between(rng, 0.005, 0.015)

    def nights(r: Generator, n: int) -> Array:
        loud = np.cumsum(r.random(n) < 0.06) % 2
        return np.asarray(night * (1 + 3 * loud) * r.standard_normal(n))

    return Noise(nights, lambda r, n: student(r, process, 3.5, n), rest=0.002)


def lasting_modes(rng: Generator) -> Noise:
    """The machine has two states for the series, 1 to 3 % apart, each for some nights."""
    night, process, gap = between(rng, 0.001, 0.003), between(rng, 0.004, 0.012), rng.uniform(0.01, 0.03)

    def nights(r: Generator, n: int) -> Array:
        return np.asarray(night * r.standard_normal(n) + gap * (np.cumsum(r.random(n) < 0.15) % 2))

    return Noise(nights, lambda r, n: student(r, process, 4, n))


def contaminated(rng: Generator) -> Noise:
    """One process in twenty-five scatters five times as far as the others."""
    night, process = between(rng, 0.001, 0.005), between(rng, 0.004, 0.01)

    def processes(r: Generator, n: int) -> Array:
        return np.asarray(process * (1 + 4 * (r.random(n) < 1 / 25)) * r.standard_normal(n))

    return Noise(lambda r, n: night * r.standard_normal(n), processes)


FAMILIES: tuple[Family, ...] = (skewed, weekly, regimes, lasting_modes, contaminated)


def _rows(world: World) -> list[int]:
    rows = [row for row in world.pick(metric="run_time") if world.is_tvms[row]]
    return [int(row) for row in world.rng(19).permutation(rows)]


def odd_steps(draw: Draw, night: int) -> Case:
    """Steps of 4, 7 and -6 % at a night that no other situation has."""
    world = World(draw, night + 12)
    changes: Changes = []
    for row, size in zip(_rows(world), (0.04, 0.07, -0.06), strict=False):
        changes += step(world, [row], night - 1, size)
    return Case(world, must_tell(world, changes))


def staircase(draw: Draw) -> Case:
    """Four steps of 4 % every other night, and a revert of all of them."""
    world = World(draw, 50)
    row, changes = _rows(world)[0], Changes()
    for night in (25, 27, 29, 31):
        changes += step(world, [row], night, 0.04)
    changes += step(world, [row], 40, 1.04**-4 - 1)
    return Case(world, must_tell(world, changes))


def opposite(draw: Draw) -> Case:
    """One experiment gets 5 % slower and another 5 % faster on the same night."""
    world = World(draw, 42)
    slower, faster = world.pick("ops", "run_time"), world.pick("nets", "run_time")
    return Case(world, must_tell(world, [*step(world, slower, 29, 0.05), *step(world, faster, 29, -0.05)]))


def loaded_week(draw: Draw) -> Case:
    """A week of loaded nights with a step of 5 % in its middle, and one of 3 %."""
    world = World(draw, 45)
    stay_loaded(world, 26, 32)
    first, second = _rows(world)[:2]
    return Case(world, must_tell(world, [*step(world, [first], 29, 0.05), *step(world, [second], 29, 0.03)]))


def everything(draw: Draw) -> Case:
    """A machine step, a loaded night, lucky builds and two regressions within five nights."""
    world = World(draw, 50, luck=Luck(0.007, 6))
    first, second = _rows(world)[:2]
    changes = [*step(world, [first], 30, 0.06), *step(world, [second], 33, 0.09)]
    move_machine(world, 31, -0.05)
    load(world, [32, 41])
    return Case(world, must_tell(world, changes, within=2))


def reference_and_step(draw: Draw) -> Case:
    """A new reference on the very night of a regression of 6 %, which it has as well."""
    world = World(draw, 45)
    changes = step(world, _rows(world)[:1], 25, 0.06)
    take_reference(world, 0, RELEASE)
    take_reference(world, 25, "newest")
    return Case(world, must_tell(world, changes))


def lucky_releases(draw: Draw) -> Case:
    """Wheels with luck of 1.5 % each, and the third release is 8 % slower in one experiment."""
    world = World(draw, 75, builds=Builds.RELEASES, luck=Luck(0.015, 5))
    return Case(world, must_tell(world, step(world, world.pick("ops", "run_time"), 60, 0.08)))


def one_byte_and_back(draw: Draw) -> Case:
    """One byte more for one night."""
    world = World(draw, 25)
    row = world.pick("nets", "code_size")[1]
    return Case(world, must_tell(world, step(world, [row], 12, 1 / world.rows[row].base, until=13)))


def new_series_and_step(draw: Draw) -> Case:
    """A series begins on night 21 and gets 8 % slower on its third night."""
    world = World(draw, 40)
    row = _rows(world)[0]
    lack(world, [row], range(20))
    return Case(world, must_tell(world, step(world, [row], 22, 0.08)))


def gone_for_a_week(draw: Draw) -> Case:
    """A series is missing for a week, within which it gets 10 % slower."""
    world = World(draw, 45)
    row = _rows(world)[0]
    lack(world, [row], range(25, 32))
    step(world, [row], 28, 0.10)
    return Case(world, never=[never_green(world, 25, 31, why="an expected series has no value")])


def restless_machine(draw: Draw) -> Case:
    """The machine moves by 2 to 5 % every ten nights, up and down."""
    world = World(draw, 70)
    for at, night in enumerate(range(12, 70, 10)):
        move_machine(world, night, float(world.rng(19, at).uniform(0.02, 0.05)) * (-1) ** at)
    return Case(world, never=[never_regression(world, why="it was the machine")])


SITUATIONS: dict[str, Situation] = {
    each.name: each
    for each in (
        *(situation(odd_steps, night, night=night) for night in (4, 7, 15, 33, 57)),
        situation(staircase),
        situation(opposite),
        situation(loaded_week),
        situation(everything),
        situation(reference_and_step),
        situation(lucky_releases),
        situation(one_byte_and_back),
        situation(new_series_and_step),
        situation(gone_for_a_week),
        situation(restless_machine),
    )
}
