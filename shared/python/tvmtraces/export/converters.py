"""What traces are converted into: one visible row for each format. Writers plug in here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmtraces.export.event_writers import EVENT_WRITERS, event_converter
from tvmtraces.filters import Filters
from tvmtraces.output import format_left_out
from tvmtraces.reading import Progress
from tvmtraces.sealing import seal

Write = Callable[[list[str], Path, Filters, Progress | None], str]
"""Writes the traces in the paths, as filtered, to a place that does not exist yet; says in words what it wrote."""


@dataclass(frozen=True)
class Converter:
    """A format: what it is, in words, and who writes it."""

    about: str
    write: Write


def _parquet(paths: list[str], destination: Path, filters: Filters, progress: Progress | None) -> str:
    run = seal(paths, destination, filters=filters, progress=progress)
    rows = sum(table.rows for table in run.catalogue.tables.values())
    return f"{len(run.catalogue.table_names)} tables, {rows} rows{format_left_out(run.catalogue.left_out)}"


CONVERTERS: Mapping[str, Converter] = {
    "parquet": Converter("a sealed run: a folder of Parquet with its catalogue", _parquet),
    **{name: Converter(about, event_converter(name)) for name, (about, _) in EVENT_WRITERS.items()},
}
