"""The hours of the day in which a route sends nothing."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from dataclasses import dataclass

from tvmdash.errors import DashboardError

_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)


@dataclass(frozen=True)
class QuietHours:
    """From `begin` until `end` by the clocks of a time zone, over midnight where the end is the earlier one."""

    begin: datetime.time
    end: datetime.time
    zone: zoneinfo.ZoneInfo

    def find_end(self, now: datetime.datetime) -> datetime.datetime | None:
        """The moment at which those that hold `now` end; None where none do."""
        local = now.astimezone(self.zone)
        clock = local.time()
        over_midnight = self.end <= self.begin
        inside = clock >= self.begin or clock < self.end if over_midnight else self.begin <= clock < self.end
        if not inside:
            return None
        days = 1 if over_midnight and clock >= self.begin else 0
        return datetime.datetime.combine(local.date() + datetime.timedelta(days), self.end, self.zone)


def parse_quiet_hours(text: str, time_zone: str) -> QuietHours:
    """The hours in a text like `22:00-07:00`; DashboardError, which begins with the field, where it is none."""
    match = _SPAN.fullmatch(text)
    if not match:
        raise DashboardError(f".quiet_hours: {text!r:.60} is not a time range (use e.g. 22:00-07:00).")
    begin, end = (datetime.time(int(match[at]), int(match[at + 1])) for at in (1, 3))
    if begin == end:
        raise DashboardError(f".quiet_hours: {text} covers the whole day. Remove the route from the config instead.")
    try:
        return QuietHours(begin, end, zoneinfo.ZoneInfo(time_zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise DashboardError(
            f".time_zone: unknown time zone {time_zone!r:.60}. Use an IANA name such as Europe/Berlin."
        ) from None
