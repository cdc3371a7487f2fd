"""Steps that many series share: one telling for one cause, and each series keeps its own size."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.tvmdash.judge.homes import draw_chain, draw_home, only, take
from tvmdash.judge import RULES, Evidence, KnownStep
from tvmdash.judge.home import Change, Decision, Scope, judge

NIGHTS = 14


def home_of(
    sizes: list[float], *, seed: int, at: int = NIGHTS, signs: list[int] | None = None, experiments: int = 1
) -> dict[str, Evidence]:
    """One point for each size (log), which it moves by at the build `at`."""
    rng = np.random.default_rng(seed)
    home = {}
    for number, size in enumerate(sizes):
        levels = [size * (build >= at) for build in range(NIGHTS + 1)]
        changes = {"experiment": f"e{number % experiments}", "sign": signs[number] if signs else 1}
        home[f"p{number:02}"] = draw_chain(rng, levels, **changes)
    return home


def groups_of(changes: tuple[Change, ...]) -> list[Change]:
    return [change for change in changes if change.scope != Scope.POINT]


def test_one_percent_in_all_points_is_one_step_of_the_home_that_no_point_shows_by_itself() -> None:
    home = home_of([0.01] * 24, seed=4)
    alone = [judge({name: each}).changes for name, each in home.items()]
    assert not [change for changes in alone for change in changes if change.decision == Decision.TOLD]
    change = only(judge(home))
    assert (change.decision, change.scope, change.found.begin) == (Decision.TOLD, Scope.HOME, NIGHTS)
    assert len(change.series) >= 18
    low, high = change.interval
    assert low < 0.01 < high
    assert high - low < 0.02


def test_three_percent_in_all_points_are_told_once_of_nearly_all() -> None:
    change = only(judge(home_of([0.03] * 20, seed=5)))
    assert (change.decision, change.scope) == (Decision.TOLD, Scope.HOME)
    assert len(change.series) >= 18
    assert change.found.effect == pytest.approx(0.03, abs=0.006)


def test_what_moved_in_one_experiment_alone_is_told_of_that_experiment() -> None:
    sizes = [0.03 if number % 3 == 1 else 0.0 for number in range(30)]
    (change,) = groups_of(judge(home_of(sizes, seed=6, experiments=3)).changes)
    assert (change.decision, change.scope) == (Decision.TOLD, Scope.EXPERIMENT)
    moved = {f"p{number:02}" for number in range(30) if number % 3 == 1}
    assert len(moved.intersection(change.series)) >= 8
    assert moved.issuperset(change.series)


def test_a_point_that_moved_by_itself_is_no_step_of_its_group() -> None:
    changes = judge(home_of([0.15, *[0.0] * 11], seed=7)).changes
    assert [(change.scope, change.series) for change in changes] == [(Scope.POINT, ("p00",))]


def test_points_with_new_code_that_move_together_are_told_together() -> None:
    home = home_of([*[0.04] * 6, *[0.0] * 18], seed=8)
    names = [f"b{build}" for build in range(NIGHTS + 1)]
    for number, (name, each) in enumerate(home.items()):
        code = dict.fromkeys(names, number + 1)
        home[name] = replace(each, code=code | {names[-1]: 1000 + number} if number < 6 else code)
    (change,) = groups_of(judge(home).changes)
    assert change.scope == Scope.CODE
    assert set(change.series) == {f"p{number:02}" for number in range(6)}


def test_one_build_may_make_some_points_worse_and_others_better() -> None:
    changes = judge(home_of([0.06] * 8 + [-0.06] * 8, seed=9)).changes
    said: dict[str, set[str]] = {}
    for change in changes:
        said.setdefault(change.decision, set()).update(change.series)
    assert len(said["told"] & {f"p{number:02}" for number in range(8)}) >= 7
    assert len(said["better"] & {f"p{number:02}" for number in range(8, 16)}) >= 7
    assert not said["told"] & said["better"]


def test_throughput_that_falls_and_times_that_rise_are_one_step_and_each_keeps_its_sign() -> None:
    signs = [1, -1] * 10
    change = only(judge(home_of([0.05 * sign for sign in signs], seed=10, signs=signs)))
    assert (change.decision, change.scope) == (Decision.TOLD, Scope.HOME)
    assert change.found.effect > 0  # of all together, worse is positive
    for name in change.series:
        own = change.of(name)
        assert own.effect == pytest.approx(0.05 * signs[int(name[1:])], abs=0.025)


def test_better_is_told_of_all_as_well() -> None:
    change = only(judge(home_of([-0.03] * 20, seed=11)))
    assert (change.decision, change.scope) == (Decision.BETTER, Scope.HOME)


def test_a_member_with_a_share_of_its_own_is_known_by_its_own_pairs() -> None:
    rng = np.random.default_rng(12)
    sizes = [0.04] * 19 + [0.055]
    home = {
        f"p{number:02}": draw_chain(rng, [0.0] * NIGHTS + [size], count=20, sd=0.008)
        for number, size in enumerate(sizes)
    }
    change = next(change for change in judge(home).changes if change.scope == Scope.HOME)
    assert "p19" in change.series
    others = np.mean([change.of(name).shift for name in change.series if name != "p19"])
    assert change.of("p19").shift > others
    assert all(change.of(name).error < 0.02 for name in change.series)


def test_a_step_of_all_that_is_open_is_not_told_again_and_its_end_is_fixed_for_all() -> None:
    home = home_of([0.03] * 20, seed=13, at=8)
    known = {name: replace(each, steps=[KnownStep(8, 0.03, "R1")]) for name, each in home.items()}
    assert only(judge(home)).found.begin == 8
    assert judge(known).changes == ()
    rng = np.random.default_rng(14)
    for name, each in known.items():
        levels = [0.03 * (8 <= build < NIGHTS) for build in range(NIGHTS + 1)]
        known[name] = replace(draw_chain(rng, levels), steps=each.steps)
    change = only(judge(known))
    assert (change.decision, change.incident, change.scope) == (Decision.FIXED, "R1", Scope.HOME)


def test_one_of_all_that_moved_further_by_itself_is_told_as_well() -> None:
    changes = judge(home_of([0.12, *[0.02] * 23], seed=15)).changes
    assert {change.scope for change in changes if "p00" in change.series} == {Scope.POINT}
    (group,) = groups_of(changes)
    assert len(group.series) >= 18


@pytest.mark.parametrize("count", [1, 2])
def test_so_few_series_are_no_group(count: int) -> None:
    rng = np.random.default_rng(16)
    home = {f"p{number}": draw_chain(rng, [0.0] * NIGHTS + [0.1]) for number in range(count)}
    assert {change.scope for change in judge(home).changes} == {Scope.POINT}


def test_quiet_homes_have_no_common_step() -> None:
    assert not [change for seed in range(40) for change in groups_of(judge(draw_home(1000 + seed)).changes)]


def test_a_common_step_below_what_anybody_acts_on_is_not_told() -> None:
    home = {}
    for number in range(30):
        measured = [take(1, 0, 0.002, count=60, std=0.004)]
        home[f"p{number:02}"] = Evidence("cnn", tuple(measured), {"b0": 0, "b1": 1}, "b1")
    assert RULES.least_of_group > 0.002
    assert judge(home).changes == ()


def test_a_control_is_in_no_group() -> None:
    home = home_of([0.05] * 12, seed=17)
    home["canary"] = replace(home["p00"], is_control=True)
    assert "canary" not in only(judge(home)).series


def test_size_and_number_of_a_home_do_not_make_a_group_of_a_few() -> None:
    changes = judge(home_of([math.log(1.08)] * 2 + [0.0] * 40, seed=18)).changes
    assert {change.series for change in changes} == {("p00",), ("p01",)}
