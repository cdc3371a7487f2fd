"""Named spans of this process, kept by a recorder such as `capture` during a trial."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import NamedTuple

TIMING, COMPILE = "time", "compile"
"""The phase of the samples, and that of the compiler passes."""


class Phase(NamedTuple):
    """A span from `start_ns` of time.time_ns() that lasted `duration_ns`."""

    name: str
    start_ns: int
    duration_ns: int


_recorded: ContextVar[list[Phase] | None] = ContextVar("recorded", default=None)


class PhaseSpan:
    """A context manager, usable once: a phase from its begin to its end."""

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
    """Record the block as a phase, also where it raises; phases may be nested.

    It costs two microseconds: put it around steps, never between two clock reads.
    """
    return PhaseSpan(name)


def record() -> None:
    """Start to keep the phases that end, and drop earlier ones."""
    _recorded.set([])


def list_so_far() -> list[Phase]:
    """Return the phases that ended since `record`, in the order of their ends, and keep them."""
    return list(_recorded.get() or [])


def take() -> list[Phase]:
    """Return the phases that ended since `record`, in the order of their ends, and stop keeping them."""
    phases = _recorded.get() or []
    _recorded.set(None)
    return phases
