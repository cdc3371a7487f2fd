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
_TRIALS = """SELECT guid, id, night, experiment, workload, point, error, ms_mean, "start", coalesce(duration, 0)
    FROM trials WHERE "start" IS NOT NULL ORDER BY "start" """
_RUNS = "SELECT DISTINCT guid, trial, repetition FROM kernels WHERE trial IS NOT NULL ORDER BY 1, 2, 3"
_KERNELS = """SELECT guid, name, category, "start", coalesce(duration, 0), trial, repetition,
    CASE WHEN queue IS NULL AND stream IS NULL THEN 'operators'
        ELSE coalesce(queue, '') || ' ' || coalesce(stream, '') END
    FROM kernels WHERE "start" IS NOT NULL ORDER BY "start" """
_SPANS = (
    """SELECT guid, name, 'pass', "timestamp" + coalesce(sum(duration) OVER (PARTITION BY guid, trial
        ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS begun, coalesce(duration, 0),
        'passes, laid end to end' FROM passes WHERE "timestamp" IS NOT NULL ORDER BY begun""",
    """SELECT guid, name, coalesce(category, 'region'), "start", coalesce(duration, 0), 'regions of ' || tid
        FROM regions WHERE "start" IS NOT NULL ORDER BY "start" """,
    """SELECT guid, name, 'memory copy', "start", coalesce(duration, 0), 'memory copies' FROM memory_copies
        WHERE "start" IS NOT NULL ORDER BY "start" """,
)
_TELEMETRY = 'SELECT guid, name, unit, "timestamp", value FROM telemetry WHERE value IS NOT NULL ORDER BY "timestamp"'


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
    runs: dict[tuple[str, int, int | None], int] = field(default_factory=dict)
    _last: int = 0

    def add(self, place: tuple[str, str, str, str], span: tuple[int, int], parent: int, details: dict[str, Any]) -> int:
        """The id of a new slice below `parent`, which is 0 where it has none."""
        known = {name: value for name, value in details.items() if value is not None}
        number = self.number(parent)
        self.slices.append(Slice(*place, *span, number, known))
        return number

    def number(self, parent: int) -> int:
        """A new id, with a flow from `parent`."""
        self._last += 1
        if parent:
            self.flows.append(Flow(parent, self._last))
        return self._last


def trace_events(traces: Connection) -> TraceEvents:
    """The events of a connection, which stays open while they are read."""
    processes = _processes(traces)
    titles = {guid: title for guid, (title, _) in processes.items()}
    frame = _frame(traces, titles)
    return TraceEvents(_events(traces, titles, frame), frame.flows, dict(processes.values()))


def _processes(traces: Connection) -> dict[str, tuple[str, RocpdProcess]]:
    """For each guid a name that no other has, and what is known."""
    found: dict[str, tuple[str, RocpdProcess]] = {}
    taken = {_NIGHTS, "host"}
    query = (
        'SELECT guid, pid, ppid, hostname, command, experiment, "start", "end" FROM processes ORDER BY "start", guid'
    )
    for guid, pid, ppid, host, command, experiment, start, end in traces.execute(query).fetchall():
        title = f"{experiment or (command or 'process')[:60]} [{pid}]" + (f" on {host}" if host else "")
        title = title if title not in taken else f"{title} {guid}"
        taken.add(title)
        found[guid] = title, RocpdProcess(pid or 0, ppid or 0, host or "", command or "", start or 0, end or 0)
    return found


def _frame(traces: Connection, titles: Mapping[str, str]) -> _Frame:
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
        place = (_NIGHTS, "stages", f"{job} {stage}", "stage")
        stages[night, job, stage] = frame.add(place, (start, duration), nights.get(night, 0), details)
    trials: dict[tuple[str, int], int] = {}
    for guid, trial, night, experiment, workload, point, error, mean, start, duration in traces.execute(
        _TRIALS
    ).fetchall():
        parent = stages.get((night, experiment, _RUN)) or nights.get(night, 0)
        place = (titles.get(guid, guid), "trials", f"{workload or 'trial'} {point or ''}".strip(), "trial")
        details = {"trial": trial, "error": error, "ms_mean": mean}
        trials[guid, trial] = frame.add(place, (start, duration), parent, details)
    for guid, trial, repetition in traces.execute(_RUNS).fetchall():
        frame.runs[guid, trial, repetition] = frame.number(trials.get((guid, trial), 0))
    return frame


def _events(traces: Connection, titles: Mapping[str, str], frame: _Frame) -> Iterator[Event]:
    yield from sorted(frame.slices, key=lambda one: one.start_ns)
    for query in _SPANS:
        for guids, texts, kinds, starts, durations, lanes in _columns(traces, query):
            yield _slices(titles, guids, (lanes, texts, kinds), starts, durations)
    waiting = dict(frame.runs)
    for guids, texts, kinds, starts, durations, trials, repetitions, lanes in _columns(traces, _KERNELS):
        runs = zip(guids, trials, repetitions, strict=True)
        ids = [waiting.pop(run, 0) for run in runs] if waiting else [0] * len(guids)
        yield _slices(titles, guids, (lanes, texts, kinds), starts, durations, ids)
    for columns in _columns(traces, _TELEMETRY):
        yield _counters(titles, *columns)


def _columns(traces: Connection, query: str) -> Iterator[list[tuple[Any, ...]]]:
    """The columns of a query's rows, a batch at a time."""
    cursor = traces.execute(query)
    while rows := cursor.fetchmany(BATCH):
        yield list(zip(*rows, strict=True))


def _texts(values: Sequence[str | None]) -> Names:
    return names(["" if one is None else one for one in values])


def _titles(titles: Mapping[str, str], guids: Sequence[str | None]) -> Names:
    """The processes' names; what is of no process is of the host."""
    return names(["host" if guid is None else titles.get(guid, guid) for guid in guids])


def _slices(
    titles: Mapping[str, str],
    guids: Sequence[str | None],
    texts: tuple[Sequence[str | None], ...],
    starts: Sequence[int],
    durations: Sequence[int],
    ids: Sequence[int] = (),
) -> Slices:
    import numpy

    lanes, called, kinds = (_texts(column) for column in texts)
    return Slices(
        _titles(titles, guids),
        lanes,
        called,
        kinds,
        numpy.array(starts, dtype=numpy.int64),
        numpy.array(durations, dtype=numpy.int64),
        numpy.array(ids, dtype=numpy.int64) if ids else None,
    )


def _counters(
    titles: Mapping[str, str],
    guids: Sequence[str | None],
    called: Sequence[str | None],
    units: Sequence[str | None],
    moments: Sequence[int],
    values: Sequence[float],
) -> Counters:
    import numpy

    return Counters(
        _titles(titles, guids),
        _texts(called),
        _texts(units),
        numpy.array(moments, dtype=numpy.int64),
        numpy.array(values, dtype=numpy.float64),
    )
