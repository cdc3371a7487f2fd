"""When nights should begin, read as cron and systemd read it, and found where it stands."""

from __future__ import annotations

import datetime
import os
import zoneinfo
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.schedule.schedule import Schedule, find_started, parse_cron, runs_nights
from dashboard.schedule.watch import watch
from tests.dashboard.homes import HomeForTests, make_home, script
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, INTERRUPTED, RUNNING, Home, Night
from tvmdash.errors import DashboardError

UTC = datetime.UTC


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "now", "latest"),
    [
        ("0 3 * * *", "2026-11-23 02:59", "2026-11-22 03:00"),
        ("0 3 * * *", "2026-11-23 03:00", "2026-11-23 03:00"),
        ("@daily", "2026-11-23 12:00", "2026-11-23 00:00"),
        ("*/20 1-3,22 * * *", "2026-11-23 21:59", "2026-11-23 03:40"),
        ("10-50/20 4 * * *", "2026-11-23 04:40", "2026-11-23 04:30"),
        ("0 3 * * mon-fri", "2026-11-22 12:00", "2026-11-20 03:00"),  # a Sunday
        ("0 3 * * 7", "2026-11-23 12:00", "2026-11-22 03:00"),
        ("0 3 13 * fri", "2026-11-19 12:00", "2026-11-13 03:00"),
        ("0 3 14 * fri", "2026-11-19 12:00", "2026-11-14 03:00"),  # either of the two is enough
        ("0 3 */2 * fri", "2026-11-19 12:00", "2026-11-13 03:00"),  # begins with *: both must hold
        ("0 0 29 FEB *", "2027-01-01 00:00", "2024-02-29 00:00"),
    ],
)
def test_the_last_time_of_a_cron_line(fields: str, now: str, latest: str) -> None:
    assert parse_cron(fields, UTC).find_latest(moment(now)) == moment(latest)


def test_times_of_a_zone_and_the_night_its_clocks_change() -> None:
    berlin = parse_cron("30 2 * * *", zoneinfo.ZoneInfo("Europe/Berlin"))
    assert berlin.find_latest(moment("2026-07-01 12:00")) == moment("2026-07-01 00:30")
    assert berlin.find_latest(moment("2026-12-01 12:00")) == moment("2026-12-01 01:30")
    assert berlin.find_latest(moment("2026-03-29 12:00")) == moment("2026-03-29 01:30")  # there is no 2:30
    assert berlin.find_latest(moment("2026-10-25 01:10")) == moment("2026-10-25 00:30")  # 2:10 for the second time


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("0 3 * *", "it has 4 fields instead of 5"),
        ("61 3 * * *", "Bad minute"),
        ("0 3 * * mo", "Bad day-of-week"),
        ("0 5-3 * * *", "Bad hour"),
        ("*/0 3 * * *", "Bad minute"),
        ("²  3 * * *", "Bad minute"),
        ("0 0 31 4 *", "Bad day-of-month"),
        ("@reboot", "it has 1 fields instead of 5"),
        ("0 3 L * *", "cron knows no 'L'"),
        ("0 3 * * fri#2", "cron knows no '#'"),
    ],
)
def test_what_is_no_time_of_cron_is_told(fields: str, said: str) -> None:
    with pytest.raises(DashboardError) as told:
        parse_cron(fields)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("/x/run_dashboard.sh {home}", True),
        ("cd /x && ./run_dashboard.sh {home}/ --seed 7 >/tmp/log 2>&1", True),
        ("$HOME/nightly/source/dashboard_job.sh --settings $HOME/nightly.conf", True),
        ("~/nightly/source/dashboard_job.sh --settings ~/nightly.conf", True),
        ("%h/nightly/source/dashboard_job.sh --settings nightly.conf", True),
        ("/x/dashboard_job.sh REMOTE=x FOLDER=/f DASHBOARD_HOME={home}", True),
        ("/x/bin/python3 -m dashboard run {home}", True),
        ("/x/bin/dashboard run '{home}'", True),
        ("/x/run_dashboard.sh --command run {home}", True),
        ("/x/run_dashboard.sh --command watch {home}", False),
        ("/x/bin/dashboard watch {home}", False),
        ("/x/run_dashboard.sh {home}2", False),
        ("/x/dashboard_job.sh --settings /nowhere.conf", False),
        ("tar czf '{home}", False),
    ],
)
def test_commands_that_run_nights_of_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, runs: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "nightly.conf").write_text(f"REMOTE=x\nDASHBOARD_HOME={tmp_path}/home\n")
    assert runs_nights(command.format(home=tmp_path / "home"), Home(tmp_path / "home")) is runs


