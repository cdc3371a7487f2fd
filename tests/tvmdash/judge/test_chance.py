"""How often chance alone tells something: as wide as a home's errors are where nothing changed."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from tests.tvmdash.judge.homes import RELEASE, draw_pairs, series
from tvmdash.judge import RULES
from tvmdash.judge.chance import NO_NULLS, Nulls, chance_of, chance_of_step, count_errors, find_nulls, share_beyond
from tvmdash.judge.model import FoundStep, SeriesModel, Shift
from tvmdash.judge.noise import HomeNoise, SeriesNoise

FINE = 1e-4
AS_EXPECTED = HomeNoise({"p": SeriesNoise(FINE**2, RULES.code_luck**2, RULES.library_luck**2)}, {}, 0.4)
LUCK = math.hypot(RULES.code_luck, RULES.library_luck)
PRIOR = math.log(RULES.steps_a_night / RULES.fewest_points)


def draw(factor: float, *, points: int, is_same: bool) -> Iterator[SeriesModel]:
    """Series beside a release whose nights and builds differ by `factor` times what the judge expects of them."""
    rng = np.random.default_rng(5)
    for _ in range(points):
        luck = LUCK * rng.standard_normal(7)
        pairs = []
        for night in range(7):
            build = 0 if is_same else night
            truth = factor * (luck[build] + RULES.night_sd * rng.standard_normal())
            pairs.append(draw_pairs(rng, build, RELEASE, truth, sd=FINE, night=night))
        code = {f"b{build}": build + 1 for build in range(7)}
        yield SeriesModel("p", series(pairs, code=code), AS_EXPECTED)


def count(factor: float, *, is_same: bool = False) -> Nulls:
    same, other = find_nulls(draw(factor, points=1500, is_same=is_same), 6)
    assert (other if is_same else same) == NO_NULLS
    return same if is_same else other


@pytest.mark.parametrize("is_same", [True, False])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_nulls_are_as_wide_as_a_homes_noise_is(factor: float, *, is_same: bool) -> None:
    nulls = count(factor, is_same=is_same)
    assert nulls.count == 1500
    assert nulls.width == pytest.approx(factor, rel=0.2)


def test_chance_follows_the_noise_of_the_home() -> None:
    model = next(draw(1.0, points=1, is_same=False))
    half, usual, twice = (chance_of(model, PRIOR, width) for width in (0.5, 1.0, 2.0))
    assert half < 1e-3 * usual
    assert usual < RULES.chance_of_point(1)
    assert twice > 100 * usual


def test_few_nulls_say_nothing_of_a_home() -> None:
    assert Nulls(RULES.least_nulls - 1, (60, 9)).width is None
    assert Nulls(RULES.least_nulls, (63, 9)).width == pytest.approx(1.0, abs=0.02)
    assert (Nulls(100, (31, 4)) + Nulls(100, (32, 5))).width == Nulls(200, (63, 9)).width


def test_true_steps_among_the_nulls_hardly_count() -> None:
    clean, mixed = Nulls(1000, (317, 46)).width, Nulls(1010, (327, 56)).width
    assert clean is not None
    assert mixed == pytest.approx(clean, rel=0.06)


def test_errors_are_counted_as_a_normal_distribution_has_them() -> None:
    """Of Student's t with 8 degrees 5 % lie beyond 2.306 times its scale, of a normal distribution beyond 1.96."""
    scale = math.sqrt(1 - 2 / 8)
    assert count_errors(Shift(2.306 * scale, 1.0, 8.0)) == pytest.approx(1.96, abs=0.01)
    assert share_beyond(1.96) == pytest.approx(0.05, abs=1e-4)


def test_the_surer_a_step_the_rarer_chance_brings_as_much() -> None:
    model = next(draw(1.0, points=1, is_same=False))
    small, large = (chance_of_step(model, FoundStep(0.0, shift, 0.005, 6), 1.0) for shift in (0.02, 0.04))
    assert large < small < 1
    assert chance_of_step(model, FoundStep(0.0, 0.02, 0.005, 6), 2.0) > small
    assert chance_of_step(model, FoundStep(math.inf, 0.02, 0.0, 6), 1.0) == 0
