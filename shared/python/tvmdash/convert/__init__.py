"""Writers of traces for other tools: Perfetto, Chrome JSON, RocPD, Parquet, CSV, JSON lines.

All of them stream: they take an iterator of events and hold one batch of it, whatever its length. They know nothing of
where the events come from.

    >>> from tvmdash.convert import Slice, write_perfetto
    >>> night = Slice("a night", "night", "20261121T031500Z", "night", 0, 5_000)
    >>> write_perfetto(place / "night.pftrace", [night])                                          # doctest: +SKIP
"""

from __future__ import annotations

from tvmdash.convert.chrome import write_chrome
from tvmdash.convert.events import Counter, Counters, Event, Flow, Names, Slice, Slices, batches, names
from tvmdash.convert.parts import Split, Written
from tvmdash.convert.perfetto import write_perfetto
from tvmdash.convert.rocpd import RocpdProcess, RocpdRows, write_rocpd
from tvmdash.convert.rows import write_csv, write_json_lines, write_parquet

__all__ = [
    "Counter",
    "Counters",
    "Event",
    "Flow",
    "Names",
    "RocpdProcess",
    "RocpdRows",
    "Slice",
    "Slices",
    "Split",
    "Written",
    "batches",
    "names",
    "write_chrome",
    "write_csv",
    "write_json_lines",
    "write_parquet",
    "write_perfetto",
    "write_rocpd",
]
