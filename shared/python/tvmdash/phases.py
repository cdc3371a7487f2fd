"""Named spans of this process, told where they happen and kept by whoever records: `capture` does during a trial."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass

TIMING, COMPILE = "time", "compile"
"""The phase that samples are taken in, and the one that passes run in."""


@dataclass(frozen=True)
class Phase:
    """What went on from `start_ns` of time.time_ns() for `duration_ns`."""

    name: str
    start_ns: int
    duration_ns: int


_recorded: ContextVar[list[Phase] | None] = ContextVar("recorded", default=None)


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """The time until the end of the block, or until what it raises, is a phase; phases may lie in one another.

    It costs some microseconds: put it around steps, never between two clock reads.
    """
    start_ns, begun = time.time_ns(), time.perf_counter_ns()
    try:
        yield
    finally:
        recorded = _recorded.get()
        if recorded is not None:
            recorded.append(Phase(name, start_ns, time.perf_counter_ns() - begun))


def record() -> None:
    """From now on keep the phases that end, and none of those before."""
    _recorded.set([])


def so_far() -> list[Phase]:
    """The phases that ended since `record`, in the order of their ends; they stay kept."""
    return list(_recorded.get() or [])


def taken() -> list[Phase]:
    """The phases that ended since `record`, in the order of their ends; no more are kept."""
    found = _recorded.get() or []
    _recorded.set(None)
    return found
