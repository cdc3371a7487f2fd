"""What traces are converted into: one visible row for each format. Writers plug in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmtraces.export.event_writers import EVENT_WRITERS, event_converter
from tvmtraces.export.rocprof_csv import write_csv
from tvmtraces.filters import Filters
from tvmtraces.reading import Progress

Write = Callable[[list[str], Path, Filters, Progress | None], str]
"""Writes the traces in the paths, as filtered, to a place that does not exist yet; says in words what it wrote."""


@dataclass(frozen=True)
class Converter:
    """A format: what it is, in words, and who writes it."""

    about: str
    write: Write


CONVERTERS: Mapping[str, Converter] = {
    **{name: Converter(about, event_converter(name)) for name, (about, _) in EVENT_WRITERS.items()},
    "csv": Converter("a folder of the CSV files that rocprofv3 writes", write_csv),
}
