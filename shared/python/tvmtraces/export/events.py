"""The rows of a connection as events for the writers of `tvmtraces.convert`: slices, counters, and flows between them.

A night's flow goes to its stages, from the stage that ran to its trials, from a trial to the first operator of each of
its runs. Passes are known by their durations alone: they are laid end to end from where compilation began.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tvmtraces.convert import Event, Flow, RocpdProcess, Slice
from tvmtraces.export.columns import SLICES, Counted, ExportedRun, Key, Titles, read_counted, read_sensors, read_slices

if TYPE_CHECKING:
    from tvmtraces.connection import Traces

_NIGHTS = "nights"
_RUN = "run"
_TRIALS = """SELECT guid, process, id, night, experiment, workload, point, error, ms_mean, "start",
    coalesce(duration, 0) FROM trials WHERE "start" IS NOT NULL ORDER BY "start" """
_RUNS = """SELECT guid, process, trial, repetition, min("start") FROM kernels WHERE trial IS NOT NULL
    AND "start" IS NOT NULL GROUP BY ALL ORDER BY 1, 2, 3, 4"""


@dataclass(frozen=True)
class TraceEvents:
    """All events of a connection. `events` are read as they are asked for; `processes` are by the names in them.

    `counted` adds up the values of performance counters while the events are read.
    """

    events: Iterator[Event]
    flows: Sequence[Flow]
    processes: Mapping[str, RocpdProcess]
    counted: Counted


@dataclass
class _Frame:
    """The few things that flows begin at, and the ids that they have."""

    slices: list[Slice] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    runs: list[ExportedRun] = field(default_factory=list)
    annotated: bool = True
    _last: int = 0

    def add(self, names: tuple[str, str, str, str], span: tuple[int, int], parent: int, details: dict[str, Any]) -> int:
        """Add a slice below `parent`, 0 for none, and return its id."""
        known = {name: value for name, value in details.items() if value is not None and self.annotated}
        number = self.number(parent)
        self.slices.append(Slice(*names, *span, number, known))
        return number

    def number(self, parent: int) -> int:
        """Return a new id, with a flow from `parent`."""
        self._last += 1
        if parent:
            self.flows.append(Flow(parent, self._last))
        return self._last


def trace_events(traces: Traces, only: str = "") -> TraceEvents:
    """Return the events of a connection, which stays open while they are read.

    `only` is a condition on `guid`, of what has one, as SQL; nothing is all.
    """
    processes = _read_processes(traces)
    titles = Titles({key: title for key, (title, _) in processes.items()})
    frame, counted = _make_frame(traces, titles), Counted()
    events = _read_events(traces, titles, frame, only, counted)
    return TraceEvents(events, frame.flows, dict(processes.values()), counted)


def _read_processes(traces: Traces) -> dict[Key, tuple[str, RocpdProcess]]:
    """Return for each process a unique name, and its facts."""
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


def _make_frame(traces: Traces, titles: Titles) -> _Frame:
    """Make nights, stages, trials, and ids for the runs of trials."""
    frame = _Frame(annotated=traces.filters.annotations)
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
        names = (titles.find(*key), "trials", f"{workload or 'trial'} {point or ''}".strip(), "trial")
        details = {"trial": trial, "error": error, "ms_mean": mean}
        trials[key, trial] = frame.add(names, (start, duration), parent, details)
    for guid, process, trial, repetition, start in traces.execute(_RUNS).fetchall():
        key = (guid, process)
        frame.runs.append(ExportedRun(key, trial, repetition, start, frame.number(trials.get((key, trial), 0))))
    return frame


def _read_events(traces: Traces, titles: Titles, frame: _Frame, only: str, counted: Counted) -> Iterator[Event]:
    yield from sorted(frame.slices, key=lambda event: event.start_ns)
    for kind in SLICES:
        yield from read_slices(traces, kind, titles, frame.runs, only)
    yield from read_sensors(traces, titles)
    yield from read_counted(traces, titles, only or "true", counted)
