"""Many traces into one sealed run, one into several."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmtraces.connection import open_traces
from tvmtraces.filters import Filters, Straddle, Window, escape
from tvmtraces.reading import Progress
from tvmtraces.sealed import SealedSource, sealed_source
from tvmtraces.sealing import seal

_MOST_PARTS = 10_000


def split_by_process(
    paths: list[str], destination: Path, *, filters: Filters | None = None, progress: Progress | None = None
) -> list[SealedSource]:
    """A sealed run for each process in the new folder `destination`.

    It is named by its guid and, where that has several processes, its number among those.
    """
    with open_traces(paths, filters=filters) as traces:
        keys = traces.execute("SELECT guid, process FROM processes ORDER BY start, guid, process").fetchall()
    chosen, numbers = filters or Filters(), Counter(guid for guid, _ in keys)
    pieces = []
    for index, (guid, process) in enumerate(keys, start=1):
        shared = numbers[guid] > 1
        name = f"process_{guid}_{process}" if shared else f"process_{guid}"
        only = replace(chosen, processes=(f"{escape(guid)}/{process}",))
        pieces.append((re.sub(r"[^\w.-]", "_", name), only, f"{index}/{len(keys)}" if shared else ""))
    return _split(paths, destination, pieces, progress)


def split_by_time(
    paths: list[str], destination: Path, parts: int, *, filters: Filters | None = None, progress: Progress | None = None
) -> list[SealedSource]:
    """`parts` sealed runs of equal length in the new folder `destination`: what begins in a part is in it, whole."""
    if not 1 <= parts <= _MOST_PARTS:
        raise DashboardError(f"cannot split into {parts} parts. Use 1 to {_MOST_PARTS}.")
    chosen = filters or Filters()
    if chosen.window is not None:
        raise DashboardError("A window cannot be split further. Seal the window first, then split that.")
    with open_traces(paths) as traces:
        first, last = traces.bounds_ns()
    edges = [first + (last + 1 - first) * number // parts for number in range(parts + 1)]
    pieces = (
        (
            f"part_{number:04d}",
            replace(chosen, window=Window(str(edges[number]), str(edges[number + 1]), Straddle.STARTING)),
            f"{number + 1}/{parts}",
        )
        for number in range(parts)
    )
    return _split(paths, destination, pieces, progress)


def _split(
    paths: list[str], destination: Path, pieces: Iterable[tuple[str, Filters, str]], progress: Progress | None
) -> list[SealedSource]:
    if destination.exists():
        raise DashboardError(f"{destination}: exists already. Choose another place.")
    names = []
    with common.folder_beside(destination.absolute()) as folder:
        for name, filters, part in pieces:
            seal(paths, folder / name, filters=filters, part=part, progress=progress)
            names.append(name)
    return [sealed_source(destination / name) for name in names]
