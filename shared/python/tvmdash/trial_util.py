"""Time a workload: `number`, `repeat` and `min_repeat_ms` mean what TVM's `time_evaluator` means by them."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

from tvmdash.measure.capture import Sample

Timer = Callable[[int, int], list[int]]
"""`timer(number, repeat)`: `repeat` elapsed times in nanoseconds, each the sum over `number` calls."""

MIN_SAMPLES = 3
_MAX_NUMBER = 1_000_000


@dataclass(frozen=True)
class Timing:
    """Limits of a point's samples; `number` 0 means as many calls as fill `min_repeat_ms`."""

    number: int = 0
    repeat: int = 10
    min_repeat_ms: float = 20.0
    warmup: int = 1
    max_seconds: float = 20.0

    def count_samples(self, sample_ns: int, least: int = MIN_SAMPLES) -> int:
        """Return the number of samples to take where each lasts `sample_ns`."""
        fitting = int(self.max_seconds * 1e9 / max(1, sample_ns))
        return min(self.repeat, max(least, fitting))


def time_workload(timer: Timer, timing: Timing) -> list[Sample]:
    """Return the samples of one trial, every one of them, in the order they were taken.

    There are `repeat` of them, or as many as fit in `max_seconds` going by the warm-up, but at least three (or
    `repeat`, where that is less). How many is settled before the first one, so that no result can end the trial.
    """
    number = timing.number or calibrate(timer, timing.min_repeat_ms)
    # the last one, which is the warmest
    warm_ns = timer(number, timing.warmup)[-1]
    return [Sample(elapsed_ns, number) for elapsed_ns in timer(number, timing.count_samples(warm_ns))]


def take_sample(timer: Timer, number: int) -> Sample:
    """Take one sample with its begin, CPU time and whether it was preempted."""
    began_ns, before = time.time_ns(), resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    cpu_ns = time.thread_time_ns()
    elapsed_ns = timer(number, 1)[0]
    cpu_ns = time.thread_time_ns() - cpu_ns
    waited = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw > before
    return Sample(elapsed_ns, number, began_ns, cpu_ns, waited)


def calibrate(timer: Timer, min_repeat_ms: float) -> int:
    """Return the least number of calls that takes `min_repeat_ms`, from a few growing tries."""
    number, wanted_ns = 1, min_repeat_ms * 1e6
    while True:
        elapsed_ns = max(1, timer(number, 1)[0])
        if elapsed_ns >= wanted_ns or number >= _MAX_NUMBER:
            return number
        # a tenth more than the last try suggests, so that the next one is seldom too short
        number = min(_MAX_NUMBER, max(number + 1, min(10 * number, int(number * wanted_ns / elapsed_ns * 1.1) + 1)))


def python_timer(work: Callable[[], object]) -> Timer:
    """Return a timer of a Python callable; the loop's own cost, some 20 ns a call, is in the samples."""

    def timer(number: int, repeat: int) -> list[int]:
        calls = range(number)
        elapsed = []
        for _ in range(repeat):
            begun = time.perf_counter_ns()
            for _ in calls:
                work()
            elapsed.append(time.perf_counter_ns() - begun)
        return elapsed

    return timer


def waiting_timer(work: Callable[[], object], wait: Callable[[], object]) -> Timer:
    """Return a timer of asynchronous work: a call only begins it, and a sample ends when `wait` returns."""

    def timer(number: int, repeat: int) -> list[int]:
        calls, elapsed = range(number), []
        wait()
        for _ in range(repeat):
            begun = time.perf_counter_ns()
            for _ in calls:
                work()
            wait()
            elapsed.append(time.perf_counter_ns() - begun)
        return elapsed

    return timer
