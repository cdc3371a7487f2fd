"""Writers of traces for other tools: Perfetto and RocPD.

All of them stream: they take an iterator of events and hold one batch of it, whatever its length. They know nothing of
where the events come from.

    >>> from tvmtraces.convert import Slice, write_perfetto
    >>> night = Slice("a night", "night", "20261121T031500Z", "night", 0, 5_000)
    >>> write_perfetto(place / "night.pftrace", [night])                                          # doctest: +SKIP
"""

from __future__ import annotations

from tvmtraces.convert.events import Counter, Counters, Event, Flow, Names, Slice, Slices, batches, names
from tvmtraces.convert.parts import Written
from tvmtraces.convert.perfetto import write_perfetto
from tvmtraces.convert.rocpd import RocpdProcess, RocpdRows, write_rocpd

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
    "Written",
    "batches",
    "names",
    "write_perfetto",
    "write_rocpd",
]
