"""Which differences between two builds are named: those that are there, and hardly ever another."""

from __future__ import annotations

import math
import random

import pytest

from tvmdash.comparison import differences, two_sided

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
    wrong = sum(any(one and one.real for one in differences([rounds(rng) for _ in range(60)])) for _ in range(100))
    assert wrong <= 5


def test_ten_percent_among_sixty_equal_series_is_found_with_its_size() -> None:
    rng = random.Random(5)
    found = differences([rounds(rng, 0.1, 0.01), *(rounds(rng) for _ in range(59))])
    assert [at for at, one in enumerate(found) if one and one.real] == [0]
    assert found[0]
    assert found[0].low < 0.1 < found[0].high
    assert found[0].effect == pytest.approx(0.1, abs=0.03)


def test_nine_of_ten_intervals_and_more_hold_the_truth() -> None:
    rng = random.Random(6)
    found = differences([rounds(rng, 0.03) for _ in range(300)])
    held = sum(one.low <= 0.03 <= one.high for one in found if one)
    assert held >= 270


def test_sizes_that_never_vary_differ_or_are_equal() -> None:
    same, larger = differences([[(100.0, 100.0)] * 3, [(100.0, 104.0)] * 3])
    assert same
    assert not same.real
    assert larger
    assert larger.real
    assert (larger.low, larger.high) == (pytest.approx(0.04), pytest.approx(0.04))


def test_rounds_that_agree_by_chance_are_not_named_while_they_are_few() -> None:
    alike = [(1.0, 1.5), (1.0, 1.5001), (1.0, 1.4999)]
    (few,) = differences([alike])
    (enough,) = differences([[*alike, *alike]])
    assert few is not None
    assert enough is not None
    assert few.p < 0.001
    assert (few.real, enough.real) == (False, True)


def test_too_few_rounds_and_values_that_are_not_above_zero_are_not_judged() -> None:
    assert differences([[(1.0, 2.0)] * 2, [(0.0, 1.0)] * 5, [(1.0, -1.0)] * 5]) == [None, None, None]


@pytest.mark.parametrize(
    ("t", "degrees", "share"),
    [(12.70620, 1, 0.05), (4.302653, 2, 0.05), (2.262157, 9, 0.05), (2.228139, 10, 0.05), (4.780913, 9, 0.001)],
)
def test_students_t_is_that_of_the_tables(t: float, degrees: int, share: float) -> None:
    assert two_sided(t, degrees) == pytest.approx(share, rel=1e-5)
    assert two_sided(-t, degrees) == two_sided(t, degrees)
