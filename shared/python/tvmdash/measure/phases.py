"""Named spans of this process, told where they happen and kept by whoever records: `capture` does during a trial."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import NamedTuple

TIMING, COMPILE = "time", "compile"
"""The phase that samples are taken in, and the one that passes run in."""


class Phase(NamedTuple):
    """What went on from `start_ns` of time.time_ns() for `duration_ns`."""

    name: str
    start_ns: int
    duration_ns: int


_recorded: ContextVar[list[Phase] | None] = ContextVar("recorded", default=None)


class PhaseSpan:
    """Of use once, as a context; a phase from its begin to its end."""

    __slots__ = ("_begun", "_name", "_start_ns")

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._start_ns, self._begun = time.time_ns(), time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        duration_ns = time.perf_counter_ns() - self._begun
        recorded = _recorded.get()
        if recorded is not None:
            recorded.append(Phase(self._name, self._start_ns, duration_ns))


def phase(name: str) -> PhaseSpan:
    """The time until the end of the block, or until what it raises, is a phase; phases may lie in one another.

    It costs two microseconds: put it around steps, never between two clock reads.
    """
    return PhaseSpan(name)


def record() -> None:
    """From now on keep the phases that end, and none of those before."""
    _recorded.set([])


def list_so_far() -> list[Phase]:
    """The phases that ended since `record`, in the order of their ends; they stay kept."""
    return list(_recorded.get() or [])


def take() -> list[Phase]:
    """The phases that ended since `record`, in the order of their ends; no more are kept."""
    phases = _recorded.get() or []
    _recorded.set(None)
    return phases
