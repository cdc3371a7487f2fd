"""Reading many sources: all at once, or one after the other, a part of their rows at a time."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tvmdash.errors import DashboardError
from tvmtraces.batches import Batch, WantedRows, WrongValue
from tvmtraces.sources import Source

Progress = Callable[[str, int, int], None]
"""Called with the task, the amount done, and the total."""

_MOST_THREADS = 8
_MOST_BYTES = 32 << 20
"""Limit of the memory for batches that wait for the consumer."""


def read_all(sources: Sequence[Source], wanted: WantedRows, progress: Progress | None) -> dict[str, list[Batch]]:
    """Return the batches of every table that is wanted, source after source.

    Sources are read side by side: SQLite and numpy let other threads run while they work.
    """
    batches: dict[str, list[Batch]] = {table: [] for table in wanted.tables}
    slow = [source for source in sources if source.kind != "sealed"]
    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        reads = [pool.submit(_read, source, wanted) for source in slow]
        try:
            for done, _ in enumerate(as_completed(reads), start=1):
                if progress is not None:
                    progress("reading", done, len(slow))
            for read in reads:
                for batch in read.result():
                    batches[batch.table].append(batch)
        except BaseException:
            for read in reads:
                read.cancel()
            raise
    return batches


def read_in_parts(
    sources: Sequence[Source], wanted: WantedRows, progress: Progress | None
) -> Iterator[tuple[str, list[Batch]]]:
    """Yield the batches of all sources, table by table, as soon as together they exceed a limit of memory."""
    waiting: dict[str, list[Batch]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    slow = [source for source in sources if source.kind != "sealed"]
    for done, source in enumerate(slow, start=1):
        for batch in _read_one(source, wanted):
            waiting[batch.table].append(batch)
            sizes[batch.table] += batch.size_bytes
            while sum(sizes.values()) > _MOST_BYTES:
                largest = max(sizes, key=lambda table: sizes[table])
                sizes.pop(largest)
                yield largest, waiting.pop(largest)
        if progress is not None:
            progress("reading", done, len(slow))
    yield from waiting.items()


def _read(source: Source, wanted: WantedRows) -> list[Batch]:
    return list(_read_one(source, wanted))


def _read_one(source: Source, wanted: WantedRows) -> Iterator[Batch]:
    try:
        yield from source.read(wanted)
    except WrongValue as error:
        raise DashboardError(f"{source.path}: {error}. It is broken; restore it or leave it out.") from error
