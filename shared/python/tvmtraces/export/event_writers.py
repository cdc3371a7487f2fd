"""The formats that are written event by event, as rows for the table of converters."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tvmtraces import convert
from tvmtraces.connection import Traces, open_traces
from tvmtraces.convert import Written
from tvmtraces.export.events import TraceEvents, trace_events
from tvmtraces.export.left_out import count_left_out
from tvmtraces.export.rocpd_copy import copy_rows, count_copied, find_writers, format_others
from tvmtraces.filters import Filters
from tvmtraces.output import format_left_out
from tvmtraces.readers.packed import count_bytes
from tvmtraces.reading import Progress
from tvmtraces.sealing import seal
from tvmtraces.sources import find

EventWriter = Callable[[Path, Traces], str]
"""Writes what a connection shows; says in words what, and what it left out."""
_LARGE_BYTES = 8 << 20
"""Inputs of so many bytes that are not sealed are sealed first: a sealed run is read a part at a time."""


def _perfetto(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_perfetto(destination, trace.events, flows=trace.flows)


def _by_process(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_perfetto(destination, trace.events, flows=trace.flows, split=convert.Split.PROCESS)


def _show(write: Callable[[Path, TraceEvents], Written]) -> EventWriter:
    def work(destination: Path, traces: Traces) -> str:
        trace = trace_events(traces)
        written = write(destination, trace)
        return written.describe() + format_left_out(count_left_out(traces, trace.counted))

    return work


def _rocpd(destination: Path, traces: Traces) -> str:
    """Rows of RocPD stay what they were; the rest is written as events."""
    writers = find_writers(traces)
    trace = trace_events(traces, format_others(writers))
    others = copy_rows(traces, writers)
    written = convert.write_rocpd(destination, trace.events, processes=trace.processes, others=others)
    copied = sum(count_copied(traces, writers).values())
    records = traces.execute("SELECT count(*) FROM records").fetchall()[0][0]
    also = f", and {copied} rows of RocPD as they were" if copied else ""
    return written.describe() + also + format_left_out({"flows": len(trace.flows), "records": records})


EVENT_WRITERS: Mapping[str, tuple[str, EventWriter]] = {
    "perfetto": ("a trace for ui.perfetto.dev; further files where one would be too large", _show(_perfetto)),
    "perfetto-by-process": ("such a trace for each process", _show(_by_process)),
    "rocpd": ("a RocPD database, which AMD's tools open", _rocpd),
}
"""For each format what it is, in words, and its writer."""


def event_converter(style: str) -> Callable[[list[str], Path, Filters, Progress | None], str]:
    """A converter of traces in some paths, as filtered, to a place that is not there yet."""

    def write(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
        with _open(paths, destination, filters, progress) as traces:
            return EVENT_WRITERS[style][1](destination, traces)

    return write


@contextmanager
def _open(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> Iterator[Traces]:
    """The traces; large ones by way of a sealed run beside the destination."""
    sources = [source for source in find(paths) if source.kind != "sealed"]
    parent = destination.absolute().parent
    if sum(count_bytes(source.path) for source in sources) < _LARGE_BYTES or not parent.is_dir():
        with open_traces(paths, filters=filters, progress=progress) as traces:
            yield traces
        return
    with tempfile.TemporaryDirectory(prefix=".convert.", dir=parent) as folder:
        run = seal(paths, Path(folder) / "sealed", filters=filters, progress=progress)
        with open_traces(run.path) as traces:
            yield traces
