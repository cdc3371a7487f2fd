"""Situations that must come out right: what is planted, and after `Right:` what a judge must make of it.

In all of them nothing false may be told, nothing twice, and no night may be red for nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.benchmarks.worlds.claims import (
    Case,
    ambers_at_most,
    few_series,
    fixed_by,
    never_green,
    not_open_without_it,
    not_suspected,
    nothing_said,
    one_incident,
    open_while_it_stands,
    says,
    told_by,
)
from tests.benchmarks.worlds.world import Plan, World


@dataclass(frozen=True)
class Situation:
    """words: what is planted, and what is right."""

    name: str
    words: str
    make: Callable[[Plan], Case]


def _home(plan: Plan, nights: int = 28, **changes: Any) -> World:
    """A source home without gaps: night 0 measures build 1, each night the next."""
    world = World(replace(plan, **{"nights": nights, "wheel": False, "gaps": False, **changes}))
    world.sequence = np.arange(1, nights + 1)
    return world


def _wheels(plan: Plan, order: list[int], stay: int, **changes: Any) -> World:
    """A home on wheels: each stays so many nights."""
    world = World(replace(plan, nights=max(*order, len(order) * stay), wheel=True, gaps=False, **changes))
    stays = np.repeat(order, stay)
    world.sequence = np.pad(stays, (0, world.plan.nights - len(stays)), "edge")
    return world


# The table of truth.md, section 7.


def runtime_3_percent(plan: Plan) -> Case:
    """TVM's runtime is 3 % slower, in all points. Right: one incident of them all, the same night."""
    world = _home(plan)
    step = world.plant(world.times(), 0.03, 15, code=False)
    return Case(world, [told_by(step), one_incident(step), open_while_it_stands(step)])


def runtime_1_percent(plan: Plan) -> Case:
    """The runtime is 1 % slower, in all of 20 points. Right: one incident of them all, by its second night."""
    world = _home(plan, series=28)
    step = world.plant(world.times(), 0.01, 15, code=False)
    return Case(world, [told_by(step, 1), one_incident(step)])


def wheels_out_of_order(plan: Plan) -> Case:
    """Wheels 0, 1, 3, 2, 4, 5, and 6 % from 3 on. Right: told with 3, once; open with 4 and 5; 2's state is its own."""
    world = _wheels(plan, [2, 6, 14, 10, 18, 22], 4)
    step = world.plant(world.pick(1), 0.06, 14)
    return Case(world, [told_by(step, 1), open_while_it_stands(step, 1)])


def wheel_of_14_nights(plan: Plan) -> Case:
    """A wheel that stays 14 nights is 5 % slower in one point. Right: told by its second night."""
    world = _wheels(plan, [3, 7, 10], 14)
    step = world.plant(world.pick(1), 0.05, 10)
    return Case(world, [told_by(step, 1), few_series(step, 1)])


def older_commit_once(plan: Plan) -> Case:
    """After a step of 6 %, one night measures an older commit. Right: nothing is said, that night and the next."""
    world = _home(plan)
    step = world.plant(world.pick(1), 0.06, 12)
    world.sequence[18] = 8
    return Case(world, [told_by(step, 1), nothing_said(18, 19, step.series), open_while_it_stands(step, 1)])


def landed_reverted_landed(plan: Plan) -> Case:
    """8 % lands, is reverted, lands again with the same code. Right: each night's state is that of its build."""
    world = _home(plan, churn=0.0)
    rows = world.pick(2)
    first, second = world.plant(rows, 0.08, 8, 14), world.plant(rows, 0.08, 18, code=False)
    world.code[rows, 18:] = world.code[rows[0], 10]
    return Case(
        world,
        [told_by(first, 1), fixed_by(first), not_open_without_it(second), open_while_it_stands(second, 1)],
    )


def code_as_before(plan: Plan) -> Case:
    """Three points are 6 % slower; later their code is byte for byte what it was. Right: fixed the same night."""
    world = _home(plan, churn=0.0)
    step = world.plant(world.pick(3), 0.06, 10, 18)
    return Case(world, [told_by(step, 1), fixed_by(step), not_open_without_it(step)])


def reference_becomes_the_bad_one(plan: Plan) -> Case:
    """After a step of 6 % the reference moves to the bad build. Right: open until the fix, which is told that night."""
    world = _home(plan, churn=0.0)
    step = world.plant(world.pick(2), 0.06, 10, 20)
    world.references = [*[(0,)] * 14, *[(13,)] * 14]
    return Case(world, [told_by(step, 1), open_while_it_stands(step, 1), fixed_by(step)])


