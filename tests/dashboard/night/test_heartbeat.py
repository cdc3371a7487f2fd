"""Nights that tell a dead man's switch of their begin and end, by a server that checks everything."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.night import heartbeat
from tests.dashboard.homes import BEGIN, HomeForTests, good, killed_at_end, make_home, wait_for
from tests.heartbeat import server
from tests.heartbeat.server import CHECK, MONITOR, State

SECRET = "xoxb-1234567890-abcdefghijkl"


@pytest.fixture
def state() -> Iterator[State]:
    with server.switch() as started:
        yield started
    assert not started.violations


@pytest.fixture
def home(tmp_path: Path, state: State) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts", heartbeat_url=state.url)
    made.subsystem()
    return made


def test_a_good_night_tells_its_start_and_its_end_under_one_id(home: HomeForTests, state: State) -> None:
    home.night()
    home.night()
    assert state.events == ["start", "success"] * 2
    assert len({ping.run for ping in state.pings}) == 2


def test_a_job_that_failed_is_told_with_the_end_of_its_log_and_no_secret(home: HomeForTests, state: State) -> None:
    lines = f"seq 3000\necho 'the token is {SECRET}'\necho the last line\nexit 3\n"
    home.subsystem("broken", run=f"{BEGIN}{lines}")
    assert home.run().code == 1
    started, failed = state.pings
    assert (failed.event, failed.run) == ("fail", started.run)
    assert f"Run {home.stamps()[-1]}" in failed.text
    assert "subsystem broken FAILED: run: run.sh exited with status 3" in failed.text
    assert failed.text.rstrip().endswith("the last line")
    assert SECRET not in failed.text


def test_a_config_that_cannot_be_used_is_told_though_no_night_began(home: HomeForTests, state: State) -> None:
    home.configure(randomise=True)
    assert home.run().code == 2
    (failed,) = state.pings
    assert (failed.event, failed.run) == ("fail", "")
    assert "$.randomise" in failed.text


def test_an_interrupted_night_is_told(home: HomeForTests, state: State) -> None:
    home.subsystem("slow", run=f'{BEGIN}touch "$2/began"\nsleep 600\n')
    began = home.home.output("slow") / "began"
    with killed_at_end(home.start()) as night:
        wait_for(began.exists, "the stage begins")
        night.send_signal(signal.SIGTERM)
        assert night.wait(60) == 130
    assert state.events == ["start", "fail"]
    assert "was interrupted" in state.pings[-1].text


def test_a_night_that_finds_another_in_its_home_tells_nothing(home: HomeForTests, state: State) -> None:
    home.subsystem("slow", run=f'{BEGIN}touch "$2/began"\nsleep 600\n')
    with killed_at_end(home.start()):
        wait_for((home.home.output("slow") / "began").exists, "the stage begins")
        assert home.run().code == 75
        assert state.events == ["start"]


@pytest.mark.parametrize("faults", [[500, 503], [0]], ids=["it had an internal error", "it does not answer"])
def test_what_fails_for_a_moment_is_told_again(
    state: State, faults: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "_REQUEST_S", 0.5)
    monkeypatch.setattr(heartbeat, "_PAUSE_S", 0.01)
    beat = heartbeat.Heartbeat(state.url, home="/home")
    state.faults += faults
    beat.start("20261121T030000Z")
    assert state.events == ["start"]


@pytest.mark.parametrize("status", [404, 302, 200])
def test_an_answer_that_will_not_change_is_not_asked_for_again(
    state: State, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    state.faults.append(status)
    heartbeat.Heartbeat(state.url, home="/home").start("20261121T030000Z")
    assert state.requests == 1
    said = [record.getMessage() for record in caplog.records]
    assert said == (
        [] if status == 200 else [f"heartbeat_url: the host answered {status}. The night itself is not affected."]
    )


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/dead", "http://[", "nonsense", "http://127.0.0.1:99999/"])
def test_a_switch_that_is_not_there_costs_the_night_nothing(home: HomeForTests, state: State, url: str) -> None:
    home.configure(heartbeat_url=url)
    done = home.run()
    assert done.code == 0
    assert "heartbeat_url: the " in done.output
    assert not state.pings


def test_a_switch_that_hangs_delays_the_night_by_a_bound(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "_START_S", 0.3)
    state.faults += [0] * 50
    heartbeat.Heartbeat(state.url, home="/home").start("20261121T030000Z")  # returns: nothing answers
    assert not state.pings


def test_cronitor_is_told_by_parameters(home: HomeForTests, state: State) -> None:
    home.configure(heartbeat_url=state.url.replace(CHECK, MONITOR), heartbeat_style="cronitor")
    home.night()
    home.subsystem("broken", run=f"{BEGIN}exit 3\n")
    assert home.run().code == 1
    assert state.events == ["start", "success", "start", "fail"]
    assert "broken FAILED" in state.pings[-1].text


def test_cronitor_is_known_by_its_host() -> None:
    address = "https://cronitor.link/p/KEY/nightly?env=prod"
    made = heartbeat.make_address(address, heartbeat.HeartbeatStyle.AUTO, ("/start", "run"), "id")
    assert made == "https://cronitor.link/p/KEY/nightly?env=prod&state=run&series=id"
    other = heartbeat.make_address("https://evilcronitor.link/x", heartbeat.HeartbeatStyle.AUTO, ("/start", "run"), "")
    assert other == "https://evilcronitor.link/x/start"


def test_a_long_text_keeps_its_begin_and_its_end(home: HomeForTests, state: State) -> None:
    beat = heartbeat.open_heartbeat(home.home)
    beat.start("20261121T030000Z")
    beat.fail("first\n" + "ä" * 20_000 + "\nlast")
    assert state.pings[-1].text.startswith("first\n")
    assert state.pings[-1].text.endswith("ä\nlast")


def test_the_address_is_in_no_log_and_no_result(home: HomeForTests, state: State) -> None:
    home.subsystem("good", run=good("subsystem"))
    state.faults += [404] * 2
    done = home.run()
    assert "answered 404" in done.output
    assert CHECK not in done.output
    left = [path for path in (home.path / "results").rglob("*") if path.is_file()]
    assert not [path for path in left if CHECK.encode() in path.read_bytes()]
    assert json.loads(home.home.config_file.read_text())["heartbeat_url"].endswith(CHECK)
