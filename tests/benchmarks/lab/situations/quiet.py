"""Nothing changes, and it does not look so: builds differ by luck, machines move, hours are loaded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.benchmarks.lab.claims import Case, must_tell, never_green, never_regression
from tests.benchmarks.lab.noise import Generator, Noise, between, student
from tests.benchmarks.lab.plant import Changes, load, move_machine, slow_nights, stay_loaded, step
from tests.benchmarks.lab.rows import CANARY, HOME, NETS, OPS, OVERHEAD, Experiment
from tests.benchmarks.lab.situations.situation import situation
from tests.benchmarks.lab.world import Builds, Draw, Luck, World

QUIET = "nothing got worse"


def unchanged(draw: Draw, builds: Builds) -> Case:
    """Nothing happens for 60 nights."""
    world = World(draw, 60, builds=builds)
    return Case(world, never=[never_regression(world, why=QUIET)])


def unchanged_rebuilds(draw: Draw, *, step_on: int | None = None) -> Case:
    """A new artifact each night that runs the same bytes; perhaps a step of 5 % in one series."""
    world = World(draw, 60, same_sources=True)
    if step_on is None:
        return Case(world, never=[never_regression(world, why=QUIET)])
    return Case(world, must_tell(world, step(world, world.pick("ops", "run_time")[:1], step_on, 0.05)))


def luck_of_builds(draw: Draw, sd: float, share: float, sticky: float = 0.0) -> Case:
    """Each build differs by luck, in all series or in some."""
    world = World(draw, 50, luck=Luck(sd, 5, share, sticky))
    return Case(world, never=[never_regression(world, why=QUIET)])


def luck_of_releases(draw: Draw) -> Case:
    """A wheel every 30 nights, each with its own luck of 1 %."""
    world = World(draw, 70, builds=Builds.RELEASES, luck=Luck(0.01, 5))
    return Case(world, never=[never_regression(world, why=QUIET)])


def luck_and_step(draw: Draw) -> Case:
    """Builds differ by 1 %; two series get slower by 5 and 10 %."""
    world = World(draw, 45, luck=Luck(0.01, 5))
    small, large = world.pick("ops", "run_time")[:2]
    return Case(world, must_tell(world, [*step(world, [small], 29, 0.05), *step(world, [large], 29, 0.10)]))


def sticky_modes(draw: Draw, *, step_on: int | None = None) -> Case:
    """A third of the series have modes that stay for several builds, 3 % apart; perhaps a step of 10 % in one."""
    world = World(draw, 60, luck=Luck(0.03, 30, 0.35, sticky=0.7))
    changes = [] if step_on is None else step(world, world.pick("nets", "run_time")[:1], step_on, 0.10)
    return Case(world, must_tell(world, changes, within=10))


def after_a_step(draw: Draw) -> Case:
    """Half of the series change by 5 to 20 % on nights 20 to 30; then 40 nights of calm."""
    world = World(draw, 70)
    rng, changes = world.rng(9), Changes()
    rows = [row for row in world.pick(metric="run_time") if world.is_tvms[row]]
    for row in rows[::2]:
        changes += step(world, [row], int(rng.integers(20, 30)), float(rng.choice([-1, 1]) * rng.uniform(0.05, 0.2)))
    return Case(world, must_tell(world, changes))


def variance(draw: Draw) -> Case:
    """The scatter of all series grows threefold on night 31 and stays so."""
    world = World(draw, 60)
    world.weather[:, 30:] *= 3
    return Case(world, never=[never_regression(world, why=QUIET)])


def _noisy(rng: Generator) -> Noise:
    night, process = between(rng, 0.10, 0.14), between(rng, 0.08, 0.12)
    return Noise(lambda r, n: night * r.standard_normal(n), lambda r, n: student(r, process, 4, n))


def blind(draw: Draw) -> Case:
    """Series so noisy that only a change of a third could be seen, measured alone."""
    world = World(replace(draw, families=(_noisy,), paired=False), 35)
    return Case(world, never=[never_green(world, 0, why="none of the times could have shown a change of 5 %")])


def loaded_nights(draw: Draw) -> Case:
    """One night in six is loaded: wall times 3 to 6 times as long, CPU times 1 to 4 %."""
    world = World(draw, 60)
    load(world, np.flatnonzero(world.rng(9).random(60) < 1 / 6).tolist())
    return Case(world, never=[never_regression(world, why=QUIET)])


def loaded_from(draw: Draw, night: int) -> Case:
    """From that night on every night is loaded."""
    world = World(draw, 45)
    stay_loaded(world, night - 1, 44)
    return Case(world, never=[never_regression(world, why=QUIET)])


def step_under_load(draw: Draw) -> Case:
    """A loaded night brings regressions of 3, 5 and 10 %; one night in six is loaded."""
    world = World(draw, 45)
    load(world, {29, *np.flatnonzero(world.rng(9).random(45) < 1 / 6).tolist()})
    changes: Changes = []
    for row, size in zip(world.pick("ops", "run_time"), (0.03, 0.05, 0.10), strict=False):
        changes += step(world, [row], 29, size)
    return Case(world, must_tell(world, changes))


def machine_step(draw: Draw, size: float, *, controlled: bool = True) -> Case:
    """The machine changes for good."""
    world = World(draw, 50, HOME if controlled else (NETS, OPS, OVERHEAD))
    move_machine(world, 30, size)
    claims = [never_regression(world, why="it was the machine")] if controlled or size < 0 else []
    return Case(world, never=claims)


def small_home_on_a_slower_machine(draw: Draw) -> Case:
    """Four series and four controls: the machine gets 6 % slower."""
    world = World(draw, 50, (Experiment("few", 4, ("run_time",)), CANARY))
    move_machine(world, 30, 0.06)
    return Case(world, never=[never_regression(world, why="it was the machine")])


def machine_and_tvm(draw: Draw) -> Case:
    """The machine gets 6 % slower, and on the same night two series 5 and 10 % by TVM."""
    world = World(draw, 50)
    small, large = world.pick("ops", "run_time")[:2]
    changes = [*step(world, [small], 30, 0.05), *step(world, [large], 30, 0.10)]
    move_machine(world, 30, 0.06)
    return Case(world, must_tell(world, changes))


def slow_machine_nights(draw: Draw) -> Case:
    """One night in twelve the whole machine is 3 to 10 % slower."""
    world = World(draw, 60)
    rng = world.rng(9)
    for night in np.flatnonzero(rng.random(60) < 1 / 12).tolist():
        slow_nights(world, [night], float(rng.uniform(0.03, 0.10)))
    return Case(world, never=[never_regression(world, why=QUIET)])


def machine_drift(draw: Draw) -> Case:
    """The machine gets 8 % slower in 60 nights."""
    world = World(draw, 100)
    move_machine(world, 20, 0.08, last=80)
    return Case(world, never=[never_regression(world, why="it was the machine")])


SITUATIONS = (
    *(situation(unchanged, builds.name.lower(), builds=builds) for builds in Builds),
    situation(unchanged_rebuilds),
    situation(unchanged_rebuilds, "and_step", step_on=30),
    *(situation(luck_of_builds, f"{100 * sd:g}", sd=sd, share=1.0) for sd in (0.003, 0.01, 0.02)),
    *(situation(luck_of_builds, f"{100 * sd:g}_some", sd=sd, share=0.25) for sd in (0.003, 0.01, 0.02)),
    situation(luck_of_builds, "1_sticky", sd=0.01, share=1.0, sticky=0.7),
    situation(luck_of_releases),
    situation(luck_and_step),
    situation(sticky_modes),
    situation(sticky_modes, "and_step", step_on=35),
    situation(after_a_step),
    situation(variance),
    situation(blind),
    situation(loaded_nights),
    *(situation(loaded_from, night, night=night) for night in (2, 26)),
    situation(step_under_load),
    *(situation(machine_step, f"{100 * size:.0f}", size=size) for size in (0.06, -0.04)),
    situation(machine_step, "without_controls", size=0.06, controlled=False),
    situation(small_home_on_a_slower_machine),
    situation(machine_and_tvm),
    situation(slow_machine_nights),
    situation(machine_drift),
)
