"""Pairs of several runs taken together: the same as of one long run, and no change where there is none."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from tvmdash.stats.pooled import PooledChange, RunOfPairs, find_changes
from tvmdash.stats.student import t_975, two_sided, two_sided_point


def run_of(logs: list[float]) -> RunOfPairs:
    return RunOfPairs(statistics.fmean(logs), statistics.stdev(logs) if len(logs) > 1 else 0.0, len(logs))


def change_of(*runs: list[float], beside: int = 0) -> PooledChange:
    """What is said of one series, among so many others."""
    (found, *_) = find_changes([list(map(run_of, runs)), *[[RunOfPairs(0.0, 0.01, 5)]] * beside])
    assert found is not None
    return found


LOGS = [0.011, 0.023, -0.004, 0.015, 0.02, 0.009, 0.017]


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_pairs_of_two_runs_say_what_the_same_pairs_say_in_one(cut: int) -> None:
    parts, whole = change_of(LOGS[:cut], LOGS[cut:]), change_of(LOGS)
    for name in ("effect", "low", "high", "within", "visible"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)
    error = statistics.stdev(LOGS) / math.sqrt(len(LOGS))
    assert whole.low == pytest.approx(math.expm1(statistics.fmean(LOGS) - t_975(6) * error))
    assert (whole.pairs, whole.real) == (7, True)


def test_runs_that_disagree_widen_the_interval_although_each_by_itself_is_quiet() -> None:
    quiet = [[level + tiny for tiny in (-1e-4, 0.0, 1e-4)] for level in (0.0, 0.05, -0.04)]
    assert change_of(*quiet).within > 0.02


def test_the_least_change_that_would_have_been_seen_is_the_border_of_what_is_real() -> None:
    calm = change_of([0.0, 0.01, -0.01, 0.005, -0.005], beside=9)
    assert calm.visible > calm.within, "ten series ask for more than one"
    for factor, is_real in ((0.99, False), (1.01, True)):
        moved = factor * math.log1p(calm.visible)
        shifted = change_of([moved + log for log in (0.0, 0.01, -0.01, 0.005, -0.005)], beside=9)
        assert shifted.real == is_real


def test_of_many_series_in_which_nothing_changed_hardly_one_try_in_twenty_names_any() -> None:
    rng = random.Random(7)
    named = sum(
        any(
            change.real
            for change in find_changes([[run_of([rng.gauss(0, 0.01) for _ in range(5)])] for _ in range(12)])
            if change
        )
        for _ in range(600)
    )
    assert 12 <= named <= 48, "5 % of 600 are 30"


def test_one_pair_says_nothing_and_pairs_without_noise_say_all() -> None:
    assert find_changes([[RunOfPairs(0.1, 0.0, 1)]]) == [None]
    exact = change_of([0.1, 0.1, 0.1])
    assert (exact.real, exact.within) == (True, pytest.approx(0.0, abs=1e-9))
    assert not change_of([0.0, 0.0, 0.0]).real


@pytest.mark.parametrize(("chance", "degrees"), [(0.05, 4), (0.05, 60), (1e-4, 4), (0.4, 7)])
def test_the_point_of_a_chance_has_that_chance(chance: float, degrees: int) -> None:
    assert two_sided(two_sided_point(chance, degrees), degrees) == pytest.approx(chance, rel=1e-6)
