"""Deadlines: counted in time zones that are said, told while they are near, dropped when they are past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, State
from tests.subsystem import slack_homes
from tests.subsystem.scripts import load
from tests.subsystem.slack_homes import SlackHome, night
from tvmdash.errors import DashboardError

NAME = "deadline"


@pytest.fixture
def home(tmp_path: Path) -> SlackHome:
    return SlackHome(tmp_path)


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


def run(home: SlackHome, deadlines: dict[str, Any], stamp: str = slack_homes.STAMP, **more: Any) -> slack_homes.Done:
    return home.run(NAME, night(stamp=stamp), deadlines=deadlines, **more)


deadline = load(NAME)
NOW = slack_homes.common.parse_stamp(slack_homes.STAMP)


def read(given: Any, time_zone: str = "UTC") -> Any:
    """The one deadline of a config."""
    config = SimpleNamespace(deadlines={"x": given}, time_zone=time_zone, ping_days=7)
    (found,) = deadline.read_deadlines(config, "config.json")
    return found


def rows(done: slack_homes.Done) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((done.output / "deadlines.json").read_text())["deadlines"]
    return found


@pytest.mark.parametrize(
    ("given", "utc"),
    [
        ({"date": "2027-01-15"}, "2027-01-15T23:59:59Z"),
        ({"date": "2027-01-15", "time_zone": "AoE"}, "2027-01-16T11:59:59Z"),
        ({"date": "2027-01-15T17:00", "time_zone": "Europe/Berlin"}, "2027-01-15T16:00:00Z"),
        ({"date": "2027-07-15T17:00", "time_zone": "Europe/Berlin"}, "2027-07-15T15:00:00Z"),
        ({"date": "2027-07-15 17:00:30", "time_zone": "America/Los_Angeles"}, "2027-07-16T00:00:30Z"),
        ({"date": "2027-01-15T17:00+05:30"}, "2027-01-15T11:30:00Z"),
        ({"date": "2027-01-15T17:00Z"}, "2027-01-15T17:00:00Z"),
        ({"date": "2027-10-31T02:30", "time_zone": "Europe/Berlin"}, "2027-10-31T00:30:00Z"),
    ],
)
def test_a_date_is_a_moment_in_its_time_zone(given: dict[str, Any], utc: str) -> None:
    assert read(given).ahead_of(NOW, near=False).utc == utc


def test_the_configs_time_zone_is_for_dates_that_name_none() -> None:
    assert read({"date": "2027-01-15"}, "Asia/Tokyo").ahead_of(NOW, near=False).utc == "2027-01-15T14:59:59Z"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "$.deadlines.x.date: required field is missing"),
        ("2027-01-15", "$.deadlines.x: '2027-01-15' is not an object"),
        ({"date": "01/15/2027"}, "$.deadlines.x.date: '01/15/2027' is not a date (use e.g. 2027-01-15"),
        ({"date": "2027-02-30"}, "$.deadlines.x.date: '2027-02-30': day is out of range for month"),
        ({"date": "2027-01-15T25:00"}, "$.deadlines.x.date: '2027-01-15T25:00': hour must be in 0..23"),
        ({"date": "2027-01-15", "time_zone": "Europe/Berlyn"}, "Did you mean 'Europe/Berlin'?"),
        ({"date": "2027-01-15", "time_zone": "../../etc/passwd"}, "unknown time zone"),
        ({"date": "2027-01-15T10:00Z", "time_zone": "UTC"}, "has a UTC offset, but time_zone is also set"),
        ({"date": "2027-03-28T02:30", "time_zone": "Europe/Berlin"}, "does not exist in Europe/Berlin"),
        ({"date": "2027-01-15", "ping": ["@bob"]}, "$.deadlines.x.ping: '@bob' is not a Slack ID"),
        ({"date": "2027-01-15", "pings": []}, "$.deadlines.x.pings: unknown field. Did you mean 'ping'?"),
        ({"date": "2027-01-15", "ping_days": -1}, "$.deadlines.x.ping_days: -1 is less than 0"),
    ],
)
def test_a_fault_is_told_with_place_and_remedy(given: Any, words: str) -> None:
    with pytest.raises(DashboardError) as caught:
        read(given)
    assert words in str(caught.value)
    assert str(caught.value).startswith("config.json: $.deadlines.x")


def test_every_fault_is_told_at_once(home: SlackHome) -> None:
    done = run(home, {"x": {"date": "soon"}, "y": {"date": "later"}})
    assert not done.success
    assert len(done.message.splitlines()) == 2


def test_the_nearest_comes_first_and_what_is_past_is_dropped(home: SlackHome) -> None:
    done = run(home, {"b": {"date": "2027-02-01"}, "a": {"date": "2027-01-01"}, "old": {"date": "2026-11-20"}})
    assert [row["name"] for row in rows(done)] == ["a", "b"]
    assert "1 in the past can be removed from the config." in done.report


def test_a_deadline_that_is_not_near_says_nothing_in_slack(home: SlackHome, state: State) -> None:
    home.token(TOKEN)
    done = run(home, {"x": {"date": "2026-12-25"}}, slack=state.url, channel=CHANNEL)
    assert done.success
    assert not state.calls
    assert rows(done)[0]["near"] is False


def test_a_near_deadline_pings_and_its_name_does_not(home: SlackHome, state: State) -> None:
    home.token(TOKEN)
    near = {
        "title": "CGO <!channel>",
        "date": "2026-11-24",
        "time_zone": "AoE",
        "ping": ["U012ABCDEF"],
        "url": "https://cgo.org",
    }
    done = run(home, {"x": near, "far": {"date": "2027-11-24"}}, slack=state.url, channel=CHANNEL)
    assert done.success, done.log
    (message,) = state.channel()
    assert message.pings() == ["<@U012ABCDEF>"]
    assert message.blocks[0]["text"]["text"] == "⏰ CGO <\u200b!channel> in 4 days"
    assert "in 4 days, on 2026-11-24 23:59 AoE" in message.markup()


@pytest.mark.parametrize(("days", "tells"), [(3, False), (4, False), (5, True), (60, True)])
def test_a_deadline_has_its_own_days_of_pings(home: SlackHome, days: int, tells: bool) -> None:
    done = run(home, {"x": {"date": "2026-11-25T12:00", "ping_days": days}}, ping_days=0)
    assert (done.output / "message.txt").exists() is tells


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("2026-11-21T03:16", "in 1 minute"),
        ("2026-11-21T08:15", "in 5 hours"),
        ("2026-11-22T03:15", "in 1 day"),
        ("2026-11-22T04:15", "in 1 day 1 hour"),
        ("2026-11-23T20:00", "in 2 days 16 hours"),
        ("2026-12-21T03:15", "in 30 days"),
    ],
)
def test_what_is_left_is_told_in_words(date: str, words: str) -> None:
    deadline = read({"date": date})
    assert deadline.describe(NOW) == f"{words}, on {deadline.format_moment()}"
    value = vars(deadline.ahead_of(NOW, near=False))
    assert (value["left"], value["moment"]) == (words, deadline.format_moment())


def test_at_its_very_moment_a_deadline_is_past(home: SlackHome) -> None:
    assert rows(run(home, {"x": {"date": "2026-11-21T03:15"}})) == []
