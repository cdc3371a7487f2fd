"""Which differences between two builds are named: those that are there, and hardly ever another."""

from __future__ import annotations

import math
import random

import pytest

from tvmdash.stats import comparison
from tvmdash.stats.comparison import NAMED_ROUNDS, find_differences
from tvmdash.stats.student import two_sided

ROUNDS = 10


def rounds(rng: random.Random, effect: float = 0.0, noise: float = 0.02) -> list[tuple[float, float]]:
    """Both values of a round share the machine's state; now and then one is disturbed."""
    found = []
    for _ in range(ROUNDS):
        state = rng.gauss(0, 0.05)
        pair = [state + rng.gauss(0, noise) + (rng.expovariate(10) if rng.random() < 0.03 else 0) for _ in range(2)]
        found.append((math.exp(pair[0]), (1 + effect) * math.exp(pair[1])))
    return found


def test_equal_builds_have_a_real_difference_in_at_most_one_of_twenty_comparisons() -> None:
    rng = random.Random(4)
    wrong = sum(any(one and one.real for one in find_differences([rounds(rng) for _ in range(12)])) for _ in range(40))
    assert wrong <= 4


def test_ten_percent_among_sixty_equal_series_is_found_with_its_size() -> None:
    rng = random.Random(5)
    found = find_differences([rounds(rng, 0.1, 0.01), *(rounds(rng) for _ in range(59))])
    assert [at for at, one in enumerate(found) if one and one.real] == [0]
    assert found[0]
    assert found[0].low < 0.1 < found[0].high
    assert found[0].effect == pytest.approx(0.1, abs=0.03)


def test_nine_of_ten_intervals_and_more_hold_the_truth() -> None:
    rng = random.Random(6)
    found = find_differences([rounds(rng, 0.03) for _ in range(150)])
    held = sum(one.low <= 0.03 <= one.high for one in found if one)
    assert held >= 135


def test_sizes_that_never_vary_differ_or_are_equal() -> None:
    same, larger = find_differences([[(100.0, 100.0)] * 3, [(100.0, 104.0)] * 3])
    assert same
    assert not same.real
    assert larger
    assert larger.real
    assert (larger.low, larger.high) == (pytest.approx(0.04), pytest.approx(0.04))


def test_of_fewer_than_six_rounds_nothing_that_varies_is_named_however_clear() -> None:
    alike = [(1.0, 1.5), (1.0, 1.5001), (1.0, 1.4999), (1.0, 1.5002), (1.0, 1.4998), (1.0, 1.5003)]
    found = [find_differences([alike[:count]])[0] for count in range(3, NAMED_ROUNDS + 1)]
    assert [one.real for one in found if one] == [False, False, False, True]
    assert [one.p for one in found if one] == [0.25, 0.125, 0.0625, 0.03125]


def disturbed(rng: random.Random, count: int, effect: float) -> list[tuple[float, float]]:
    """Rounds of which every twentieth run is slow by 15 % on average."""

    def value() -> float:
        return math.exp(rng.gauss(0, 0.014) + (rng.expovariate(1 / 0.15) if rng.random() < 0.05 else 0))

    return [(value(), (1 + effect) * value()) for _ in range(count)]


def share_named(seed: int, count: int, effect: float, series: int, trials: int) -> float:
    """How often the first series, or with no effect any, is named."""
    rng, named = random.Random(seed), 0
    for _ in range(trials):
        found = find_differences(
            [disturbed(rng, count, effect), *(disturbed(rng, count, 0.0) for _ in range(series - 1))]
        )
        named += any(one is not None and one.real for one in (found[:1] if effect else found))
    return named / trials


@pytest.mark.parametrize("count", [3, 4, 5])
def test_equal_builds_are_never_told_apart_by_fewer_than_six_rounds(count: int) -> None:
    assert share_named(1, count, 0.0, 1, 300) == 0


@pytest.mark.parametrize(("count", "series", "trials"), [(6, 1, 400), (7, 1, 300), (10, 1, 100), (6, 8, 60)])
def test_equal_builds_with_disturbed_runs_are_told_apart_in_one_of_twenty(count: int, series: int, trials: int) -> None:
    most = 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / trials)
    assert share_named(2, count, 0.0, series, trials) <= most


def test_five_percent_is_found_through_disturbed_runs() -> None:
    """Student's t finds three quarters of these."""
    assert share_named(3, 10, 0.05, 1, 60) >= 0.88


def test_a_difference_among_many_series_needs_no_more_rounds_than_one_alone() -> None:
    """Signed ranks of ten rounds, each series by itself, could name none of sixty."""
    rng = random.Random(4)
    found = find_differences([disturbed(rng, 10, 0.2), *(disturbed(rng, 10, 0.0) for _ in range(59))])
    assert [at for at, one in enumerate(found) if one and one.real] == [0]


def test_what_is_told_is_the_median_of_the_rounds_and_a_wild_one_hardly_moves_it() -> None:
    calm = [(1.0, 1.05 + 0.001 * at) for at in range(10)]
    (before, after) = (find_differences([rounds])[0] for rounds in (calm, [*calm[:9], (1.0, 3.0)]))
    assert before is not None
    assert after is not None
    assert after.effect == pytest.approx(before.effect, abs=0.002)
    assert after.high < 0.06


@pytest.mark.parametrize(("count", "first", "last"), [(6, 1, 6), (8, 1, 8), (9, 2, 8), (10, 2, 9), (100, 40, 61)])
def test_the_interval_is_that_of_the_tables_of_order_statistics(count: int, first: int, last: int) -> None:
    assert comparison.interval([float(one) for one in range(1, count + 1)]) == (first, last)


def test_too_few_rounds_and_values_that_are_not_above_zero_are_not_judged() -> None:
    assert find_differences([[(1.0, 2.0)] * 2, [(0.0, 1.0)] * 5, [(1.0, -1.0)] * 5]) == [None, None, None]


@pytest.mark.parametrize(
    ("t", "degrees", "share"),
    [(12.70620, 1, 0.05), (4.302653, 2, 0.05), (2.262157, 9, 0.05), (2.228139, 10, 0.05), (4.780913, 9, 0.001)],
)
def test_students_t_is_that_of_the_tables(t: float, degrees: int, share: float) -> None:
    assert two_sided(t, degrees) == pytest.approx(share, rel=1e-5)
    assert two_sided(-t, degrees) == two_sided(t, degrees)
