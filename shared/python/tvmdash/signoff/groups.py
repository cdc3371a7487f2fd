"""Series that belong together as one row: those of an incident, of a workload, or that lack the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash.contracts.signoff import Signoff, SignoffSeries, SignoffState

_ORDER = tuple(SignoffState)


@dataclass(frozen=True)
class SignoffGroup:
    """One row of the table; the series that went the furthest is the first."""

    series: tuple[SignoffSeries, ...]


def group_series(done: Signoff) -> list[SignoffGroup]:
    """All that is not the same on both, what is in the way first, and what is waived behind it."""
    groups: dict[tuple[object, ...], list[SignoffSeries]] = {}
    for item in done.series:
        if item.state is not SignoffState.SAME:
            groups.setdefault(tuple(_find_place(item)), []).append(item)
    made = [SignoffGroup(tuple(sorted(members, key=_measure_size))) for members in groups.values()]
    return sorted(made, key=_rank)


def _find_place(item: SignoffSeries) -> Iterator[object]:
    """Equal for series of one row."""
    yield item.state
    yield (item.waiver or item.outgrown, item.waiver is None)
    if item.incident:
        yield item.incident
        return
    yield item.experiment
    if item.state in (SignoffState.UNCLEAR, SignoffState.NEW):
        yield (item.doubt, item.lacks, item.is_in_the_way)
    elif item.before is not None:
        yield item.metric
    else:
        yield (str(item.labels.get("workload") or item.labels.get("path") or ""), item.error)


def _measure_size(item: SignoffSeries) -> tuple[float, str]:
    return -abs(item.effect or 0.0), item.name


def _rank(group: SignoffGroup) -> tuple[int, int, tuple[float, str]]:
    first = group.series[0]
    is_open = first.is_in_the_way and first.waiver is None
    place = 0 if is_open else 1 if first.waiver is not None else 2
    return place, _ORDER.index(first.state), _measure_size(first)