def new_reference_with_the_step(plan: Plan, *, gone: bool) -> Case:
    """The night of 6 % has a new reference, with the 6 % too. Right: told while old builds exist, else never green."""
    world = _home(plan)
    step = world.plant(world.pick(1), 0.06, 15)
    world.sequence[14] = 14
    world.references = [*[(0,)] * 15, *[(15,)] * 13]
    if gone:
        world.gone = dict.fromkeys(range(15), 15)
        return Case(world, [never_green(step)])
    return Case(world, [told_by(step, 2), never_green(step)])


def clock_halved(plan: Plan) -> Case:
    """All times double for a week; inside, one point is 5 % slower. Right: the machine is named; the 5 % are told."""
    world = _home(plan)
    world.move_machine(12, 19, 1.0)
    step = world.plant(world.pick(1), 0.05, 15)
    return Case(world, [says("machine", 12, 14), told_by(step, 1), few_series(step, 1)])


def half_of_the_processes(plan: Plan) -> Case:
    """Half of the processes of a point are 10 % slower. Right: never green, told by the third night."""
    world = _home(plan)
    step = world.slow_half(world.pick(1), 0.10, 15)
    return Case(world, [told_by(step, 2), never_green(step)])


def drift(plan: Plan) -> Case:
    """A point is 0.2 % slower each night, for 30 nights. Right: a drift, said by five nights after; no step."""
    world = _home(plan, 56)
    world.drift(world.pick(1), 0.002, 12, 41)
    return Case(world, [says("drift", 12, 46)])


def young_time_on_a_busy_night(plan: Plan) -> Case:
    """A series of three nights takes 53 % longer on a busy one, as its reference does. Right: nothing is said of it."""
    world = _home(plan)
    row = world.pick(1)[0]
    world.present[row, :15], world.own[row, 17] = False, np.log(1.53)
    return Case(world, [not_suspected(world.names[row])])


def two_pairs_agree(plan: Plan) -> Case:
    """On one night two pairs of a series are all there is, at −4.1 and −4.2 %. Right: nothing is told."""
    world = _home(plan)
    row = world.pick(1)[0]
    world.pairs_a_night[row, 15], world.drawn[row, 15, :, :2] = 2, (-0.041, -0.042)
    return Case(world, [nothing_said(15, 17, [world.names[row]])])


def extra_operator(plan: Plan) -> Case:
    """An extra operator of 3 % in one point. Right: never green, told by the fourth night."""
    world = _home(plan)
    step = world.plant(world.pick(1), 0.03, 15)
    return Case(world, [told_by(step, 3), never_green(step)])


def not_measured_again(plan: Plan, night: int) -> Case:
    """A point that has absolute times alone is 25 % slower. Right: never green."""
    world = _home(plan)
    row = world.pick(1)[0]
    world.unpaired = {world.names[row]}
    step = world.plant([row], 0.25, night + 1)
    return Case(world, [never_green(step)])


def fifteen_experiments(plan: Plan) -> Case:
    """Fifteen experiments, nothing planted. Right: silence, and four amber nights of 30 at most."""
    return Case(_home(plan, 30, series=120), [ambers_at_most(4)])


# Numbers without noise, and the other kinds.


def exact_number(plan: Plan) -> Case:
    """Code grows by 0.4 % and shrinks back. Right: told the night it grows, fixed the night it is back."""
    world = _home(plan)
    step = world.plant(world.pick(1, "exact"), 0.004, 12, 18)
    return Case(world, [told_by(step), fixed_by(step)])


def accuracy_lost(plan: Plan) -> Case:
    """Accuracy falls from 1.0 to 0.997. Right: told that night."""
    world = _home(plan)
    step = world.plant(world.pick(1, "accuracy"), -0.003, 12)
    return Case(world, [told_by(step)])


def rates(plan: Plan) -> Case:
    """One throughput grows by 10 %, another shrinks by 10 %. Right: better, and told."""
    world = _home(plan)
    up, down = world.pick(2, "rate")
    return Case(world, [told_by(world.plant([up], 0.1, 12), 1), told_by(world.plant([down], -0.1, 14), 1)])


def exact_number_that_flips(plan: Plan) -> Case:
    """A size has one of two values by chance, from the first night on. Right: not told once five nights are known."""
    world = _home(plan)
    row = world.pick(1, "exact")[0]
    world.own[row] = np.log1p(0.01) * (world.rng(23).random(28) < 0.5)
    world.own[row, :5] = np.log1p([0, 0.01, 0, 0.01, 0])
    world.unrated = {world.names[row]}
    return Case(world, [nothing_said(5, series=world.unrated)])


# Invented.


def reverted_between_nights(plan: Plan) -> Case:
    """A step of 10 % and its revert lie between two measured builds. Right: nothing, though a build between had it."""
    world = _home(plan)
    world.sequence[14:] += 3
    world.sequence = np.minimum(world.sequence, 28)
    step = world.plant(world.pick(2), 0.10, 15, 17)
    return Case(world, [nothing_said(series=step.series)])