def test_a_crontab_and_a_timer_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    lines = f"MAILTO=a@b\n# 0 1 * * * run_dashboard.sh {home}\nCRON_TZ=Asia/Tokyo\n0 3 * * * run_dashboard.sh {home}\n"
    script(tmp_path / "bin" / "crontab", f"#!/bin/sh\n[ \"$1\" = -l ] && cat <<'END'\n{lines}END\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    units = tmp_path / ".config" / "systemd" / "user"
    (units / "timers.target.wants").mkdir(parents=True)
    (units / "night.service").write_text(f"[Service]\nExecStart=/x/run_dashboard.sh \\\n  {home}\n")
    (units / "night.timer").write_text("[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar=Mon..Fri *-*-* 03:00\n")
    (units / "other.timer").write_text("[Timer]\nOnCalendar=daily\n")
    cron, timer = find_started(Home(home))
    assert cron.times.find_latest(moment("2026-11-23 12:00")) == moment("2026-11-22 18:00")
    assert str(timer) == f"Mon..Fri *-*-* 03:00 ({units}/night.timer)"
    assert not timer.is_enabled
    (units / "timers.target.wants" / "night.timer").symlink_to(units / "night.timer")
    assert [each.is_enabled for each in find_started(Home(home))] == [True, True]


def test_the_last_time_of_a_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    units, home = tmp_path / ".config" / "systemd" / "user", Home(tmp_path / "home")
    units.mkdir(parents=True)
    (units / "night.service").write_text(f"[Service]\nExecStart=/x/run_dashboard.sh {home.root}\n")
    for text, latest in (("Mon..Fri *-*-* 03:00", "2026-11-20 02:00"), ("*-01-01 03:00", "2026-01-01 02:00")):
        (units / "night.timer").write_text(f"[Timer]\nOnCalendar={text}\n")
        timer = next(each for each in find_started(home) if each.origin.startswith(str(tmp_path)))
        assert timer.times.find_latest(moment("2026-11-22 12:00")) == moment(latest)
    (units / "night.timer").write_text("[Timer]\nOnCalendar=whenever\n")
    timer = next(each for each in find_started(home) if each.origin.startswith(str(tmp_path)))
    with pytest.raises(DashboardError, match="OnCalendar=whenever: rejected by systemd"):
        timer.times.find_latest(moment("2026-11-22 12:00"))


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    return make_home(tmp_path, tmp_path / "artifacts")


def leave(home: HomeForTests, stamp: str, state: str = COMPLETE, elapsed_s: float = 3600.0) -> None:
    home.home.nights.mkdir(parents=True, exist_ok=True)
    common.write_json(home.home.night_file(stamp), Night(stamp, state, elapsed_s=elapsed_s).to_json())


SCHEDULE = Schedule(parse_cron("0 3 * * *", UTC), "test")


def is_quiet(home: HomeForTests, now: str) -> bool:
    return watch(home.home, SCHEDULE, moment(now), None).is_quiet


def test_a_night_is_waited_for_as_long_as_nights_take(home: HomeForTests) -> None:
    leave(home, "20261121T030004Z", elapsed_s=7200)
    leave(home, "20261122T030002Z")
    assert not is_quiet(home, "2026-11-23 06:59")  # three hours for the night of two, and one to spare
    assert is_quiet(home, "2026-11-23 07:00")
    leave(home, "20261123T030001Z", INTERRUPTED)
    assert is_quiet(home, "2026-11-23 07:00")
    leave(home, "20261123T093000Z")
    assert not is_quiet(home, "2026-11-23 10:00")


def test_nothing_was_due_before_the_schedule_was_there_or_the_first_night_began(home: HomeForTests) -> None:
    os.utime(home.home.config_file, (0, 0))
    assert is_quiet(home, "2026-11-23 16:00")
    since = replace(SCHEDULE, since=moment("2026-11-23 15:56"))
    assert not watch(home.home, since, moment("2026-11-23 16:00"), None).is_quiet
    leave(home, "20261124T030002Z", RUNNING)
    now = moment("2026-11-24 03:20")
    assert not watch(home.home, SCHEDULE, now, None, is_running=True).is_quiet, "the first night runs"
    assert watch(home.home, SCHEDULE, moment("2026-11-25 16:00"), None, is_running=True).is_quiet


def test_a_night_that_broke_off_is_told_at_once_and_one_that_ended_itself_when_it_is_due(home: HomeForTests) -> None:
    leave(home, "20261122T030002Z")
    leave(home, "20261123T030001Z", RUNNING)
    now = moment("2026-11-23 03:10")
    assert watch(home.home, SCHEDULE, now, None).is_broken_off
    assert not watch(home.home, SCHEDULE, now, None, is_running=True).is_quiet
    leave(home, "20261123T030001Z", INTERRUPTED)
    assert not watch(home.home, SCHEDULE, now, None).is_quiet
    leave(home, "20261123T040000Z")
    assert not watch(home.home, SCHEDULE, moment("2026-11-23 04:30"), None).is_broken_off


def test_a_night_dated_ahead_of_the_clock_does_not_hide_that_nights_stopped(home: HomeForTests) -> None:
    leave(home, "20261120T030000Z")
    leave(home, "20280101T030000Z")
    assert is_quiet(home, "2026-11-23 12:00")
    assert not is_quiet(home, "2026-11-20 12:00")
