"""How long a night will take, as `plan` says it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dashboard.night.deadlines import is_shortened
from tests.dashboard import homes


@pytest.fixture
def home(tmp_path: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tmp_path / "artifacts")


def states(home: homes.HomeForTests, **minutes: float) -> None:
    """Let the experiment's author say how long it takes."""
    (home.code / "experiments" / "cnn" / "fields.json").write_text(json.dumps({"takes_minutes": minutes}))


def measured(
    home: homes.HomeForTests,
    *,
    fingerprint: str,
    success: bool = True,
    stamp: str = "20260101T000000Z",
    seconds: float = 75,
    ended_by: str = "",
) -> None:
    """Write down a night of the experiment that took so long."""
    state = "ok" if success else "failed"
    step = {"state": state, "message": "", "stamp": stamp, "elapsed_s": seconds / 2}
    steps = [{"stage": name, **step} for name in ("run", "analyze")]
    job = {"kind": "experiment", "name": "cnn", "title": "", "description": "", "steps": steps}
    homes.write(
        home.home.night_file(stamp), {"stamp": stamp, "state": "complete", "jobs": [job], "notes": [], "artifacts": []}
    )
    points = {"records": [{"additional_info": {"ended_by": ended_by}}]} if ended_by else {}
    homes.write(home.home.data_file("cnn", stamp), {"value": 1, **points, "night": {"fingerprint": fingerprint}})


def fingerprint_now(home: homes.HomeForTests) -> str:
    from dashboard.night.setup_cache import fingerprint
    from dashboard.plan.job import CodeFolders
    from dashboard.plan.plan import make_plan

    (job,) = make_plan(home.home, CodeFolders(home.code / "experiments", home.code / "subsystem")).experiments
    return fingerprint(job.folder, job.config)


def plan_of(home: homes.HomeForTests) -> str:
    done = home.run(verb="plan")
    assert done.code == 0, done.output
    return done.output


def test_plan_goes_by_the_last_night_where_nothing_has_changed_since(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    states(home, nightly=6)
    measured(home, fingerprint=fingerprint_now(home))
    output = plan_of(home)
    assert "cnn (nightly): 1 min 15 s, as on 20260101T000000Z" in output
    assert "Together 1 min 15 s; without the time to get TVM." in output


@pytest.mark.parametrize(("same", "success"), [(False, True), (True, False)])
def test_a_changed_or_failed_experiment_is_estimated_by_its_authors_word(
    home: homes.HomeForTests, same: bool, success: bool
) -> None:
    home.experiment("cnn", config={"size": "smoke"})
    states(home, smoke=0.5, nightly=6)
    measured(home, fingerprint=fingerprint_now(home) if same else "000000000000", success=success)
    assert "cnn (smoke): 30 s, by its author with its defaults" in plan_of(home)


def test_a_config_that_allows_less_than_the_author_says_is_believed(home: homes.HomeForTests) -> None:
    home.experiment("cnn", config={"max_minutes": 2})
    fields = {"include": ["timing"], "takes_minutes": {"nightly": 60}}
    (home.code / "experiments" / "cnn" / "fields.json").write_text(json.dumps(fields))
    assert "cnn (nightly): 2 min, by its max_minutes" in plan_of(home)


def test_what_nobody_says_is_unknown_and_counted(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    home.subsystem("website")
    output = plan_of(home)
    assert "cnn (nightly): unknown" in output
    assert "Together unknown, and 2 of 2 jobs whose time is unknown" in output


@pytest.mark.parametrize("wrong", ['{"nigthly": 6}', '{"smoke": 0}', '{"smoke": "1"}', "3"])
def test_minutes_that_are_none_reject_the_experiment(home: homes.HomeForTests, wrong: str) -> None:
    home.experiment("cnn")
    (home.code / "experiments" / "cnn" / "fields.json").write_text(f'{{"takes_minutes": {wrong}}}')
    done = home.run(verb="plan")
    assert "Rejected: experiment cnn" in done.output
    assert "$.takes_minutes:" in done.output


def test_plan_goes_by_a_night_in_full_and_says_what_one_on_the_same_tvm_takes(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    now = fingerprint_now(home)
    measured(home, fingerprint=now, ended_by="interval")
    for day in (2, 3):
        measured(home, fingerprint=now, stamp=f"2026010{day}T000000Z", seconds=14, ended_by="unchanged")
    output = plan_of(home)
    told = "cnn (nightly): 1 min 15 s, as on 20260101T000000Z; 14 s where TVM is unchanged, as on 20260103T000000Z"
    assert told in output
    assert "Together 1 min 15 s; without the time to get TVM." in output


def test_plan_goes_by_a_short_night_where_no_other_is_known(home: homes.HomeForTests) -> None:
    home.experiment("cnn")
    measured(home, fingerprint="of another config")
    for day in (2, 3):
        measured(
            home, fingerprint=fingerprint_now(home), stamp=f"2026010{day}T000000Z", seconds=14, ended_by="unchanged"
        )
    assert "cnn (nightly): 14 s, as on 20260103T000000Z\n" in plan_of(home)


@pytest.mark.parametrize("records", [5, "x", {}, None, [5], [{"additional_info": 5}]])
def test_data_whose_records_are_none_is_of_no_shortened_night(records: object) -> None:
    assert not is_shortened({"records": records})
