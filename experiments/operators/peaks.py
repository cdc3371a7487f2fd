"""Peaks of this machine with as many threads: numpy's BLAS for arithmetic, its triad and copy for bandwidth.

A peak is what is possible: each sample is the fastest of its calls, so that a busy machine lowers it little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvmdash.exp_templates import Prepared
from tvmdash.experiment.engines import Engine, EngineFacts
from tvmdash.networks import accuracy
from tvmdash.networks.ops import Array
from tvmdash.trial_util import Timer, python_timer

NUMPY = Engine("numpy", facts=lambda: EngineFacts(np.__version__))
MATMUL, TRIAD, COPY = "machine.matmul", "machine.triad", "machine.copy"
ARRAYS: Mapping[str, int] = {TRIAD: 3, COPY: 2}
"""Arrays that share a working set, each read or written once."""
BLOCK = 32768
"""Elements that numpy's two steps of the triad work on, so that the second finds the first's result in the cache."""
BYTES_PER_CALL = 16 * 2**20
"""Small sets are gone through again and again, so that starting threads costs nothing to speak of."""
SCALAR = np.float32(3.0)
BEST = {"sample_is": "the fastest of its calls"}
CALLS = 10


@dataclass(frozen=True)
class PeakRate:
    """A measured point: `ms` for its work with this many threads."""

    workload: str
    args: Mapping[str, Any]
    threads: int
    ms: float


@dataclass(frozen=True)
class Peaks:
    """The machine's peaks with one number of threads: GFLOP/s, and GB/s by working set in bytes, ascending."""

    gflops: float
    bandwidth: tuple[tuple[int, float], ...]

    def bandwidth_for(self, moved: int) -> float:
        """Return GB/s at the smallest working set measured that holds `moved` bytes, else at the largest."""
        return next((rate for size, rate in self.bandwidth if size >= moved), self.bandwidth[-1][1])

    def least_ms(self, operations: int, moved: int) -> tuple[float, str]:
        """Return the time that the peaks allow, and which of them sets it: `arithmetic` or `memory`."""
        bounds = {"arithmetic": operations / self.gflops / 1e6, "memory": moved / self.bandwidth_for(moved) / 1e6}
        bound = max(bounds, key=bounds.__getitem__)
        return bounds[bound], bound


def peaks(rates: Iterable[PeakRate], threads: int) -> Peaks | None:
    """Find the peaks among the measured points of this many threads; None where one of the two kinds is missing.

    Of triad and copy the better one counts: numpy's triad is two steps, which shows while all lies in a cache.
    """
    own = [rate for rate in rates if rate.threads == threads]
    gflops = [gflops_of(rate) for rate in own if rate.workload == MATMUL]
    bandwidths: dict[int, float] = {}
    for rate in own:
        if rate.workload in ARRAYS:
            size = int(rate.args["kib"]) * 1024
            bandwidths[size] = max(bandwidths.get(size, 0.0), bandwidth_of(rate))
    return Peaks(max(gflops), tuple(sorted(bandwidths.items()))) if gflops and bandwidths else None


def gflops_of(rate: PeakRate) -> float:
    """Return GFLOP/s of the matrix product."""
    return 2 * int(rate.args["n"]) ** 3 / rate.ms / 1e6


def bandwidth_of(rate: PeakRate) -> float:
    """Return GB/s of a triad or a copy."""
    return bytes_per_call(int(rate.args["kib"])) / rate.ms / 1e6


def passes(kib: int) -> int:
    """Return how often a call goes through its working set."""
    return max(1, math.ceil(BYTES_PER_CALL / (kib * 1024)))


def bytes_per_call(kib: int) -> int:
    """Return the bytes that a call reads and writes, counted as STREAM does: without what a write reads first."""
    return kib * 1024 * passes(kib)


def prepare(workload: str, values: Mapping[str, Any], seed: int) -> Prepared:
    """Prepare a point of the machine."""
    rng, threads = np.random.default_rng([seed, 4]), int(values["threads"])
    if workload == MATMUL:
        return _matmul(rng, int(values["n"]))
    return _streamed(workload, rng, int(values["kib"]), threads)


def _matmul(rng: np.random.Generator, n: int) -> Prepared:
    a, b = (rng.standard_normal((n, n), dtype=np.float32) for _ in range(2))
    out = np.empty((n, n), np.float32)

    def check() -> dict[str, float]:
        np.matmul(a, b, out=out)
        return accuracy.check_answer(out[:8], a[:8].astype(np.float64) @ b.astype(np.float64))

    details = {**BEST, "operations_per_call": 2 * n**3}
    return Prepared(fastest(lambda: np.matmul(a, b, out=out)), check, details=details)


def _streamed(workload: str, rng: np.random.Generator, kib: int, threads: int) -> Prepared:
    """Prepare a stream: each thread has its part of the arrays, and goes through it `passes` times."""
    length = kib * 1024 // ARRAYS[workload] // 4
    out, left, right = (rng.random(length, dtype=np.float32) for _ in range(3))
    parts = [tuple(np.array_split(array, threads)[part] for array in (out, left, right)) for part in range(threads)]
    step, rounds = STEPS[workload], passes(kib)
    works = [_repeated(step, blocks, rounds) for blocks in (_blocks(part) for part in parts)]
    call = works[0] if threads == 1 else _together(works)

    def check() -> dict[str, float]:
        call()
        return accuracy.check_answer(out, left + SCALAR * right if workload == TRIAD else left)

    return Prepared(fastest(call), check, details={**BEST, "bytes_per_call": bytes_per_call(kib)})


def fastest(work: Callable[[], object]) -> Timer:
    """Make a timer whose every sample is `number` times the fastest of `number` calls, or of more, `CALLS`."""
    single = python_timer(work)
    return lambda number, repeat: [number * min(single(1, max(CALLS, number))) for _ in range(repeat)]


def _blocks(arrays: tuple[Array, ...]) -> list[tuple[Array, ...]]:
    starts = range(0, len(arrays[0]), BLOCK)
    return [tuple(array[start : start + BLOCK] for array in arrays) for start in starts]


def _repeated(step: Callable[..., None], blocks: list[tuple[Array, ...]], rounds: int) -> Callable[[], None]:
    def work() -> None:
        for _ in range(rounds):
            for block in blocks:
                step(*block)

    return work


def _together(works: list[Callable[[], None]]) -> Callable[[], None]:
    """Run all at once, each in a thread; numpy lets go of the interpreter while it computes."""
    pool = ThreadPoolExecutor(len(works))

    def call() -> None:
        for future in [pool.submit(work) for work in works]:
            future.result()

    return call


def _triad(out: Array, left: Array, right: Array) -> None:
    np.multiply(right, SCALAR, out=out)
    np.add(out, left, out=out)


def _copy(out: Array, source: Array, _other: Array) -> None:
    np.copyto(out, source)


STEPS: Mapping[str, Callable[..., None]] = {TRIAD: _triad, COPY: _copy}
