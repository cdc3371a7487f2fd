"""Retention of sealed runs by age and by size, oldest first. Records are never dropped."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from tvmdash import common
from tvmdash.common.files import trees
from tvmtraces.sealed import CATALOGUE, SealedSource, sealed_source
from tvmtraces.sealing import keep_only

KEPT_FOR_EVER = ("record", "night", "stage")
"""Tables that are small and say what was measured; retention leaves them."""


def prune(folder: Path, *, keep_days: float | None = None, max_bytes: int | None = None) -> list[Path]:
    """Drop the raw measurements of the oldest sealed runs directly in `folder`; return the runs that lost them.

    A run goes when it was sealed more than `keep_days` days ago, or while all of them together have more than
    `max_bytes`. What a run knows of `KEPT_FOR_EVER` stays, as a smaller run of the same name.
    """
    runs = sorted((sealed_source(path.parent) for path in folder.glob(f"*/{CATALOGUE}")), key=_find_age)
    full = [run for run in runs if run.catalogue.table_names - set(KEPT_FOR_EVER)]
    gone = _find_too_old(full, keep_days)
    rest = [run for run in full if run not in gone]
    size = sum(run.catalogue.size_bytes for run in runs if run not in gone)
    while rest and max_bytes is not None and size > max_bytes:
        size -= rest[0].catalogue.size_bytes
        gone.append(rest.pop(0))
    for run in gone:
        if run.catalogue.table_names & set(KEPT_FOR_EVER):
            keep_only(run, KEPT_FOR_EVER)
        else:
            trees.remove(run.path)
    return [run.path for run in gone]


def _find_age(run: SealedSource) -> tuple[str, str]:
    return run.catalogue.sealed, run.catalogue.name


def _find_too_old(runs: Sequence[SealedSource], keep_days: float | None) -> list[SealedSource]:
    if keep_days is None:
        return []
    oldest = common.utc_now() - datetime.timedelta(days=keep_days)
    return [run for run in runs if common.parse_stamp(run.catalogue.sealed) < oldest]
