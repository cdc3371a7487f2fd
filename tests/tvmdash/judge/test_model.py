"""What the model says of two builds: how far apart they are, how sure that is, and what would be seen."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzzing import the_same_each_time
from tests.tvmdash.judge.homes import (
    CODE_LUCK,
    LIBRARY_LUCK,
    QUIET,
    RELEASE,
    beside_release,
    chain,
    draw_chain,
    draw_home,
    draw_luck,
    draw_pairs,
    series,
    take,
)
from tvmdash.judge import RULES, Evidence
from tvmdash.judge.home import Decision, interval, judge
from tvmdash.judge.model import SeriesModel, locate
from tvmdash.judge.noise import HomeNoise, SeriesNoise, learn

KNOWN = HomeNoise({"p": SeriesNoise(0.013**2, CODE_LUCK**2, LIBRARY_LUCK**2)}, {}, 0.75)


def model(evidence: Evidence) -> SeriesModel:
    return SeriesModel("p", evidence, KNOWN)


def test_the_difference_of_two_builds_is_the_sum_along_the_chain_and_less_sure_the_longer_it_is() -> None:
    logs = [0.01, 0.02, -0.005, 0.03]
    known = model(chain(logs))
    differences = [known.difference(f"b{at}", "b0") for at in range(1, 5)]
    assert all(each is not None for each in differences)
    assert [each.log for each in differences if each] == pytest.approx(np.cumsum(logs), rel=1e-2)
    errors = [each.error for each in differences if each]
    assert errors == sorted(errors)
    back = known.difference("b0", "b4")
    assert back is not None
    assert (back.log, back.error) == pytest.approx((-sum(logs), errors[-1]), rel=1e-2)


def test_a_direct_pair_makes_the_same_difference_surer_and_counts_by_its_weight() -> None:
    far = model(chain([0.0] * 6)).difference("b6", "b0")
    near = model(series([*chain([0.0] * 6).pairs, take(6, 0, 0.02, count=20)])).difference("b6", "b0")
    assert far is not None
    assert near is not None
    assert near.error < far.error
    assert 0.017 < near.log < 0.02


def test_builds_that_nothing_joins_have_no_difference() -> None:
    measured = [take(1, 0, 0.0), take(3, 2, 0.0)]
    assert model(series(measured)).difference("b3", "b0") is None
    assert model(series(measured)).difference("b3", "b7") is None


def test_two_builds_of_a_restless_program_are_joined_by_more_pairs() -> None:
    restless = HomeNoise({"p": SeriesNoise(0.5**2, CODE_LUCK**2, LIBRARY_LUCK**2)}, {}, 0.75)
    few, many = (SeriesModel("p", series([take(1, 0, 0.1, count=count)]), restless) for count in (2, 9))
    assert (few.difference("b1", "b0"), few.shift(1)) == (None, None)
    assert many.difference("b1", "b0") is not None
    assert many.shift(1) is not None


def test_a_step_between_does_not_widen_the_difference_of_two_builds() -> None:
    calm, moved = (model(chain([0.0, size, 0.0])).difference("b3", "b0") for size in (0.0, 0.5))
    assert calm is not None
    assert moved is not None
    assert (moved.error, moved.log) == pytest.approx((calm.error, 0.5), rel=1e-3)


def test_levels_are_those_of_the_pairs_and_of_what_is_joined_alone() -> None:
    measured = [take(1, 0, 0.1), take(2, 1, 0.05), take(9, 8, 0.3)]
    assert locate(measured, "b2") == pytest.approx({"b2": 0.0, "b1": -0.05, "b0": -0.15})


@pytest.mark.parametrize("make", [chain, beside_release])
def test_a_step_of_the_visible_size_is_told_in_nine_of_ten_draws(make: object) -> None:
    rng, told, planted = np.random.default_rng(1), 0, 300
    for _ in range(planted):
        lucky = draw_luck(rng, 13)
        bases = range(1, 13)
        if make is chain:
            logs = [draw_pairs(rng, at, at - 1, float(lucky[at] - lucky[at - 1])) for at in bases]
        else:
            logs = [draw_pairs(rng, at, RELEASE, float(lucky[at])) for at in bases]
        calm = model(series(logs))
        prior = math.log(RULES.steps_a_night / RULES.fewest_points)
        step = math.log1p(calm.visible(prior))
        moved = model(series([*logs[:-1], replace(logs[-1], log=logs[-1].log + step)]))
        found = moved.best(prior)
        told += found is not None and found.odds >= RULES.log("suspected")
    assert 0.82 <= told / planted <= 0.97


def test_nothing_is_visible_where_nothing_joins() -> None:
    evidence = Evidence("cnn", (take(1, RELEASE, 0.0),), {"b1": 1}, "b1")
    assert model(evidence).visible(-5.0) == math.inf


def test_intervals_of_two_builds_hold_the_truth_in_about_95_percent() -> None:
    rng, held, drawn = np.random.default_rng(2), 0, 600
    for _ in range(drawn):
        truth = float(rng.normal(0, 0.05))
        lucky = draw_luck(rng, 2)
        pairs = draw_pairs(rng, 1, 0, truth + float(lucky[1] - lucky[0]), count=int(rng.integers(5, 30)))
        evidence = series([pairs])
        shift = SeriesModel("p", evidence, learn({"p": evidence})).difference("b1", "b0")
        assert shift is not None
        low, high = interval(shift)
        held += low <= math.expm1(truth) <= high
    assert 0.93 <= held / drawn <= 0.98  # the judge's guess of pairs' scatter is shrunk to what it expects


@the_same_each_time(25, 300)
@given(st.integers(0, 10**6), st.floats(-0.2, 0.2))
def test_two_builds_exchanged_differ_by_the_opposite(seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    pairs = draw_pairs(rng, 1, 0, size, count=int(rng.integers(5, 15)))
    one, other = judge({"p": series([pairs])}), judge({"p": series([replace(pairs, log=-pairs.log)], sign=-1)})
    assert [change.decision for change in one.changes] == [change.decision for change in other.changes]
    for first, second in zip(one.changes, other.changes, strict=True):
        assert first.found.odds == pytest.approx(second.found.odds)
        assert first.found.shift == pytest.approx(-second.found.shift)


@the_same_each_time(12, 100)
@given(st.integers(0, 10**6))
def test_neither_the_order_of_series_nor_the_names_of_builds_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    home = draw_home(seed, points=8)
    home["p00"] = draw_chain(rng, [0.0] * 8 + [float(rng.choice([0.05, 0.1, -0.1]))] * 5)
    renamed = {name: _rename(each) for name, each in reversed(home.items())}
    one, other = judge(home), judge(renamed)
    said = [{(change.decision, change.series, change.found.begin) for change in each.changes} for each in (one, other)]
    assert said[0] == said[1]
    for name, found in one.found.items():
        twin = other.found[name]
        assert (found is None) == (twin is None)
        if found is not None and twin is not None:
            assert (found.odds, found.shift, found.error) == pytest.approx((twin.odds, twin.shift, twin.error))


def _rename(each: Evidence) -> Evidence:
    pairs = tuple(replace(one, build=f"tvm {one.build}", base=f"tvm {one.base}") for one in each.pairs)
    return replace(
        each,
        pairs=pairs,
        places={f"tvm {name}": place for name, place in each.places.items()},
        tonight=f"tvm {each.tonight}",
    )


def test_a_quiet_series_more_changes_little() -> None:
    home = {**draw_home(3), "q": chain([*QUIET, 0.06])}
    more = {**home, "r": chain([*QUIET, 0.0])}
    one, other = (judge(each).found["q"] for each in (home, more))
    assert one is not None
    assert other is not None
    assert other.odds == pytest.approx(one.odds, abs=0.5)
    assert other.shift == pytest.approx(one.shift, abs=0.002)


def test_a_step_is_likelier_at_a_build_that_changed_the_code_and_rarer_at_one_that_left_it() -> None:
    noise = HomeNoise({"p": SeriesNoise(0.013**2, 0.0, LIBRARY_LUCK**2)}, {}, 0.75)  # as uncertain, whatever the code
    unchanged = {f"b{at}": 1 for at in range(8)}
    odds = []
    for code in (unchanged, {}, unchanged | {"b7": 2}):
        found = SeriesModel("p", chain([*QUIET, 0.03], code=code), noise).best(-5.0)
        assert found is not None
        odds.append(found.odds)
    assert odds[0] < odds[1] - 1
    assert odds[1] < odds[2] < odds[1] + 2


def test_more_pairs_of_the_same_size_are_surer() -> None:
    errors = [model(chain([*QUIET, 0.04], count=count)).shift(7) for count in (5, 10, 40)]
    known = [each.error for each in errors if each]
    assert known == sorted(known, reverse=True)
    assert judge({"p": chain([*QUIET, 0.2], count=40)}).changes[0].decision == Decision.TOLD
