"""The canary's workloads: each one's kernel, its arguments, and the answer that Python gives as well."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from machine_code import Function

from tvmdash.errors import DashboardError

MASK = (1 << 64) - 1
FACTOR, INCREMENT = 0x5851F42D4C957F2D, 0x14057B7EF767814F
START = 0.3
ACCUMULATORS = 12
L1_BYTES = 16 << 10
BASE = "base"
"""The instructions that every processor of an architecture has."""


@dataclass(frozen=True)
class Work:
    """A workload ready to be called. `check` calls it once, and raises where the answer is wrong.

    operations, moved_bytes: of one call, 0 where it is not about them. memory: what `call` reads and writes by address,
    and has to outlive it.
    """

    call: Callable[[], object]
    check: Callable[[], Mapping[str, Any]]
    operations: int = 0
    moved_bytes: int = 0
    memory: tuple[object, ...] = ()


def _exact(name: str, got: object, wanted: object) -> dict[str, float]:
    """Return facts for the record; all answers are exact, so any difference is an error."""
    if got != wanted:
        raise DashboardError(f"{name}: the answer is {got!r}, Python's is {wanted!r}.")
    return {"max_error": 0.0, "tolerance": 0.0}


def integer_chain(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    steps = arguments["steps"]
    return Work(
        lambda: kernel(0, 0, steps, seed),
        lambda: _exact("integer_chain", kernel(0, 0, steps, seed), after_steps(seed, steps)),
        operations=2 * steps,
    )


def after_steps(value: int, steps: int) -> int:
    """Apply the linear congruence `steps` times, by squaring."""
    factor, increment, total_factor, total_increment = FACTOR, INCREMENT, 1, 0
    while steps:
        if steps & 1:
            total_factor, total_increment = total_factor * factor & MASK, (total_increment * factor + increment) & MASK
        factor, increment = factor * factor & MASK, (factor + 1) * increment & MASK
        steps >>= 1
    return (total_factor * value + total_increment) & MASK


def double_chain(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    steps, start = arguments["steps"], _bits(START)
    return Work(
        lambda: kernel(0, 0, steps, start),
        lambda: _exact("double_chain", kernel(0, 0, steps, start), _bits(logistic(START, steps))),
        operations=3 * steps,
    )


def logistic(x: float, steps: int) -> float:
    """Apply the logistic map in its chaotic range: one wrong bit anywhere gives another answer."""
    for _ in range(steps):
        x = (x * 3.9) * (1.0 - x)
    return x


def _bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def multiply_add(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    steps, lanes = arguments["steps"], arguments["lanes"]
    accumulators = np.arange(ACCUMULATORS * lanes, dtype=np.float64)
    factors = np.arange(1, 2 * lanes + 1, dtype=np.float64)
    places = accumulators.ctypes.data, factors.ctypes.data

    def check() -> Mapping[str, Any]:
        wanted = accumulators + steps * np.tile(factors[:lanes] * factors[lanes:], ACCUMULATORS)
        kernel(*places, steps, 0)
        return _exact("multiply_add", accumulators.tolist(), wanted.tolist())

    operations = 2 * ACCUMULATORS * lanes * steps
    return Work(lambda: kernel(*places, steps, 0), check, operations, memory=(accumulators, factors))


def read(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    size, passes = arguments["bytes"], arguments["passes"]
    buffer = Buffer(size)
    buffer.fill_with_numbers()

    def check() -> Mapping[str, Any]:
        wanted = int(buffer.words.sum(dtype=np.uint64)) * passes & MASK
        return _exact("read", kernel(buffer.address, size, passes, 0), wanted)

    return Work(lambda: kernel(buffer.address, size, passes, 0), check, moved_bytes=size * passes, memory=(buffer,))


def fill(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    size, value = arguments["bytes"], FACTOR
    buffer = Buffer(size)

    def check() -> Mapping[str, Any]:
        kernel(buffer.address, 0, size, value)
        return _exact("fill", (int(buffer.words.min()), int(buffer.words.max())), (value, value))

    return Work(lambda: kernel(buffer.address, 0, size, value), check, moved_bytes=size, memory=(buffer,))


def copy(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    size = arguments["bytes"]
    target, source = Buffer(size), Buffer(size)
    source.fill_with_numbers()

    def check() -> Mapping[str, Any]:
        kernel(target.address, source.address, size, 0)
        return _exact("copy", int(np.count_nonzero(target.words != source.words)), 0)

    places = target.address, source.address
    return Work(lambda: kernel(*places, size, 0), check, moved_bytes=2 * size, memory=(target, source))


def chase(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    steps = arguments["steps"]
    buffer = Buffer(arguments["bytes"])
    order = linked(buffer, seed)
    at = buffer.address + int(order[0]) * 64
    after = buffer.address + int(order[steps % order.size]) * 64

    def call() -> None:
        # Each call goes on where the last one ended: beginning anew would find the first lines in a cache.
        nonlocal at
        at = kernel(at, 0, steps, 0)

    def check() -> Mapping[str, Any]:
        return _exact("chase", kernel(at, 0, steps, 0), after)

    return Work(call, check, operations=steps, memory=(buffer,))


def system_call(kernel: Function, arguments: Mapping[str, int], seed: int) -> Work:
    steps = arguments["steps"]
    return Work(
        lambda: kernel(0, 0, steps, 0),
        lambda: _exact("system_call", kernel(0, 0, steps, 0), os.getppid()),
        operations=steps,
    )


MAKERS: Mapping[str, Callable[[Function, Mapping[str, int], int], Work]] = {
    "integer_chain": integer_chain,
    "double_chain": double_chain,
    "multiply_add": multiply_add,
    "l1_read": read,
    "memory_read": read,
    "memory_fill": fill,
    "memory_copy": copy,
    "memory_chase": chase,
    "system_call": system_call,
}
KERNELS: Mapping[tuple[str, str], str] = {
    ("multiply_add", "sse2"): "multiply_add_sse2",
    ("multiply_add", "avx2"): "multiply_add_avx2",
    ("multiply_add", "neon"): "multiply_add_neon",
    ("l1_read", BASE): "read",
    ("memory_read", BASE): "read",
    ("memory_fill", BASE): "fill",
    ("memory_copy", BASE): "copy",
    ("memory_chase", BASE): "chase",
}
"""The kernel of a workload and instruction set, where it has another name than the workload."""
LANES: Mapping[str, int] = {"sse2": 2, "avx2": 4, "neon": 2}
"""Doubles in a vector."""
STEPS: Mapping[str, int] = {
    "integer_chain": 1 << 20,
    "double_chain": 1 << 18,
    "multiply_add": 1 << 20,
    "l1_read": 1 << 13,
    "memory_chase": 1 << 16,
    "system_call": 1 << 13,
}
"""Steps, or passes, of one call: about a millisecond, and several for the walk."""


def arguments(workload: str, instructions: str, *, shorter: int, buffer_mib: int) -> dict[str, int]:
    """Return the size of one call: what the record names as the workload's arguments."""
    count = max(64, STEPS.get(workload, 1) // shorter)
    buffer = buffer_mib << 20
    if workload == "multiply_add":
        return {"steps": count, "lanes": LANES[instructions]}
    if workload in {"l1_read", "memory_read"}:
        return {"bytes": L1_BYTES, "passes": count} if workload == "l1_read" else {"bytes": buffer, "passes": 1}
    if workload == "memory_chase":
        return {"bytes": buffer, "steps": count}
    return {"bytes": buffer} if workload.startswith("memory_") else {"steps": count}


if TYPE_CHECKING:
    Words = npt.NDArray[np.uint64]

LINE = 64
"""Bytes between two nodes of a chase: a cache line."""
ODD = 0x9E3779B97F4A7C15
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Buffer:
    """Pages of this process alone, huge ones where the system gives them, as 64-bit words."""

    def __init__(self, size_bytes: int) -> None:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
        if size_bytes > available // 2:
            raise DashboardError(
                f"a buffer of {size_bytes >> 20} MiB: {available >> 20} MiB of memory are free. Lower $.buffer_mib."
            )
        self._pages = mmap.mmap(-1, size_bytes, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            with contextlib.suppress(OSError):  # a kernel without huge pages: small ones measure the same every night
                self._pages.madvise(mmap.MADV_HUGEPAGE)
        self.words: Words = np.frombuffer(self._pages, dtype=np.uint64)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))

    def fill_with_numbers(self) -> None:
        """Fill with words that differ everywhere, the same ones every night."""
        np.multiply(np.arange(self.words.size, dtype=np.uint64), np.uint64(ODD), out=self.words)


def linked(buffer: Buffer, seed: int) -> npt.NDArray[np.int64]:
    """Make every cache line of the buffer hold the address of another one, all in one random cycle.

    Returns the lines in the order in which a walk that begins at the first of them meets them.
    """
    step = LINE // 8
    order = np.random.default_rng(seed).permutation(buffer.words.size // step)
    addresses = np.uint64(buffer.address) + order.astype(np.uint64) * np.uint64(LINE)
    buffer.words[order * step] = np.roll(addresses, -1)
    return np.asarray(order)


def last_level_cache_bytes() -> int | None:
    """Return the largest cache of the first core as the system tells it, None where it does not."""
    sizes = []
    for file in _CACHES.glob("index*/size"):
        text = file.read_text().strip()
        if text[:-1].isdigit() and text[-1] in _UNITS:
            sizes.append(int(text[:-1]) * _UNITS[text[-1]])
    return max(sizes, default=None)


@contextlib.contextmanager
def on_one_core() -> Iterator[int]:
    """Keep this process on the last core that it may use (interrupts prefer the first), until the block ends."""
    before = os.sched_getaffinity(0)
    core = max(before)
    os.sched_setaffinity(0, {core})
    try:
        yield core
    finally:
        os.sched_setaffinity(0, before)
