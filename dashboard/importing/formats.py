"""The formats that can be imported, in the order in which a file is shown to them."""

from __future__ import annotations

from dashboard.importing import asv, google_benchmark, placed_records, pyperf, relay_bench
from dashboard.importing.parsed import ImportFormat
from dashboard.importing.source import File

FORMATS: tuple[ImportFormat, ...] = (
    relay_bench.FORMAT,
    relay_bench.CSV,
    placed_records.FORMAT,
    asv.FORMAT,
    pyperf.FORMAT,
    google_benchmark.FORMAT,
)
BESIDE = frozenset({"machine.json", "benchmarks.json", "asv.conf.json", "status.json", "config.json", "summary.json"})
"""Files that the tools put beside their results."""


def format_of(file: File) -> ImportFormat | None:
    """Whose file this is."""
    return next((file_format for file_format in FORMATS if file_format.owns(file)), None)
