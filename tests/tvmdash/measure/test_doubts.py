"""What is said of numbers that deserve doubt, and nothing of those that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvmdash.measure.reduction import find_doubts, find_two_levels, reduce_processes

FACTS: dict[str, Any] = {"load_before": {"load_1_min": 0.5}, "load_after": {}, "cores": 2}


def said(processes: list[list[float]], **facts: Any) -> str:
    found = find_doubts(reduce_processes(processes), processes, [{**FACTS, **facts}] * len(processes))
    return " ".join(doubt.words for doubt in found)


def quiet(level: float, seed: int) -> list[float]:
    return list(level * (1 + 0.005 * np.random.default_rng(seed).normal(size=10)))


def test_nothing_is_said_of_quiet_processes_that_agree() -> None:
    assert said([quiet(10, seed) for seed in range(3)]) == ""


def test_processes_that_disagree_are_told_with_their_medians() -> None:
    assert "its 3 processes disagree: medians from " in said([quiet(10, 1), quiet(10, 2), quiet(11, 3)])


def test_one_process_is_told() -> None:
    assert "one process" in said([quiet(10, 1)])


def test_an_unstable_point_and_few_samples_are_told() -> None:
    assert "may be unstable: standard deviation is" in said([[1, 1, 1, 1, 1, 1, 9]] * 2)
    assert "only 3 samples" in said([[1, 1, 1]])


def test_two_levels_within_a_process_are_told() -> None:
    assert "two levels within a process: near " in said([[*quiet(10, 1), *quiet(12, 2), *quiet(10, 3)]] * 2)


@pytest.mark.parametrize("seed", range(20))
def test_one_heap_is_not_taken_for_two(seed: int) -> None:
    generator = np.random.default_rng(seed)
    assert find_two_levels(list(10 + 0.5 * generator.normal(size=30))) is None
    assert find_two_levels([*generator.normal(10, 0.01, size=9), 20.0]) is None, "an outlier is no level"


def test_a_busy_machine_and_a_clock_that_moved_are_told() -> None:
    assert "load 7.5 on 2 cores" in said([quiet(10, 1)] * 2, load_before={"load_1_min": 7.5})
    moved = said([quiet(10, 1)] * 2, load_before={"load_1_min": 0, "cpu_mhz": 3000.0}, load_after={"cpu_mhz": 2400.0})
    assert "clock was between 2400 and 3000 MHz" in moved
