"""A retired experiment is in no night: neither run nor missed, whether its code is there or not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dashboard.homes import HomeForTests, make_home, write


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts")
    for name in ("good", "old"):
        write(made.experiment(name) / "fields.json", {"needs_tvm": False})
    return made


def test_a_retired_experiment_is_not_run_and_a_night_says_nothing_of_it(home: HomeForTests) -> None:
    done = home.run("old", "merged into good", "--who", "ann", verb="retire")
    assert done.output.startswith("Retired: experiment old.")
    assert [job["name"] for job in home.night()["jobs"]] == ["good"]
    assert "Not active: experiment old (retired)" in home.run(verb="plan").output
    home.run("old", verb="unretire")
    assert sorted(job["name"] for job in home.night()["jobs"]) == ["good", "old"]


def test_a_retired_experiment_whose_code_is_gone_fails_no_night(home: HomeForTests) -> None:
    shutil.rmtree(home.code / "experiments" / "old")
    assert home.run().code == 1
    home.run("old", "its folder is gone", verb="retire")
    home.night()


def test_series_that_are_retired_leave_their_experiment_in_the_night(home: HomeForTests) -> None:
    home.night()
    assert home.run("good $.v*", "one number of it", verb="retire").code == 0
    assert sorted(job["name"] for job in home.night()["jobs"]) == ["good", "old"]


def test_what_an_older_config_says_of_what_is_gone_has_no_effect_and_is_told(home: HomeForTests) -> None:
    home.configure(bisect_when_idle=True)
    write(home.home.config("subsystem", "history_check") / "config.json", {"active": True, "points": 2})
    for verb in ("plan", "check"):
        told = home.run(verb=verb).output
        assert f"{home.home.config_file}: $.bisect_when_idle has no effect any more. " in told
        assert "there is no subsystem history_check any more. " in told
    assert [job["name"] for job in home.night()["jobs"]] == ["good", "old"]
    home.subsystem("history_check")
    assert "history_check" in {job["name"] for job in home.night()["jobs"]}
    assert "no subsystem history_check" not in home.run(verb="plan").output
