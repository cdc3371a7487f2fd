"""Which TVMs of a range are measured, and in which order."""

from __future__ import annotations

import bisect
import datetime
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dashboard.trials.candidate import Candidate
from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class Choice:
    """All of them, oldest first, unless one of these says less.

    step: each Nth. days: the last one of so many days. gaps: the middle of the longest stretch without a measurement
    first, then that of the next.
    """

    step: int = 1
    days: int | None = None
    gaps: bool = False


def choose(candidates: Sequence[Candidate], choice: Choice) -> list[Candidate]:
    """Those of `candidates` (oldest first) that the choice leaves; the first and the last are always among them."""
    if choice.days is not None:
        return _choose_by_days(candidates, choice.days)
    kept = list(candidates[:: choice.step])
    return kept if kept[-1] == candidates[-1] else [*kept, candidates[-1]]


def _choose_by_days(candidates: Sequence[Candidate], days: int) -> list[Candidate]:
    if not all(candidate.date for candidate in candidates):
        raise DashboardError("--dates works only with commits, not with releases. Use --step or --gaps.")
    moments = [datetime.datetime.fromisoformat(candidate.date) for candidate in candidates]
    numbers = [moment.astimezone(datetime.UTC).toordinal() // days for moment in moments]
    last = dict(zip(numbers, candidates, strict=True))  # of commits of one stretch of days, the last one stays
    return list(dict.fromkeys([candidates[0], *last.values(), candidates[-1]]))


def order_by_gaps(candidates: Sequence[Candidate], measured: Collection[str]) -> Iterator[Candidate]:
    """Those without a measurement, so that each halves the longest stretch that has none; the ends come first."""
    places = sorted(at for at, candidate in enumerate(candidates) if candidate.id in measured)
    for at in (0, len(candidates) - 1):
        if at not in places:
            bisect.insort(places, at)
            yield candidates[at]
    while True:
        gaps = [(after - before, -before) for before, after in itertools.pairwise(places)]
        length, start = max(gaps, default=(0, 0))
        if length < 2:
            return
        middle = -start + length // 2
        bisect.insort(places, middle)
        yield candidates[middle]
