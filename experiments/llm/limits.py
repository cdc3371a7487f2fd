"""What this machine can do at most, asked beside a measurement; and how much memory the process had."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

TRIES = 5
"""Of a limit the best counts: a busy machine lowers it little."""
SIDE = 512
"""Rows of the square float32 product of numpy's BLAS that stands for the peak arithmetic."""


def find_copy_rate(size_bytes: int) -> float:
    """Bytes read and written in a second by a copy of as many bytes as the weights have."""
    source = np.ones(size_bytes, np.uint8)
    target = np.empty_like(source)
    return 2 * size_bytes / _best_s(lambda: np.copyto(target, source))


def find_flop_rate() -> float:
    """Floating-point operations in a second."""
    side = np.ones((SIDE, SIDE), np.float32)
    out = np.empty_like(side)
    return 2 * SIDE**3 / _best_s(lambda: np.matmul(side, side, out=out))


def _best_s(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TRIES):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def reset_peak_memory() -> None:
    """Let the kernel count the peak from here on, where it can."""
    Path("/proc/self/clear_refs").write_text("5")


def read_peak_memory() -> int:
    """The most bytes that this process had resident since."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
