"""Output formats of traces: one visible row for each. Writers plug in here.

Rows that a format has no place for are counted, so that nothing is dropped in silence.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tvmtraces import convert
from tvmtraces.connection import Traces, open_traces
from tvmtraces.export.columns import Counted
from tvmtraces.export.events import trace_events
from tvmtraces.export.rocpd_copy import copy_rows, count_copied, find_writers, format_others
from tvmtraces.export.rocprof_csv import write_csv
from tvmtraces.filters import Filters
from tvmtraces.output import format_left_out
from tvmtraces.readers.packed import count_bytes
from tvmtraces.reading import Progress
from tvmtraces.sealing import seal
from tvmtraces.sources import find

_OF_ROCPD = {
    "arguments of calls": "base_argument",
    "code objects": "base_code_object",
    "kernel symbols": "base_symbol",
    "descriptions of counters": "base_pmc",
}
_SHOWN = {"dispatch": "kernels", "copy": "memory_copies", "allocation": "memory_allocations", "region": "regions"}
"""Tables, and the views that leave out those of their rows that refer to what is not there."""


def count_left_out(traces: Traces, counted: Counted) -> dict[str, int]:
    """Count the rows of each kind that are neither slices nor counter values nor flows."""
    left_out = {words: _count(traces, f"SELECT count(*) FROM {table}") for words, table in _OF_ROCPD.items()}  # noqa: S608
    left_out["counter values without a moment"] = _count(traces, "SELECT count(*) FROM base_counter") - counted.rows
    left_out["rows that refer to what is not there"] = sum(
        _count(traces, f"SELECT count(*) FROM base_{table}") - _count(traces, _format_shown(table, view))  # noqa: S608
        for table, view in _SHOWN.items()
    )
    left_out["records"] = _count(traces, "SELECT count(*) FROM records")
    return left_out


def _format_shown(table: str, view: str) -> str:
    of_operators = " - (SELECT count(*) FROM base_operator)" if table == "dispatch" else ""
    return f"SELECT (SELECT count(*) FROM {view}){of_operators}"  # noqa: S608 - our own words


def _count(traces: Traces, query: str) -> int:
    return int(traces.execute(query).fetchall()[0][0])


Write = Callable[[list[str], Path, Filters, Progress | None], str]
"""Writes the traces in the paths, as filtered, to a place that does not exist yet; says in words what it wrote."""
_LARGE_BYTES = 8 << 20
"""Inputs of so many bytes that are not sealed are sealed first: a sealed run is read a part at a time."""


@dataclass(frozen=True)
class Converter:
    """A format: its description and its writer."""

    about: str
    write: Write


def _perfetto(destination: Path, traces: Traces) -> str:
    trace = trace_events(traces)
    written = convert.write_perfetto(destination, trace.events, flows=trace.flows)
    return written.describe() + format_left_out(count_left_out(traces, trace.counted))


def _rocpd(destination: Path, traces: Traces) -> str:
    """Copy the rows of RocPD unchanged, and write the rest as events."""
    writers = find_writers(traces)
    trace = trace_events(traces, format_others(writers))
    others = copy_rows(traces, writers)
    written = convert.write_rocpd(destination, trace.events, processes=trace.processes, others=others)
    copied = sum(count_copied(traces, writers).values())
    records = traces.execute("SELECT count(*) FROM records").fetchall()[0][0]
    also = f", and {copied} rows of RocPD as they were" if copied else ""
    return written.describe() + also + format_left_out({"flows": len(trace.flows), "records": records})


def _convert(write_events: Callable[[Path, Traces], str]) -> Write:
    """Return a converter of a format that is written event by event."""

    def write(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
        with _open(paths, destination, filters, progress) as traces:
            return write_events(destination, traces)

    return write


@contextmanager
def _open(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> Iterator[Traces]:
    """Open the traces; large ones by way of a sealed run beside the destination."""
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


CONVERTERS: Mapping[str, Converter] = {
    "perfetto": Converter(
        "a trace for ui.perfetto.dev; further files where one would be too large", _convert(_perfetto)
    ),
    "rocpd": Converter("a RocPD database, which AMD's tools open", _convert(_rocpd)),
    "csv": Converter("a folder of the CSV files that rocprofv3 writes", write_csv),
}
