"""The subsystem that tells routes: as a night runs it, and as `check` asks it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.subsystem import slack_homes
from tests.tvmdash.notify.route_homes import NIGHTS, RouteHome
from tests.webhook import server
from tests.webhook.server import SECRET, Fault, State
from tvmdash.dashboard_info import Night

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def state() -> Iterator[State]:
    with server.webhook() as started:
        yield started
    assert not started.violations


@pytest.fixture
def home(tmp_path: Path, state: State) -> RouteHome:
    made = RouteHome(tmp_path)
    made.routes["hook"] = {"kind": "webhook", "url": state.url, "secret_file": made.secret("hook", SECRET)}
    made.configure()
    return made


def run(home: RouteHome) -> slack_homes.Done:
    return slack_homes.SlackHome(home.root).run("routes", Night(NIGHTS[10], "running"))


def test_a_night_tells_its_routes(home: RouteHome, state: State) -> None:
    home.opens(10)
    done = slack_homes.SlackHome(home.root).run_script("routes", Night(NIGHTS[10], "running"), priority=80)
    assert (done.success, done.message, done.report) == (True, "Every route works", "hook: 1 message sent.")
    assert [body["event"] for body in state.bodies] == ["opened"]
    assert SECRET not in done.log


def test_a_route_that_fails_is_told_and_fails_nothing(home: RouteHome, state: State) -> None:
    state.faults.append(Fault(status=403))
    home.opens(10)
    done = run(home)
    assert (done.code, done.success, done.message) == (0, True, "1 of 1 routes failed")
    assert done.report == (
        "Route hook (webhook) does not work: its server rejected the request (403). "
        "1 message will be tried again the next night."
    )


def test_without_routes_there_is_nothing_to_tell(home: RouteHome) -> None:
    home.routes.clear()
    home.configure()
    assert run(home).message == "done, nothing to report"


def test_a_fault_in_the_config_fails_this_job_with_its_place_and_check_finds_it(home: RouteHome) -> None:
    home.owners = [{"routes": ["hok"]}]
    home.configure()
    done = run(home)
    fault = f"{home.home.config_file}: $.owners[0].routes[0]: unknown route 'hok'. Did you mean 'hook'?"
    assert (done.success, fault in done.message) == (False, True)
    said = subprocess.run(
        [REPO / "subsystem/routes/check.sh", home.home.config("subsystem", "routes"), home.home.root],
        cwd=REPO / "subsystem/routes", capture_output=True, text=True, check=True,
        env=slack_homes.SlackHome(home.root)._environment(NIGHTS[10], ""),
    )  # fmt: skip
    assert said.stdout.splitlines() == [fault]
