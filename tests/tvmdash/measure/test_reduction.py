"""Intervals that cover as often as they say, on numbers whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvmdash.measure import reduction

DRAWS = 1000


def share(inside: list[bool]) -> float:
    return sum(inside) / len(inside)


@pytest.mark.parametrize("count", [6, 10, 25])
def test_the_interval_of_the_median_covers_as_often_as_it_says(count: int) -> None:
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(DRAWS):
        low, high = reduction.median_interval(sorted(generator.exponential(size=count)))
        assert low is not None
        assert high is not None
        inside += low <= np.log(2) <= high
    assert inside / DRAWS >= 0.94


@pytest.mark.parametrize("count", [2, 3, 5, 10])
@pytest.mark.parametrize("between", [0.0, 0.5, 5.0])
def test_the_interval_of_several_processes_covers_whatever_lies_between_them(count: int, between: float) -> None:
    generator = np.random.default_rng(2)
    inside = []
    for _ in range(DRAWS):
        levels = 100 + between * generator.normal(size=count)
        reduced = reduction.reduce_processes([list(level + generator.normal(size=10)) for level in levels])
        low, high = reduced.low, reduced.high
        inside.append(low is None or high is None or low <= 100 <= high)
    assert 0.93 <= share(inside) <= 0.995


def test_pooled_samples_alone_would_not_cover_where_processes_differ() -> None:
    generator = np.random.default_rng(3)
    inside = []
    for _ in range(DRAWS):
        pooled = np.sort((100 + generator.normal(size=(5, 1)) + 0.2 * generator.normal(size=(5, 10))).ravel())
        low, high = reduction.median_interval(list(pooled))
        inside.append(bool(low and high and low <= 100 <= high))
    assert share(inside) < 0.85


def test_one_process_speaks_by_its_order_statistics_and_few_samples_not_at_all() -> None:
    reduced = reduction.reduce_processes([[1, 2, 3, 4, 5, 6, 7]])
    assert (reduced.low, reduced.high, reduced.processes, reduced.between) == (1, 7, 1, None)
    few = reduction.reduce_processes([[1, 2, 3, 4, 5]])
    assert (few.low, few.high) == (None, None)
    assert few.half_width == math.inf


def test_the_spreads_are_those_between_and_within() -> None:
    reduced = reduction.reduce_processes([[9, 10, 11], [], [19, 20, 21]])
    assert (reduced.median, reduced.processes, reduced.count) == (15, 2, 6)
    assert reduced.between == pytest.approx(np.std([10, 20], ddof=1) / 15)
    assert reduced.within == pytest.approx(1 / 15)


def test_an_interval_holds_the_median_of_all_samples() -> None:
    reduced = reduction.reduce_processes([[1.0] * 100, *([1.2 + 0.001 * n] for n in range(9))])
    assert reduced.median == 1.0
    assert reduced.low == 1.0


def test_an_interval_is_of_logarithms_and_not_known_where_it_reaches_beyond_half_of_the_median() -> None:
    wide = reduction.reduce_processes([[14.8], [25.0], [58.2]])
    assert (wide.low, wide.high) == (None, None)
    assert wide.half_width > 0.5
    near = reduction.reduce_processes([[9.0], [10.0], [11.1]])
    assert near.low is not None
    assert near.high is not None
    assert near.low * near.high == pytest.approx((9.0 * 10.0 * 11.1) ** (2 / 3))
