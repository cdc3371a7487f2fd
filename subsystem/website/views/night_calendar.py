"""The nights of the last weeks, a day a cell: what was said of each, and where another machine measured."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tvmdash import common
from tvmdash.dashboard_info import JobResult
from tvmdash.verdict.account import NightSeverity
from views.night import ABSENT, FAILED, OK, PARTIAL, job_state
from views.night_results import KeptResults

WEEKS = 5
_SEVERITIES = {OK: NightSeverity.GOOD, FAILED: NightSeverity.BAD, ABSENT: NightSeverity.UNKNOWN}
"""Of nights of before there was an account: by how their jobs went."""


@dataclass(frozen=True)
class CalendarDay:
    """A day; of its last night the stamp, how grave it was, and that in words. Without one, stamp is empty."""

    day: int
    stamp: str = ""
    severity: str = "none"
    words: str = ""
    other_machine: bool = False


def make_calendar(
    nights: Mapping[str, tuple[str, KeptResults]], machine_changed: AbstractSet[str]
) -> tuple[CalendarDay, ...]:
    """Fill whole weeks from Monday on, up to the last night. nights: how the jobs of each went, and what was kept."""
    by_day = {common.parse_stamp(stamp).date(): stamp for stamp in sorted(nights)}
    last = max(by_day)
    first = max(min(by_day), last - datetime.timedelta(weeks=WEEKS - 1))
    day, days = first - datetime.timedelta(days=first.weekday()), []
    while day <= last:
        days.append(_make_day(day, by_day.get(day), nights, machine_changed))
        day += datetime.timedelta(days=1)
    return tuple(days)


def _make_day(
    day: datetime.date,
    stamp: str | None,
    nights: Mapping[str, tuple[str, KeptResults]],
    machine_changed: AbstractSet[str],
) -> CalendarDay:
    if stamp is None:
        return CalendarDay(day.day)
    state, kept = nights[stamp]
    severity, words = kept.sentence or (_SEVERITIES.get(state, NightSeverity.WARN), state)
    other = stamp in machine_changed
    words = f"{common.format_day(stamp)}: {words}{'; the machine changed' if other else ''}"
    return CalendarDay(day.day, stamp, severity, words, other)


def cell(job: JobResult) -> str:
    """Return the state of an experiment on a night; partial where its stages are ok and points failed."""
    state = job_state(job)
    return PARTIAL if state == OK and job.failed_points else state


def machine_changes(machines: Mapping[str, Sequence[str]]) -> set[str]:
    """Find the nights that measured on none of the machines of the night before; `machines` by stamp, oldest first."""
    changed: set[str] = set()
    before: AbstractSet[str] = frozenset()
    for stamp, now in machines.items():
        if before and before.isdisjoint(now):
            changed.add(stamp)
        before = frozenset(now)
    return changed
