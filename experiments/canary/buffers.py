"""Memory that the canary reads, writes and walks through, and the caches that it has to be larger than."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tvmdash.errors import DashboardError

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
        """Different words everywhere, the same ones every night."""
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
    """The largest cache of the first core as the system tells it, None where it does not."""
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
