"""What a connection shows, as events for the writers of `tvmdash.convert`: slices, counters, and flows between them.

A night's flow goes to its stages, from the stage that ran to its trials, from a trial to the first operator of each of
its runs. Passes are known by their durations alone: they are laid end to end from where compilation began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tvmdash.convert import Counters, Event, Flow, Names, RocpdProcess, Slice, Slices, names
from tvmdash.convert.events import BATCH

if TYPE_CHECKING:
    from tvmdash.traces.connection import Connection

_NIGHTS = "nights"
_RUN = "run"
_TRIALS = """SELECT guid, process, id, night, experiment, workload, point, error, ms_mean, "start",
    coalesce(duration, 0) FROM trials WHERE "start" IS NOT NULL ORDER BY "start" """
_RUNS = """SELECT DISTINCT guid, process, trial, repetition FROM kernels WHERE trial IS NOT NULL
    ORDER BY 1, 2, 3, 4"""
_KERNELS = """SELECT guid, process, name, category, "start", coalesce(duration, 0), trial, repetition,
    CASE WHEN queue IS NULL AND stream IS NULL THEN 'operators'
        ELSE coalesce(queue, '') || ' ' || coalesce(stream, '') END
    FROM kernels WHERE "start" IS NOT NULL ORDER BY "start" """
_SPANS = (
    """SELECT guid, process, name, 'pass', "timestamp" + coalesce(sum(duration) OVER (
        PARTITION BY guid, process, trial ORDER BY position
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS begun, coalesce(duration, 0),
        'passes, laid end to end' FROM passes WHERE "timestamp" IS NOT NULL ORDER BY begun""",
    """SELECT guid, process, name, coalesce(category, 'region'), "start", coalesce(duration, 0), 'regions of ' || tid
        FROM regions WHERE "start" IS NOT NULL ORDER BY "start" """,
    """SELECT guid, process, name, 'memory copy', "start", coalesce(duration, 0), 'memory copies' FROM memory_copies
        WHERE "start" IS NOT NULL ORDER BY "start" """,
)
_TELEMETRY = """SELECT guid, process, name, unit, "timestamp", value FROM telemetry
    WHERE value IS NOT NULL ORDER BY "timestamp" """

Key = tuple[str | None, int | None]
"""What names a process: its guid, and its number among those of that guid; of what is the host's, None."""


@dataclass(frozen=True)
class TraceEvents:
    """All events of a connection. `events` are read as they are asked for; `processes` are by the names in them."""

    events: Iterator[Event]
    flows: Sequence[Flow]
    processes: Mapping[str, RocpdProcess]


@dataclass
class _Frame:
    """The few things that flows begin at, and the ids that they have."""

    slices: list[Slice] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    runs: dict[tuple[Key, int, int | None], int] = field(default_factory=dict)
    _last: int = 0

    def add(self, names: tuple[str, str, str, str], span: tuple[int, int], parent: int, details: dict[str, Any]) -> int:
        """The id of a new slice below `parent`, which is 0 where it has none."""
        known = {name: value for name, value in details.items() if value is not None}
        number = self.number(parent)
        self.slices.append(Slice(*names, *span, number, known))
        return number

    def number(self, parent: int) -> int:
        """A new id, with a flow from `parent`."""
        self._last += 1
        if parent:
            self.flows.append(Flow(parent, self._last))
        return self._last


def trace_events(traces: Connection) -> TraceEvents:
    """The events of a connection, which stays open while they are read."""
    processes = _read_processes(traces)
    titles = {key: title for key, (title, _) in processes.items()}
    frame = _make_frame(traces, titles)
    return TraceEvents(_read_events(traces, titles, frame), frame.flows, dict(processes.values()))


def _read_processes(traces: Connection) -> dict[Key, tuple[str, RocpdProcess]]:
    """For each process a name that no other has, and what is known."""
    processes: dict[Key, tuple[str, RocpdProcess]] = {}
    taken = {_NIGHTS, "host"}
    query = """SELECT guid, process, pid, ppid, hostname, command, experiment, "start", "end" FROM processes
        ORDER BY "start", guid, process"""
    for guid, process, pid, ppid, host, command, experiment, start, end in traces.execute(query).fetchall():
        title = f"{experiment or (command or 'process')[:60]} [{pid}]" + (f" on {host}" if host else "")
        title = title if title not in taken else f"{title} {guid}/{process}"
        taken.add(title)
        processes[guid, process] = (
            title,
            RocpdProcess(pid or 0, ppid or 0, host or "", command or "", start or 0, end or 0),
        )
    return processes


def _make_frame(traces: Connection, titles: Mapping[Key, str]) -> _Frame:
    """Nights, stages, trials, and ids for the runs of trials."""
    frame = _Frame()
    nights: dict[str, int] = {}
    query = 'SELECT night, state, "start", coalesce(duration, 0) FROM nights WHERE "start" IS NOT NULL ORDER BY "start"'
    for night, state, start, duration in traces.execute(query).fetchall():
        nights[night] = frame.add((_NIGHTS, "nights", night, "night"), (start, duration), 0, {"state": state})
    stages: dict[tuple[str, str, str], int] = {}
    query = """SELECT night, job, stage, state, message, "start", coalesce(duration, 0) FROM stages
        WHERE "start" IS NOT NULL ORDER BY "start" """
    for night, job, stage, state, message, start, duration in traces.execute(query).fetchall():
        details = {"state": state, "message": message}
        names = (_NIGHTS, "stages", f"{job} {stage}", "stage")
        stages[night, job, stage] = frame.add(names, (start, duration), nights.get(night, 0), details)
    trials: dict[tuple[Key, int], int] = {}
    for guid, process, trial, night, experiment, workload, point, error, mean, start, duration in traces.execute(
        _TRIALS
    ).fetchall():
        key = (guid, process)
        parent = stages.get((night, experiment, _RUN)) or nights.get(night, 0)
        names = (_find_title(titles, key), "trials", f"{workload or 'trial'} {point or ''}".strip(), "trial")
        details = {"trial": trial, "error": error, "ms_mean": mean}
        trials[key, trial] = frame.add(names, (start, duration), parent, details)
    for guid, process, trial, repetition in traces.execute(_RUNS).fetchall():
        key = (guid, process)
        frame.runs[key, trial, repetition] = frame.number(trials.get((key, trial), 0))
    return frame


def _read_events(traces: Connection, titles: Mapping[Key, str], frame: _Frame) -> Iterator[Event]:
    yield from sorted(frame.slices, key=lambda event: event.start_ns)
    for query in _SPANS:
        for keys, texts, kinds, starts, durations, lanes in _read_columns(traces, query):
            yield _make_slices(titles, keys, (lanes, texts, kinds), starts, durations)
    waiting = dict(frame.runs)
    for keys, texts, kinds, starts, durations, trials, repetitions, lanes in _read_columns(traces, _KERNELS):
        runs = zip(keys, trials, repetitions, strict=True)
        ids = [waiting.pop(run, 0) for run in runs] if waiting else [0] * len(keys)
        yield _make_slices(titles, keys, (lanes, texts, kinds), starts, durations, ids)
    for columns in _read_columns(traces, _TELEMETRY):
        yield _make_counters(titles, *columns)


def _read_columns(traces: Connection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    """The columns of a query's rows, a batch at a time: the keys of processes, then the rest."""
    cursor = traces.execute(query)
    while rows := cursor.fetchmany(BATCH):
        guids, processes, *rest = zip(*rows, strict=True)
        yield [tuple(zip(guids, processes, strict=True)), *rest]


def _pack_texts(values: Sequence[str | None]) -> Names:
    return names(["" if value is None else value for value in values])


def _find_title(titles: Mapping[Key, str], key: Key) -> str:
    """The process's name; what is of no process is of the host."""
    guid, process = key
    return "host" if guid is None else titles.get(key) or f"{guid}/{process}"


def _find_titles(titles: Mapping[Key, str], keys: Sequence[Key]) -> Names:
    named = {key: _find_title(titles, key) for key in set(keys)}
    return names([named[key] for key in keys])


def _make_slices(
    titles: Mapping[Key, str],
    keys: Sequence[Key],
    texts: tuple[Sequence[str | None], ...],
    starts: Sequence[int],
    durations: Sequence[int],
    ids: Sequence[int] = (),
) -> Slices:
    import numpy

    lanes, called, kinds = (_pack_texts(column) for column in texts)
    return Slices(
        _find_titles(titles, keys),
        lanes,
        called,
        kinds,
        numpy.array(starts, dtype=numpy.int64),
        numpy.array(durations, dtype=numpy.int64),
        numpy.array(ids, dtype=numpy.int64) if ids else None,
    )


def _make_counters(
    titles: Mapping[Key, str],
    keys: Sequence[Key],
    called: Sequence[str | None],
    units: Sequence[str | None],
    moments: Sequence[int],
    values: Sequence[float],
) -> Counters:
    import numpy

    return Counters(
        _find_titles(titles, keys),
        _pack_texts(called),
        _pack_texts(units),
        numpy.array(moments, dtype=numpy.int64),
        numpy.array(values, dtype=numpy.float64),
    )
