"""The formats that are written event by event, as rows for the table of converters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tvmdash import convert
from tvmdash.convert import Written
from tvmdash.traces.connection import connect
from tvmdash.traces.export.events import TraceEvents, trace_events
from tvmdash.traces.filters import Filters
from tvmdash.traces.reading import Progress

EventWriter = Callable[[Path, TraceEvents], Written]


def _perfetto(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_perfetto(destination, trace.events, flows=trace.flows)


def _by_process(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_perfetto(destination, trace.events, flows=trace.flows, split=convert.Split.PROCESS)


def _chrome(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_chrome(destination, trace.events, flows=trace.flows)


def _rocpd(destination: Path, trace: TraceEvents) -> Written:
    return convert.write_rocpd(destination, trace.events, processes=trace.processes)


EVENT_WRITERS: Mapping[str, tuple[str, EventWriter]] = {
    "perfetto": ("a trace for ui.perfetto.dev; further files where one would be too large", _perfetto),
    "perfetto-by-process": ("such a trace for each process", _by_process),
    "chrome": ("Chrome's trace events in JSON", _chrome),
    "rocpd": ("a RocPD database, which AMD's tools open", _rocpd),
    "csv": (
        "a row for each slice and counter value",
        lambda destination, trace: convert.write_csv(destination, trace.events),
    ),
    "jsonl": (
        "such rows as JSON lines",
        lambda destination, trace: convert.write_json_lines(destination, trace.events),
    ),
    "parquet-events": (
        "such rows as one Parquet file",
        lambda destination, trace: convert.write_parquet(destination, trace.events),
    ),
}
"""For each format what it is, in words, and its writer."""


def event_converter(style: str) -> Callable[[list[str], Path, Filters, Progress | None], str]:
    """A converter of traces in some paths, as filtered, to a place that is not there yet."""

    def write(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
        with connect(paths, filters=filters, progress=progress) as traces:
            return EVENT_WRITERS[style][1](destination, trace_events(traces)).describe()

    return write
