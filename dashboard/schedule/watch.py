"""The watch over nights: the schedule against the last night that was complete."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from dashboard.schedule import refusal
from dashboard.schedule.refusal import Refusal
from dashboard.schedule.schedule import Schedule
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, RUNNING, Home, Night

_NIGHTS_BACK = 60
_USUAL = 14
"""Complete nights whose longest says how long one takes."""
_TIMES, _SPARE = 1.5, datetime.timedelta(hours=1)
_WITHOUT_NIGHTS = datetime.timedelta(hours=12)
_LONGEST = datetime.timedelta(days=365)
_EARLY = datetime.timedelta(minutes=2)
AHEAD = datetime.timedelta(minutes=10)
"""The limit by which a night may be ahead of the clock and still count: clocks are set."""


@dataclass(frozen=True)
class Watched:
    """The state of a home's nights.

    due: the latest night that should be complete by now, None where none should. last: the newest complete night.
    attempt: the newest night since then that is not complete. grace: how long after its begin a night is waited for.
    is_running: whether a night runs now. refusal: a start since the last night that was refused.
    """

    schedule: Schedule
    due: datetime.datetime | None
    last: Night | None
    attempt: Night | None
    grace: datetime.timedelta
    is_running: bool = False
    refusal: Refusal | None = None

    @property
    def is_broken_off(self) -> bool:
        """True where the newest night was killed, or its machine lost power: it could tell nobody itself."""
        return self.attempt is not None and self.attempt.state == RUNNING and not self.is_running

    @property
    def is_quiet(self) -> bool:
        """True where people should hear of it: a night is overdue, the newest one broke off, or a start was refused."""
        return self.refusal is not None or self.is_broken_off or self.is_overdue

    @property
    def is_overdue(self) -> bool:
        """True where a night should be complete, and none since it was due is."""
        if self.due is None:
            return False
        return self.last is None or common.parse_stamp(self.last.stamp) < self.due - _EARLY


def watch(
    home: Home,
    schedule: Schedule,
    now: datetime.datetime,
    grace: datetime.timedelta | None,
    *,
    is_running: bool = False,
) -> Watched:
    """Compare the home's nights with the schedule. Nights dated ahead of the clock do not count."""
    nights = [night for night in home.last_nights(_NIGHTS_BACK) if common.parse_stamp(night.stamp) <= now + AHEAD]
    complete = [night for night in nights if night.state == COMPLETE]
    waited = grace or _learn_grace(complete)
    due = schedule.times.find_latest(now - waited)
    if due is not None and not complete and due < _find_begin(home, schedule, nights):
        due = None
    last = complete[0] if complete else None
    newer = [night for night in nights if last is None or night.stamp > last.stamp]
    refused = None if is_running else refusal.read(home)
    return Watched(schedule, due, last, newer[0] if newer else None, waited, is_running, refused)


def _learn_grace(complete: list[Night]) -> datetime.timedelta:
    """Half as much again as the longest of the last nights, and an hour."""
    usual = [night.elapsed_s for night in complete[:_USUAL]]
    return make_grace(max(usual) * _TIMES) + _SPARE if usual else _WITHOUT_NIGHTS


def make_grace(seconds: float) -> datetime.timedelta:
    """Limit seconds, which may come from a damaged file, to between none and a year."""
    return datetime.timedelta(seconds=min(max(seconds, 0.0), _LONGEST.total_seconds()))


def _find_begin(home: Home, schedule: Schedule, nights: list[Night]) -> datetime.datetime:
    """Find when nights of a home without a complete one became due: made, scheduled and first started."""
    made = datetime.datetime.fromtimestamp(home.config_file.stat().st_mtime, datetime.UTC)
    known = [schedule.since, common.parse_stamp(nights[-1].stamp) - _EARLY if nights else None]
    return max([made, *filter(None, known)])
