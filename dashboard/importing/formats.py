"""The formats that can be imported, in the order in which a file is shown to them."""

from __future__ import annotations

from dashboard.importing import ancestor, ancestor_csv, asv, google_benchmark, pyperf
from dashboard.importing.parsed import Format
from dashboard.importing.source import File

FORMATS: tuple[Format, ...] = (
    ancestor.FORMAT,
    ancestor_csv.FORMAT,
    asv.FORMAT,
    pyperf.FORMAT,
    google_benchmark.FORMAT,
)
_BESIDE = frozenset({"machine.json", "benchmarks.json", "asv.conf.json", "status.json", "config.json", "summary.json"})


def format_of(file: File) -> Format | None:
    """Whose file this is."""
    return next((file_format for file_format in FORMATS if file_format.owns(file)), None)


def holds_no_results(file: File) -> bool:
    """Whether the tools put this file beside their results."""
    return file.name.name in _BESIDE or file.name.suffix not in {".json", ".csv"}
