"""The five fields of a crontab's line, as Vixie cron reads them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from tvmdash.errors import DashboardError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Sequence[tuple[str, int, int, tuple[str, ...]]] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MOST_DAYS = 9 * 366
"""29 February comes once in eight years at worst."""


@dataclass(frozen=True)
class CronLine:
    """When a line of a crontab runs. zone: of its times, None for this machine's."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    zone: datetime.tzinfo | None = None

    def find_latest(self, before: datetime.datetime) -> datetime.datetime | None:
        """The last time at `before` or earlier, None where there is none within nine years."""
        local = before.astimezone(self.zone)
        for back in range(_MOST_DAYS):
            day = local.date() - datetime.timedelta(days=back)
            if self._is_on(day):
                times = [self._make_time(day, hour, minute) for hour in self.hours for minute in self.minutes]
                if passed := [time for time in times if time <= before]:
                    return max(passed)
        return None

    def _is_on(self, day: datetime.date) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        # where both are restricted, either is enough
        either = in_month or in_week if not self.any_day and not self.any_weekday else in_month and in_week
        return day.month in self.months and either

    def _make_time(self, day: datetime.date, hour: int, minute: int) -> datetime.datetime:
        naive = datetime.datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - its zone is set below
        moment = naive.replace(tzinfo=self.zone) if self.zone else naive.astimezone()
        return moment.astimezone(datetime.UTC)


def parse_cron(text: str, zone: datetime.tzinfo | None = None) -> CronLine:
    """The fields `0 3 * * *`, or `@daily`; DashboardError says what is wrong."""
    fields = NICKNAMES.get(text.strip().lower(), text).split()
    if len(fields) != len(_FIELDS):
        problem = f"{text!r:.80} is not a cron schedule: it has {len(fields)} fields instead of 5."
        raise DashboardError(problem, remedy="Use e.g. 0 3 * * * (every night at 03:00).")
    values = [_parse_field(field, *row) for field, row in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = values
    any_day, any_weekday = (fields[at].startswith("*") for at in (2, 4))
    weekdays = frozenset(day % 7 for day in weekdays)
    return CronLine(text.strip(), minutes, hours, days, months, weekdays, any_day, any_weekday, zone)


def _parse_field(field: str, name: str, least: int, most: int, words: tuple[str, ...]) -> frozenset[int]:
    try:
        return frozenset(value for part in field.split(",") for value in _parse_part(part, least, most, words))
    except ValueError:
        problem = f"{field!r:.40} is not a valid {name} in a cron schedule."
        raise DashboardError(problem, remedy=f"Use * or numbers from {least} to {most}, e.g. 1-5 or */2.") from None


def _parse_part(part: str, least: int, most: int, words: tuple[str, ...]) -> range:
    """Values of one part: `*`, `3`, `mon-fri`, `*/2`, `10-50/10`; ValueError where it is none."""
    span, stepped, step_text = part.partition("/")
    first_text, ranged, last_text = span.partition("-")
    if span == "*":
        first, last = least, most
    else:
        first = _parse_value(first_text, least, words)
        last = _parse_value(last_text, least, words) if ranged else (most if stepped else first)
    step = _parse_number(step_text) if stepped else 1
    if not least <= first <= last <= most or step < 1:
        raise ValueError
    return range(first, last + 1, step)


def _parse_value(text: str, least: int, words: tuple[str, ...]) -> int:
    lower = text.lower()
    return words.index(lower) + least if lower in words else _parse_number(text)


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError
    return int(text)
