"""Countdowns to the deadlines in its config: in deadlines.json for the website, and in Slack while one is near."""

from __future__ import annotations

import datetime
import difflib
import re
import sys
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common.structured import from_json
from tvmdash.config_util import ConfigError, Field, JobConfig, check
from tvmdash.dashboard_info import Home, Night, pages
from tvmdash.dashboard_info.pages import DEADLINES_FILE, DeadlineAhead, DeadlinesAhead
from tvmdash.errors import DashboardError
from tvmdash.notify.channel import ChannelSection, SlackConfig, find_slack_faults, open_slack, tell_section
from tvmdash.notify.payloads import Part, escape, format_bold, format_mention, format_pings, link
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide

FIELDS = {
    "date": Field("str", "2027-01-15 (the end of that day) or 2027-01-15T17:00, with Z or +01:00 if wanted.", min=1),
    "time_zone": Field("str", "Overrides the config's time_zone for this date.", default="", min=0),
    "ping": Field("list", "Slack IDs that are pinged.", default=[], of=Field("str", "A Slack ID.", min=1)),
    "ping_days": Field("int", "Overrides the config's ping_days for this date.", default=None, nullable=True, min=0),
    "title": Field("str", "Title shown in messages.", default=""),
    "url": Field("str", "URL with details.", default=""),
}
ANYWHERE_ON_EARTH = "AoE"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2})?) ?(Z|[+-]\d{2}:\d{2})?")


@dataclass(frozen=True, kw_only=True)
class _Given:
    """One deadline as the config gives it."""

    date: str
    time_zone: str
    ping: tuple[str, ...]
    ping_days: int | None
    title: str
    url: str


