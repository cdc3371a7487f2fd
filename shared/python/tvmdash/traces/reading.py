"""Reading many sources at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from tvmdash.errors import DashboardError
from tvmdash.traces.batches import Batch, Wanted, WrongValue
from tvmdash.traces.sources import Source

Progress = Callable[[str, int, int], None]
"""Is told what is done, how much of it, of how much."""

_MOST_THREADS = 8


def read_all(sources: Sequence[Source], wanted: Wanted, progress: Progress | None) -> dict[str, list[Batch]]:
    """The batches of every table that is wanted, source after source.

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


def _read(source: Source, wanted: Wanted) -> list[Batch]:
    try:
        return list(source.read(wanted))
    except WrongValue as error:
        raise DashboardError(f"{source.path}: {error}. It is broken; restore it or leave it out.") from error
