"""Timing: how often what is called, and what is kept. No real clock decides a test."""

from __future__ import annotations

import pytest

from tvmdash.trial_util import Timing, calibrate, python_timer, time_workload


class FakeTimer:
    """A workload of `ns` nanoseconds a call that remembers how it was called."""

    def __init__(self, ns: int) -> None:
        self.ns = ns
        self.calls: list[tuple[int, int]] = []

    def __call__(self, number: int, repeat: int) -> list[int]:
        self.calls.append((number, repeat))
        return [number * self.ns] * repeat


def test_number_and_repeat_are_taken_as_they_are_given() -> None:
    timer = FakeTimer(1000)
    samples = time_workload(timer, Timing(number=7, repeat=4, warmup=2))
    assert [(sample.number, sample.elapsed_ns) for sample in samples] == [(7, 7000)] * 4
    assert timer.calls[0] == (7, 2)


@pytest.mark.parametrize("ns", [20, 1_000, 150_000, 30_000_000])
def test_a_sample_lasts_at_least_min_repeat_ms(ns: int) -> None:
    number = calibrate(FakeTimer(ns), 20.0)
    assert number * ns >= 20e6
    assert number == 1 or number * ns <= 20e6 * 1.3


def test_a_call_that_takes_no_measurable_time_ends_the_calibration() -> None:
    assert calibrate(FakeTimer(0), 20.0) == 1_000_000


@pytest.mark.parametrize(("seconds", "count"), [(60, 3), (4, 5), (0.001, 50)])
def test_a_slow_workload_gets_fewer_samples_but_at_least_three(seconds: float, count: int) -> None:
    timer = FakeTimer(int(seconds * 1e9))
    assert len(time_workload(timer, Timing(number=1, repeat=50, max_seconds=20))) == count


def test_all_samples_come_from_one_call_of_the_timer() -> None:
    timer = FakeTimer(1000)
    time_workload(timer, Timing(number=1, repeat=5))
    assert timer.calls == [(1, 1), (1, 5)]


def test_every_sample_is_kept_in_order() -> None:
    elapsed = iter([[3], [5, 9, 1, 7]])
    samples = time_workload(lambda number, repeat: next(elapsed), Timing(number=1, repeat=4))
    assert [sample.elapsed_ns for sample in samples] == [5, 9, 1, 7]


def test_a_python_callable_is_called_number_times_for_each_sample() -> None:
    calls = []
    elapsed = python_timer(lambda: calls.append(1))(5, 3)
    assert len(calls) == 15
    assert len(elapsed) == 3
    assert all(value > 0 for value in elapsed)
