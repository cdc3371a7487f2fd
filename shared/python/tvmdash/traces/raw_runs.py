"""The operators of profiled runs, placed in time.

A run's begin is in the database since format 2, where the experiment gave it. Where it did not, the trial's runs are
laid end to end so that the last ends with the trial: profiling is the last thing that a trial does.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmdash.traces.sqlite_input import int_columns

if TYPE_CHECKING:
    from tvmdash.traces.batches import Ints


@dataclass(frozen=True)
class _Run:
    """One repetition of one trial; starts count from its begin."""

    trial: int
    repetition: int
    begun_ns: int | None
    names: Ints
    starts_ns: Ints
    durations_ns: Ints

    @property
    def length_ns(self) -> int:
        return int((self.starts_ns + self.durations_ns).max(initial=0))


def operators(
    database: sqlite3.Connection, tables: Mapping[str, Sequence[str]], trials: Sequence[Mapping[str, Any]]
) -> dict[str, Ints]:
    """The columns id, trial, repetition, name (its number), start and duration of every operator, in order.

    ValueError where a packed column is not one.
    """
    import numpy

    runs = _packed_runs(database) if "runs" in tables else _row_runs(database) if "operators" in tables else []
    begins = _begins(runs, {row["id"]: row["ended_ns"] for row in trials})
    lengths = [len(run.names) for run in runs]
    nothing = numpy.empty(0, numpy.int64)

    def spread(numbers: Sequence[int]) -> Ints:
        return numpy.repeat(numpy.array(numbers, dtype=numpy.int64), lengths)

    def joined(parts: Sequence[Ints]) -> Ints:
        return numpy.concatenate(parts) if parts else nothing

    return {
        "id": numpy.arange(1, sum(lengths) + 1, dtype=numpy.int64),
        "trial": spread([run.trial for run in runs]),
        "repetition": spread([run.repetition for run in runs]),
        "name": joined([run.names for run in runs]),
        "start": joined([run.starts_ns for run in runs]) + spread(begins),
        "duration": joined([run.durations_ns for run in runs]),
    }


def _begins(runs: Sequence[_Run], ended_ns: Mapping[int, int | None]) -> list[int]:
    """When each run began."""
    rest: dict[int, int] = {}
    for run in runs:
        rest[run.trial] = rest.get(run.trial, 0) + run.length_ns
    begins = []
    for run in runs:
        begins.append((ended_ns.get(run.trial) or 0) - rest[run.trial] if run.begun_ns is None else run.begun_ns)
        rest[run.trial] -= run.length_ns
    return begins


def _packed_runs(database: sqlite3.Connection) -> list[_Run]:
    query = "SELECT trial, repetition, begun_ns, names, starts_ns, durations_ns FROM runs ORDER BY rowid"
    return [_packed_run(*row) for row in database.execute(query)]


def _packed_run(trial: int, repetition: int, begun: int | None, *packed: bytes) -> _Run:
    import numpy

    if not all(isinstance(column, bytes) for column in packed):
        raise ValueError(f"a packed column of run {repetition} of trial {trial} is not a blob")
    names = numpy.frombuffer(packed[0], dtype="<i4").astype(numpy.int64)
    starts, durations = (numpy.frombuffer(column, dtype="<i8").astype(numpy.int64) for column in packed[1:])
    if not len(names) == len(starts) == len(durations):
        raise ValueError(f"the packed columns of run {repetition} of trial {trial} differ in length")
    return _Run(int(trial), int(repetition), None if begun is None else int(begun), names, starts, durations)


def _row_runs(database: sqlite3.Connection) -> list[_Run]:
    """Format 1: a row for each operator."""
    import numpy

    columns = ("trial", "repetition", "name", "start_ns", "duration_ns")
    trial, repetition, *rest = int_columns(database, columns, "operators ORDER BY rowid")
    edges = numpy.flatnonzero((numpy.diff(trial) != 0) | (numpy.diff(repetition) != 0)) + 1
    bounds = [0, *edges.tolist(), len(trial)] if len(trial) else [0]
    return [
        _Run(int(trial[first]), int(repetition[first]), None, *(column[first:last] for column in rest))
        for first, last in itertools.pairwise(bounds)
    ]
