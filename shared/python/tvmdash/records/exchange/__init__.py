"""The workload record format in and out: JSON, JSON lines, Parquet, and the log format v0.1 of TVM's documentation."""

from __future__ import annotations

from tvmdash.records.exchange.formats import FORMATS, find_format, named_format, parse_rows, read_records, write_records
from tvmdash.records.exchange.rows import (
    IMPORTED,
    NO_MEDIAN,
    PlacedRecord,
    WrittenFiles,
    find_nights,
    keep,
    records_in,
)
from tvmdash.records.migrations import migrate

__all__ = [
    "FORMATS",
    "IMPORTED",
    "NO_MEDIAN",
    "PlacedRecord",
    "WrittenFiles",
    "find_format",
    "find_nights",
    "keep",
    "migrate",
    "named_format",
    "parse_rows",
    "read_records",
    "records_in",
    "write_records",
]
