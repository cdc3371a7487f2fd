"""The operators of profiled runs, placed in time.

A run's begin is in the database since format 2, where the experiment gave it. Where it did not, the trial's runs are
laid end to end so that the last ends with the trial: profiling is the last thing that a trial does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmtraces.readers.sqlite_input import read_columns
from tvmtraces.tables import INT

if TYPE_CHECKING:
    import numpy

    from tvmtraces.batches import Ints

_NAME_BYTES, _TIME_BYTES = 4, 8
_OPERATORS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class _Runs:
    """All repetitions of all trials, in order; starts count from the begin of the run, of which each has `lengths`."""

    trials: Sequence[int]
    repetitions: Sequence[int]
    begun_ns: Sequence[int | None]
    lengths: Sequence[int]
    names: Ints
    starts_ns: Ints
    durations_ns: Ints


def operators(
    database: sqlite3.Connection, tables: Mapping[str, Sequence[str]], trials: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Ints]]:
    """Yield the columns id, trial, repetition, name (its number), start and duration of every operator, in order.

    Whole trials at a time, about _OPERATORS_AT_ONCE operators. ValueError where a packed column is not one.
    """
    ended_ns = {row["id"]: row["ended_ns"] for row in trials}
    pages: Iterator[_Runs] = iter(())
    if "runs" in tables:
        pages = _read_packed_runs(database)
    elif "operators" in tables:
        pages = iter([_read_row_runs(database)])
    first_id = 1
    for runs in pages:
        yield _place(runs, ended_ns, first_id)
        first_id += len(runs.names)


def _place(runs: _Runs, ended_ns: Mapping[int, int | None], first_id: int) -> dict[str, Ints]:
    import numpy

    begins = _begins(runs, ended_ns)
    lengths = numpy.array(runs.lengths, dtype=numpy.int64)

    def spread(numbers: Sequence[int]) -> Ints:
        return numpy.repeat(numpy.array(numbers, dtype=numpy.int64), lengths)

    return {
        "id": numpy.arange(first_id, first_id + len(runs.names), dtype=numpy.int64),
        "trial": spread(runs.trials),
        "repetition": spread(runs.repetitions),
        "name": runs.names,
        "start": runs.starts_ns + spread(begins),
        "duration": runs.durations_ns,
    }


def _begins(runs: _Runs, ended_ns: Mapping[int, int | None]) -> list[int]:
    if None not in runs.begun_ns:
        return [int(begun or 0) for begun in runs.begun_ns]
    spans = _spans_ns(runs)
    rest: dict[int, int] = {}
    for trial, span in zip(runs.trials, spans, strict=True):
        rest[trial] = rest.get(trial, 0) + span
    begins = []
    for trial, begun, span in zip(runs.trials, runs.begun_ns, spans, strict=True):
        begins.append((ended_ns.get(trial) or 0) - rest[trial] if begun is None else begun)
        rest[trial] -= span
    return begins


def _spans_ns(runs: _Runs) -> list[int]:
    """Return the length of each run, as far as its operators tell."""
    ends, spans, first = runs.starts_ns + runs.durations_ns, [], 0
    for length in runs.lengths:
        spans.append(int(ends[first : first + length].max(initial=0)))
        first += length
    return spans


def _read_packed_runs(database: sqlite3.Connection) -> Iterator[_Runs]:
    query = "SELECT trial, repetition, begun_ns, names, starts_ns, durations_ns FROM runs ORDER BY rowid"
    rows: list[tuple[Any, ...]] = []
    waiting = 0
    for row in database.execute(query):
        if waiting >= _OPERATORS_AT_ONCE * _NAME_BYTES and row[0] != rows[-1][0]:
            yield _runs_of(rows)
            rows, waiting = [], 0
        rows.append(row)
        waiting += len(row[3]) if isinstance(row[3], bytes) else 0
    if rows:
        yield _runs_of(rows)


def _runs_of(rows: Sequence[tuple[Any, ...]]) -> _Runs:
    trials, repetitions, begun, *packed = zip(*rows, strict=True)
    lengths = []
    for trial, repetition, names, starts, durations in zip(trials, repetitions, *packed, strict=True):
        location = f"of run {repetition} of trial {trial}"
        if not (isinstance(names, bytes) and isinstance(starts, bytes) and isinstance(durations, bytes)):
            raise ValueError(f"a packed column {location} is not a blob")
        length = len(names) // _NAME_BYTES
        if len(names) != length * _NAME_BYTES or not len(starts) == len(durations) == length * _TIME_BYTES:
            raise ValueError(f"the packed columns {location} differ in length")
        lengths.append(length)
    return _Runs(
        [int(trial) for trial in trials],
        [int(repetition) for repetition in repetitions],
        [None if moment is None else int(moment) for moment in begun],
        lengths,
        *(_unpack(column, kind) for column, kind in zip(packed, ("<i4", "<i8", "<i8"), strict=True)),
    )


def _unpack(column: Sequence[bytes], kind: str) -> Ints:
    import numpy

    numbers: numpy.ndarray[Any, Any] = numpy.frombuffer(b"".join(column), dtype=kind)
    return numbers.astype(numpy.int64, copy=False)


def _read_row_runs(database: sqlite3.Connection) -> _Runs:
    """Read format 1: a row for each operator."""
    import numpy

    columns = dict.fromkeys(("trial", "repetition", "name", "start_ns", "duration_ns"), INT)
    trial, repetition, name, start, duration = read_columns(database, columns, "operators ORDER BY rowid")
    changes = numpy.flatnonzero((numpy.diff(trial) != 0) | (numpy.diff(repetition) != 0)) + 1
    first = numpy.concatenate([numpy.zeros(min(1, len(trial)), dtype=numpy.int64), changes])
    lengths = numpy.diff(numpy.append(first, len(trial))).tolist()
    return _Runs(
        trial[first].tolist(), repetition[first].tolist(), [None] * len(lengths), lengths, name, start, duration
    )
