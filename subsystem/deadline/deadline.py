"""Countdowns to the deadlines in its config: in deadlines.json for the website, and in Slack while one is near."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dates

from tvmdash import common, structured
from tvmdash.config_util import ConfigError, JobConfig
from tvmdash.contracts.deadlines import DEADLINES_FILE, SCHEMA_VERSION, DeadlinesAhead
from tvmdash.dashboard_info import Home, Night
from tvmdash.slack_util.delivery import SlackConfig, find_slack_faults, open_slack, tell
from tvmdash.slack_util.parts import format_in_a_line
from tvmdash.slack_util.payloads import Message, Part, build, escape, format_bold, link
from tvmdash.subsys_templates import Report, Subsystem
from tvmdash.text import elide

WHERE = "config/subsystem/deadline/config.json"


@dataclass(frozen=True, kw_only=True)
class DeadlineConfig(dates.DatesConfig, SlackConfig, JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""


class DeadlineSubsystem(Subsystem[DeadlineConfig]):
    """Tells how long is left, with pings where a deadline is near; says nothing where none is."""

    def faults(self, config: DeadlineConfig, shown: str, home: Home) -> Sequence[str]:
        try:
            dates.read(config, shown)
        except ConfigError as error:
            return error.faults
        return find_slack_faults(config, home, shown)

    def work(self, config: DeadlineConfig, output: Path, home: Home, tonight: Night) -> Report:
        deadlines = dates.read(config, WHERE)
        now = common.parse_stamp(tonight.stamp)
        coming = sorted((item for item in deadlines if item.moment > now), key=lambda item: (item.moment, item.name))
        near = [item for item in coming if item.days_left(now) <= item.ping_days]
        ahead = DeadlinesAhead(tuple(item.ahead_of(now, near=item in near) for item in coming), tonight.stamp)
        value = {"schema_version": SCHEMA_VERSION, **structured.to_json(ahead)}
        common.write_json(output / DEADLINES_FILE, value)
        sentences = [f"{item.title}: {item.describe(now)}." for item in coming] or ["No upcoming deadlines."]
        past = len(deadlines) - len(coming)
        sentences += [f"{past} in the past can be removed from the config."] if past else []
        if near:
            slack = open_slack(config, home, WHERE)
            reminder = message(near, tonight.stamp)
            sentences.append(tell(slack, output, tonight.stamp, reminder))
        return Report("Deadlines", "\n".join(sentences))


def message(near: Sequence[dates.Deadline], stamp: str) -> Message:
    """The deadlines that are near, the nearest in the headline."""
    now = common.parse_stamp(stamp)
    first = near[0]
    return build(f"⏰ {elide(first.title, 60)} {first.format_left(now)}", "", [_part(item, stamp) for item in near])


def _part(item: dates.Deadline, stamp: str) -> Part:
    now = common.parse_stamp(stamp)
    name = format_bold(item.title) if not item.url else f"{format_bold(item.title)} ({link(item.url, 'details')})"
    lines = (f"{name} {escape(item.describe(now), 300)}", format_in_a_line(item.pings))
    return Part("\n".join(filter(None, lines)), item.pings)


if __name__ == "__main__":
    sys.exit(DeadlineSubsystem().main())