@dataclass(frozen=True)
class ConfiguredDeadline:
    """One deadline; `moment` is aware, in the time zone in which it was given, `zone` that zone's name."""

    name: str
    title: str
    moment: datetime.datetime
    zone: str
    pings: tuple[str, ...]
    ping_days: int
    url: str

    def days_left(self, now: datetime.datetime) -> float:
        """Return days of 24 hours from `now` on."""
        return (self.moment - now).total_seconds() / 86400

    def format_left(self, now: datetime.datetime) -> str:
        """Format as in "in 12 days", "in 1 day 5 hours", "in 20 minutes"; what has begun is not counted."""
        minutes = int((self.moment - now).total_seconds() // 60)
        days, hours = minutes // 1440, minutes // 60
        if days >= 3:
            return f"in {days} days"
        if days:
            rest = f" {_count(hours - 24 * days, 'hour')}" if hours > 24 * days else ""
            return f"in {_count(days, 'day')}{rest}"
        return f"in {_count(hours, 'hour')}" if hours else f"in {_count(minutes, 'minute')}"

    def format_moment(self) -> str:
        """Format as in "2027-01-15 23:59 AoE"."""
        return f"{self.moment:%Y-%m-%d %H:%M} {self.zone}"

    def describe(self, now: datetime.datetime) -> str:
        """Format as in "in 12 days, on 2027-01-15 23:59 AoE"."""
        return f"{self.format_left(now)}, on {self.format_moment()}"

    def ahead_of(self, now: datetime.datetime, *, near: bool) -> DeadlineAhead:
        """Convert for deadlines.json; `near`: people are pinged."""
        return DeadlineAhead(
            title=self.title,
            utc=self.moment.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            words=self.describe(now),
            url=self.url,
            near=near,
            name=self.name,
            local=self.moment.isoformat(),
            time_zone=self.zone,
            seconds_left=int((self.moment - now).total_seconds()),
            left=self.format_left(now),
            moment=self.format_moment(),
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def read_deadlines(config: DeadlineConfig, where: str) -> list[ConfiguredDeadline]:
    """Read the config's deadlines; ConfigError has a line for each fault of each, `where` names the file."""
    deadlines: list[ConfiguredDeadline] = []
    faults: list[str] = []
    for name, given in config.deadlines.items():
        at = f"$.deadlines.{name}"
        try:
            checked = from_json(_Given, check(given, FIELDS, where, at=at), where, at=at)
            deadlines.append(_parse(name, checked, config, f"{where}: {at}"))
        except ConfigError as error:
            faults += error.faults
        except DashboardError as error:
            faults.append(str(error))
    if faults:
        raise ConfigError(faults)
    return deadlines


def _parse(name: str, given: _Given, config: DeadlineConfig, location: str) -> ConfiguredDeadline:
    wrong = [identity for identity in given.ping if format_mention(identity) is None]
    if wrong:
        raise DashboardError(f"{location}.ping: {wrong[0]!r:.60} is not a Slack ID. Copy it from the profile (U...).")
    days = config.ping_days if given.ping_days is None else given.ping_days
    moment, zone = _moment(given.date, given.time_zone, config.time_zone, location)
    pings = tuple(filter(None, map(format_mention, dict.fromkeys(given.ping))))
    return ConfiguredDeadline(name, given.title.strip() or name, moment, zone, pings, days, given.url)


def _moment(date: str, own_zone: str, default_zone: str, location: str) -> tuple[datetime.datetime, str]:
    day = _DAY.fullmatch(date)
    match = _MOMENT.fullmatch(date)
    if not day and not match:
        raise DashboardError(f"{location}.date: {date!r:.60} is not a date (use e.g. 2027-01-15 or 2027-01-15T17:00).")
    offset = match[3] if match else None
    if offset and own_zone:
        raise DashboardError(
            f"{location}.date: {date!r} has a UTC offset, but time_zone is also set. Remove one of them."
        )
    text = f"{date}T23:59:59" if day else f"{match[1]}T{match[2]}"  # type: ignore[index]
    try:
        naive = datetime.datetime.fromisoformat(text)
        if offset:
            shift = "+00:00" if offset == "Z" else offset
            return datetime.datetime.fromisoformat(text + shift), "UTC" if shift == "+00:00" else f"UTC{shift}"
    except ValueError as error:
        raise DashboardError(f"{location}.date: {date!r}: {error}. Use e.g. 2027-01-15 or 2027-01-15T17:00.") from error
    name = own_zone or default_zone
    return _local(naive, name, location, date), name


def _local(naive: datetime.datetime, name: str, location: str, date: str) -> datetime.datetime:
    """Return the moment in the zone; where a clock is put back and shows it twice, the first time."""
    zone = _zone(name, location)
    moment = naive.replace(tzinfo=zone)
    # zoneinfo accepts a time that the clock skips in spring; only the way to UTC and back changes it
    if moment.astimezone(datetime.UTC).astimezone(zone).replace(tzinfo=None) != naive:
        raise DashboardError(
            f"{location}.date: {date!r} does not exist in {name} because the clocks go forward then. Use another time."
        )
    return moment


def _zone(name: str, location: str) -> zoneinfo.ZoneInfo:
    if name == ANYWHERE_ON_EARTH:
        # POSIX turns the sign round: this is UTC-12, the last zone in which a day ends
        return zoneinfo.ZoneInfo("Etc/GMT+12")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        near = difflib.get_close_matches(name, sorted(zoneinfo.available_timezones()), n=1)
        remedy = f"Did you mean {near[0]!r}?" if near else "Use an IANA name such as Europe/Berlin, or AoE."
        raise DashboardError(f"{location}.time_zone: unknown time zone {name!r:.60}. {remedy}") from None


WHERE = "config/subsystem/deadline/config.json"


@dataclass(frozen=True, kw_only=True)
class DeadlineConfig(SlackConfig, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    deadlines: Mapping[str, Any]
    time_zone: str
    ping_days: int


class DeadlineSubsystem(Subsystem[DeadlineConfig]):
    """Tells how long is left, with pings where a deadline is near; says nothing where none is."""

    def faults(self, config: DeadlineConfig, shown: str, home: Home) -> Sequence[str]:
        try:
            read_deadlines(config, shown)
        except ConfigError as error:
            return error.faults
        return find_slack_faults(config, home, shown)

    def work(self, config: DeadlineConfig, output: Path, home: Home, tonight: Night) -> Report:
        deadlines = read_deadlines(config, WHERE)
        now = common.parse_stamp(tonight.stamp)
        coming = sorted((item for item in deadlines if item.moment > now), key=lambda item: (item.moment, item.name))
        near = [item for item in coming if item.days_left(now) <= item.ping_days]
        ahead = DeadlinesAhead(tuple(item.ahead_of(now, near=item in near) for item in coming), tonight.stamp)
        pages.write(output / DEADLINES_FILE, ahead)
        sentences = [f"{item.title}: {item.describe(now)}." for item in coming] or ["No upcoming deadlines."]
        past = len(deadlines) - len(coming)
        sentences += [f"{past} in the past can be removed from the config."] if past else []
        if near:
            slack = open_slack(config, home, WHERE)
            sentences.append(tell_section(slack, home, output, tonight, make_section(near, tonight.stamp)))
        return Report("Deadlines", "\n".join(sentences))


def make_section(near: Sequence[ConfiguredDeadline], stamp: str) -> ChannelSection:
    """Write the deadlines that are near, the nearest in the title."""
    now = common.parse_stamp(stamp)
    first = near[0]
    title = f"⏰ {elide(first.title, 60)} {first.format_left(now)}"
    return ChannelSection(stamp, title, tuple(_part(item, stamp) for item in near), of_night=False)


def _part(item: ConfiguredDeadline, stamp: str) -> Part:
    now = common.parse_stamp(stamp)
    name = format_bold(item.title) if not item.url else f"{format_bold(item.title)} ({link(item.url, 'details')})"
    lines = (f"{name} {escape(item.describe(now), 300)}", format_pings(item.pings))
    return Part("\n".join(filter(None, lines)), item.pings)


if __name__ == "__main__":
    sys.exit(DeadlineSubsystem().main())