def two_culprits(plan: Plan) -> Case:
    """6 % in six points, two nights later 5 % in four of them and two others. Right: two incidents, each its commit."""
    world = _home(plan)
    rows = world.pick(8)
    first, second = world.plant(rows[:6], 0.06, 12), world.plant(rows[2:], 0.05, 14)
    return Case(world, [told_by(first, 1), told_by(second, 1), one_incident(first), one_incident(second)])


def one_operator(plan: Plan) -> Case:
    """Eight points of several experiments, those with one operator, are 3 % slower. Right: one incident, two nights."""
    world = _home(plan)
    step = world.plant(world.pick(8), 0.03, 15)
    return Case(world, [told_by(step, 1), one_incident(step, 0.7), few_series(step, 10)])


def control_moves_too(plan: Plan, *, planted: bool) -> Case:
    """Absolute times and controls rise by 6 % for good; with a step of 6 % the same night or none. Right: only that."""
    world = _home(plan)
    world.move_machine(14, 28, 0.06)
    if not planted:
        return Case(world)
    step = world.plant(world.pick(1), 0.06, 15)
    return Case(world, [told_by(step, 1), few_series(step, 1)])


def reference_vanishes(plan: Plan) -> Case:
    """The reference is gone from night 15 on; on night 20 a point is 8 % slower. Right: told by the third night."""
    world = _home(plan)
    world.references = [(0,)] * 15 + [()] * 13
    world.gone = {0: 15}
    step = world.plant(world.pick(1), 0.08, 21)
    return Case(world, [told_by(step, 2), never_green(step)])


