"""Whether nights run as they should: the schedule against the last night that was complete."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from dashboard.schedule.schedule import Schedule
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, Home, Night

_NIGHTS_BACK = 60
_USUAL = 14
"""Complete nights whose longest says how long one takes."""
_TIMES, _SPARE = 1.5, datetime.timedelta(hours=1)
_WITHOUT_NIGHTS = datetime.timedelta(hours=12)
_LONGEST = datetime.timedelta(days=365)
_EARLY = datetime.timedelta(minutes=2)
AHEAD = datetime.timedelta(minutes=10)
"""How far ahead of the clock a night may be dated that still counts: clocks are set."""


@dataclass(frozen=True)
class Watched:
    """What `watch` sees.

    due: the latest night that should be complete by now, None where none should. last: the newest complete night.
    attempt: the newest night since then that is not complete. grace: how long after its begin a night is waited for.
    """

    schedule: Schedule
    due: datetime.datetime | None
    last: Night | None
    attempt: Night | None
    grace: datetime.timedelta

    @property
    def is_quiet(self) -> bool:
        """Whether a night should be complete, and none since it was due is."""
        if self.due is None:
            return False
        return self.last is None or common.parse_stamp(self.last.stamp) < self.due - _EARLY


def watch(home: Home, schedule: Schedule, now: datetime.datetime, grace: datetime.timedelta | None) -> Watched:
    """How the home's nights keep to the schedule. Nights dated ahead of the clock do not count."""
    nights = [night for night in home.last_nights(_NIGHTS_BACK) if common.parse_stamp(night.stamp) <= now + AHEAD]
    complete = [night for night in nights if night.state == COMPLETE]
    waited = grace or _learn_grace(complete)
    due = schedule.times.find_latest(now - waited)
    if due is not None and not nights and due < _find_begin(home):
        due = None
    last = complete[0] if complete else None
    newer = [night for night in nights if last is None or night.stamp > last.stamp]
    return Watched(schedule, due, last, newer[0] if newer else None, waited)


def _learn_grace(complete: list[Night]) -> datetime.timedelta:
    """Half as much again as the longest of the last nights, and an hour."""
    usual = [night.elapsed_s for night in complete[:_USUAL]]
    return make_grace(max(usual) * _TIMES) + _SPARE if usual else _WITHOUT_NIGHTS


def make_grace(seconds: float) -> datetime.timedelta:
    """So many seconds, which may stand in a file that is damaged: between none and a year."""
    return datetime.timedelta(seconds=min(max(seconds, 0.0), _LONGEST.total_seconds()))


def _find_begin(home: Home) -> datetime.datetime:
    """When a home without nights was made: before that none was due."""
    return datetime.datetime.fromtimestamp(home.config_file.stat().st_mtime, datetime.UTC)
