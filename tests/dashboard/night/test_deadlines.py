"""How long a stage may take is learned from nights that were alike, between a floor and a cap, below the config."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dashboard.night.deadlines import CAP_TIMES, FLOOR_S, NightDeadlines
from dashboard.plan.home_config import read_home_config
from dashboard.plan.job import Job
from tests.dashboard.homes import BEGIN, HomeForTests, good, killed_at_end, make_home, wait_for, write
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, FAILED, OK, JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import pipeline

RUN = pipeline("experiment").stage("run")
NOW = "a" * 16


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    return make_home(tmp_path, tmp_path / "artifacts")


def leave(
    home: HomeForTests, day: int, elapsed_s: float, *, state: str = OK, made: str = NOW, ended_by: str = ""
) -> None:
    """A night whose run took so long."""
    stamp = f"202611{day:02d}T030000Z"
    job = JobResult("experiment", "cnn", "cnn", "", (StepResult("run", state, "", stamp, elapsed_s),))
    home.home.nights.mkdir(parents=True, exist_ok=True)
    common.write_json(home.home.night_file(stamp), Night(stamp, COMPLETE, jobs=(job,)).to_json())
    info = {"additional_info": {"ended_by": ended_by}} if ended_by else {}
    data = {"timestamp": stamp, "records": [info], "night": {"stamp": stamp, "fingerprint": made}}
    home.home.data("cnn").mkdir(parents=True, exist_ok=True)
    write(home.home.data_file("cnn", stamp), data)


def test_deadlines_keep_little_of_the_nights_that_they_are_learned_from(home: HomeForTests) -> None:
    """Fifteen nights of 2,000 jobs once filled most of 605 MB."""
    home.home.nights.mkdir(parents=True)
    steps = [StepResult(stage.name, OK, f"{stage.name} went well", "x", 1.5) for stage in pipeline("experiment").stages]
    jobs = tuple(JobResult("experiment", f"e{index}", "title", "", tuple(steps)) for index in range(300))
    for day in range(1, 11):
        stamp = f"202611{day:02d}T030000Z"
        common.write_json(home.home.night_file(stamp), Night(stamp, COMPLETE, jobs=jobs).to_json())
    find(home)  # what is loaded at the first use is not counted
    deadlines = NightDeadlines(home.home, read_home_config(home.home))
    tracemalloc.start()
    deadlines.find(Job("experiment", "e1", home.code, home.code, {}, None), RUN, NOW)
    kept_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept_bytes / (10 * len(jobs) * len(steps)) < 150


def find(home: HomeForTests, **config: Any) -> tuple[int, float | None]:
    job = Job("experiment", "cnn", home.code, home.code, config, None)
    deadline = NightDeadlines(home.home, read_home_config(home.home)).find(job, RUN, NOW)
    return deadline.seconds, deadline.usual_s


@pytest.mark.parametrize(
    ("seconds", "learned"),
    [
        ([1000.0, 900.0, 1100.0, 1000.0, 990.0], 4400),
        ([10.0] * 5, FLOOR_S),
        ([9000.0] * 5, RUN.timeout_s * CAP_TIMES),
        ([1000.0] * 4, RUN.timeout_s),
        ([5000.0] + [1000.0] * 15, 4000),
    ],
    ids=["four times the longest", "the floor", "the cap", "too few nights", "the last nights alone"],
)
def test_a_deadline_is_learned_of_the_nights_before(home: HomeForTests, seconds: list[float], learned: int) -> None:
    for day, elapsed_s in enumerate(seconds, start=1):
        leave(home, day, elapsed_s)
    assert find(home)[0] == learned


def test_what_a_config_says_stands_above_it(home: HomeForTests) -> None:
    for day in range(1, 7):
        leave(home, day, 1000.0)
    assert find(home, timeouts={"run": 33}) == (33, 1000.0)
    home.configure(timeouts={"run": 77})
    assert find(home) == (77, 1000.0)
    assert find(home, timeouts={"run": 33}) == (33, 1000.0)


@pytest.mark.parametrize(
    "facts",
    [{"state": FAILED}, {"made": "b" * 16}, {"ended_by": "unchanged"}],
    ids=["failed", "other code", "less to measure"],
)
def test_nights_that_were_not_alike_do_not_count(home: HomeForTests, facts: dict[str, str]) -> None:
    for day in range(1, 6):
        leave(home, day, 1000.0)
    for day in range(6, 10):
        leave(home, day, 20.0, **facts)
    assert find(home) == (4000, 1000.0)


def test_a_stage_that_is_stuck_is_told_with_what_it_usually_takes(home: HomeForTests) -> None:
    stuck = home.root / "stuck"
    run = good("run", f'if [ -e "{stuck}" ]; then touch "{stuck}.begun"; sleep 600; fi')
    write(home.experiment("cnn", run=run) / "fields.json", {"needs_tvm": False})
    for _ in range(5):
        home.night()
    assert ", usually " in home.run(verb="plan").output
    stuck.touch()
    home.configure(timeouts={"run": 2})
    with killed_at_end(home.start()) as night:
        wait_for(Path(f"{stuck}.begun").exists, "the stage begins")
        assert "Now: experiment cnn, run, since " in (said := home.run(verb="status").output)
        assert "UTC. Usual duration: " in said
        output = night.communicate(timeout=300)[0]
    assert "run.sh timed out after 2 s and was stopped. Usual duration: " in output
    assert "(longest of 5 nights: " in output


def test_a_home_without_nights_has_the_protocol_s_deadlines(home: HomeForTests) -> None:
    home.subsystem("page", run=f"{BEGIN}exit 0\n")
    assert find(home) == (RUN.timeout_s, None)


def test_a_record_with_an_impossible_duration_stops_no_night(home: HomeForTests) -> None:
    for day in range(1, 7):
        leave(home, day, 1e308)
    assert find(home)[0] == RUN.timeout_s * CAP_TIMES