def half_of_the_series_missing(plan: Plan) -> Case:
    """On the night of 5 % in ten points half of the home fails. Right: one incident, that night or the next."""
    world = _home(plan)
    step = world.plant(world.pick(10), 0.05, 15)
    missing = world.rng(23).permutation(world.plan.series)[: world.plan.series // 2]
    world.present[missing, 14] = False
    return Case(world, [told_by(step, 1), one_incident(step, 0.7)])


def slow_series(plan: Plan) -> Case:
    """A point that takes 20 times as long has three pairs a night; it is 10 % slower. Right: told by night two."""
    world = _home(plan)
    row = world.pick(1)[0]
    world.pairs_a_night[row], world.cost[row] = 3, 20
    step = world.plant([row], 0.10, 15)
    return Case(world, [told_by(step, 1), never_green(step)])


def improvement_half_lost(plan: Plan) -> Case:
    """A point is 12 % faster; six nights later half of it is lost. Right: better, then told."""
    world = _home(plan)
    rows = world.pick(1)
    better = world.plant(rows, -0.12, 10)
    return Case(world, [told_by(better, 1), told_by(world.plant(rows, 0.0638, 16), 1)])


def step_with_the_machine(plan: Plan) -> Case:
    """On the night of 8 % the home moves to a host that is 30 % slower. Right: told by the second night."""
    world = _home(plan)
    world.move_machine(14, 28, 0.3)
    world.hosts = ["host"] * 14 + ["other"] * 14
    step = world.plant(world.pick(1), 0.08, 15)
    return Case(world, [told_by(step, 1), few_series(step, 1)])


def other_host_scatters(plan: Plan) -> Case:
    """Every other night runs on a host where pairs scatter three times as wide. Right: nothing is told."""
    world = _home(plan)
    world.hosts = ["host", "noisy"] * 14
    world.widening[1::2] *= 3
    world.machine[1::2] += 0.2
    return Case(world, [ambers_at_most(5)])


def all_and_one(plan: Plan) -> Case:
    """The same build is 1 % slower in all points and 6 % more in one. Right: both are told, as two incidents."""
    world = _home(plan)
    one = world.plant(world.pick(1), 0.06, 15)
    whole = world.plant(world.times(), 0.01, 15, code=False)
    return Case(world, [told_by(one, 1), few_series(one, 3), told_by(whole, 2), one_incident(whole, 0.7)])


def older_commit_again_and_again(plan: Plan) -> Case:
    """After a step of 6 %, every other night measures the same older commit. Right: told once."""
    world = _home(plan)
    step = world.plant(world.pick(1), 0.06, 12)
    world.sequence[14::2] = 8
    return Case(world, [told_by(step, 1)])


def luck_three_nights(plan: Plan) -> Case:
    """Three builds in a row with the code there was are 2.5 % slower by layout, in two points. Right: nothing."""
    world = _home(plan, churn=0.0)
    rows = world.pick(2)
    world.lucky[rows, 15:18] = 0.025
    return Case(world, [nothing_said(series=[world.names[at] for at in rows])])


def code_changes_alone(plan: Plan) -> Case:
    """Every build has other code in all points, no time changes. Right: nothing is told."""
    return Case(_home(plan, churn=1.0), [ambers_at_most(4)])


def differs_from_the_release(plan: Plan) -> Case:
    """A new home beside an old release: half of the points differ from it by 8 %. Right: nothing is told."""
    world = _home(plan, reference="fixed")
    rows = world.times()
    world.level[rows[::4], 1:] += np.log1p(0.08)
    world.level[rows[2::4], 1:] -= np.log1p(0.08)
    return Case(world, [nothing_said(series=[world.names[at] for at in rows[::2]])])


def series_appears(plan: Plan) -> Case:
    """Points that appear late, 8 % slower than the release since before they did. Right: nothing is told of them."""
    world = _home(plan, reference="fixed")
    rows = world.pick(3)
    world.present[rows, :14] = False
    world.level[rows, 6:] += np.log1p(0.08)
    return Case(world, [nothing_said(series=[world.names[at] for at in rows])])


def step_while_away(plan: Plan) -> Case:
    """The home is off for five nights, in which 6 % landed. Right: told by the second night back."""
    world = _home(plan)
    world.on[12:17] = False
    step = world.plant(world.pick(2), 0.06, 15)
    return Case(world, [told_by(step, 1)])


def order_unknown(plan: Plan) -> Case:
    """Nothing is known of the order of builds; a point is 6 % slower. Right: told by the second night."""
    world = _home(plan)
    world.knows_order = False
    step = world.plant(world.pick(1), 0.06, 15)
    return Case(world, [told_by(step, 1)])


def opposite_steps(plan: Plan) -> Case:
    """One build makes three points 5 % slower and three 5 % faster. Right: told and better, by the second night."""
    world = _home(plan)
    rows = world.pick(6)
    slower, faster = world.plant(rows[:3], 0.05, 15), world.plant(rows[3:], -0.05, 15)
    return Case(world, [told_by(slower, 1), told_by(faster, 1)])


def same_build_for_weeks(plan: Plan) -> Case:
    """The same TVM is measured 20 nights in a row. Right: nothing, and three amber nights at most."""
    world = _home(plan)
    world.sequence[8:] = 9
    return Case(world, [ambers_at_most(3)])


def second_night(plan: Plan) -> Case:
    """A home's second build is 10 % slower in one point. Right: told by the second night of it."""
    world = _home(plan, 14)
    step = world.plant(world.pick(1), 0.10, 2)
    return Case(world, [told_by(step, 1)])


def fixed_in_part(plan: Plan) -> Case:
    """Four points are 6 % slower; a fix helps two of them. Right: those are fixed, the others stay open."""
    world = _home(plan)
    rows = world.pick(4)
    stays = world.plant(rows[:2], 0.06, 10)
    goes = world.plant(rows[2:], 0.06, 10, 18)
    return Case(world, [told_by(stays, 1), open_while_it_stands(stays, 1), not_open_without_it(goes)])


def _situation(make: Callable[..., Case], suffix: object = "", **given: Any) -> Situation:
    name = make.__name__ + (f"_{suffix}" if suffix != "" else "")
    return Situation(name, (make.__doc__ or "").strip(), functools.partial(make, **given))


ALL = {
    one.name: one
    for one in (
        *map(_situation, (runtime_3_percent, runtime_1_percent, wheels_out_of_order, wheel_of_14_nights)),
        *map(_situation, (older_commit_once, landed_reverted_landed, code_as_before, reference_becomes_the_bad_one)),
        _situation(new_reference_with_the_step, "kept", gone=False),
        _situation(new_reference_with_the_step, "gone", gone=True),
        *map(_situation, (clock_halved, half_of_the_processes, drift, young_time_on_a_busy_night, two_pairs_agree)),
        _situation(extra_operator),
        *(_situation(not_measured_again, night, night=night) for night in (6, 20)),
        *map(_situation, (fifteen_experiments, exact_number, accuracy_lost, rates, exact_number_that_flips)),
        *map(_situation, (reverted_between_nights, two_culprits, one_operator)),
        _situation(control_moves_too, "alone", planted=False),
        _situation(control_moves_too, "and_a_step", planted=True),
        *map(_situation, (reference_vanishes, half_of_the_series_missing, slow_series, improvement_half_lost)),
        *map(_situation, (step_with_the_machine, other_host_scatters, all_and_one, older_commit_again_and_again)),
        *map(_situation, (luck_three_nights, code_changes_alone, differs_from_the_release, series_appears)),
        *map(_situation, (step_while_away, order_unknown, opposite_steps, same_build_for_weeks, second_night)),
        _situation(fixed_in_part),
    )
}
