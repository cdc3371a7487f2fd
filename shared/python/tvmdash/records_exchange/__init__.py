"""The workload record format in and out: JSON, JSON lines, Parquet, and the log format v0.1 of TVM's documentation."""

from __future__ import annotations

from tvmdash.records.migrations import migrate
from tvmdash.records_exchange.formats import FORMATS, find_format, named_format, read_records, write_records
from tvmdash.records_exchange.rows import Kept, PlacedRecord, keep, records_in

__all__ = [
    "FORMATS",
    "Kept",
    "PlacedRecord",
    "find_format",
    "keep",
    "migrate",
    "named_format",
    "read_records",
    "records_in",
    "write_records",
]
