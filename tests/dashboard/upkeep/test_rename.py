"""An experiment or a workload under another name: its series go on, with their IDs and all they had measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dashboard.cli.main import main
from tests.dashboard.homes import HomeForTests, make_home, write
from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tvmdash.machine import identity
from tvmdash.machine.identity import MachineIdentity, Rename, RenameKind
from tvmdash.records import data_stamps
from tvmdash.series import store
from tvmdash.series.store import Series


@pytest.fixture
def home(tmp_path: Path) -> HomeForTests:
    made = make_home(tmp_path, tmp_path / "artifacts", schedule="0 0 1 1 *")
    write(made.experiment("good") / "fields.json", {"needs_tvm": False})
    return made


def rename_code(home: HomeForTests, before: str, now: str) -> None:
    os.rename(home.code / "experiments" / before, home.code / "experiments" / now)


def series_of(home: HomeForTests, experiment: str) -> list[Series]:
    with store.open_for_reading(home.home.store_file, home.home.data(experiment), experiment) as opened:
        return opened.series(experiment)


def test_an_experiment_goes_on_under_another_name(home: HomeForTests) -> None:
    home.night()
    (before,) = series_of(home, "good")
    rename_code(home, "good", "better")
    done = home.run("experiment", "good", "better", "it is", "--who", "ann", verb="rename")
    assert done.code == 0, done.output
    assert done.output.splitlines()[-1] == ("experiment good is now called better; its series keep their IDs.")
    home.night()
    (now,) = series_of(home, "better")
    assert (now.id, now.experiment, len(now.stamps)) == (before.id, "better", 2)
    assert not home.home.data("good").exists()
    assert home.last()["machine"]["renames"][0]["why"] == "it is"
    doctor = home.run(verb="doctor").output
    assert "FAULT" not in doctor
    rename_code(home, "better", "best")
    home.run("experiment", "better", "best", verb="rename")
    home.night()
    (last,) = series_of(home, "best")
    assert (last.id, len(last.stamps)) == (before.id, 3)


def test_patterns_that_are_still_of_the_old_name_are_told(home: HomeForTests) -> None:
    home.configure(
        owners=[
            {"experiment": "goo*", "email": ["ada@example.org"]},
            {"experiment": "*", "email": ["bob@example.org"]},
            {"series": "good *", "email": ["eve@example.org"]},
        ]
    )
    home.night()
    assert home.run("good", "noisy", verb="mute").code == 0
    done = home.run("experiment", "good", "better", verb="rename")
    assert done.code == 0, done.output
    left = done.output.splitlines()[-3:]
    assert left[0] == (
        f"{home.home.config_file}: $.owners[0].experiment: 'goo*' still refers to good. Change it to better."
    )
    assert left[1] == (
        f"{home.home.config_file}: $.owners[2].series: 'good *' still refers to good. Change it to better."
    )
    assert left[2] == "'good' names only good. Run unmute for it, then repeat it with better."
    done = home.run("experiment", "better", "best", verb="rename")
    assert "still refers to" not in done.output


def test_a_name_that_ran_already_takes_the_history_in(home: HomeForTests) -> None:
    home.night()
    (before,) = series_of(home, "good")
    rename_code(home, "good", "better")
    os.rename(home.home.config("experiment", "good"), home.home.config("experiment", "better"))
    home.night()
    assert home.run("experiment", "good", "better", verb="rename").code == 0
    home.night()
    (now,) = series_of(home, "better")
    assert (now.id, len(now.stamps)) == (before.id, 3)


def test_two_experiments_are_not_made_one(home: HomeForTests) -> None:
    write(home.experiment("other") / "fields.json", {"needs_tvm": False})
    home.night()
    done = home.run("experiment", "good", "other", verb="rename")
    assert done.code == 2
    assert "so these are two different experiments" in done.output
    assert len(data_stamps(home.home.data("good"))) == 1
    assert home.home.machine() is not None
    assert home.night()["machine"]["renames"] == []


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("nobody", "better", "this home has no experiment 'nobody'"),
        ("good", "../x", "'../x' is not a valid experiment name"),
        ("good", "good", "'good' is already its name"),
    ],
)
def test_what_cannot_be_renamed_is_told(home: HomeForTests, before: str, now: str, said: str) -> None:
    home.night()
    done = home.run("experiment", before, now, verb="rename")
    assert done.code == 2
    assert said in done.output


def test_a_workload_goes_on_under_another_name(tmp_path: Path) -> None:
    truth = Truth(workloads=("mlp", "dqn"), nights=4)
    home = AlertHome(tmp_path).fill(truth, stop=2)
    write(home.home.config_file, {})
    identity.write(home.home.machine_file, MachineIdentity("sample", stamp_of(0), None, "AMD EPYC x 2"))

    def ids() -> dict[str, tuple[str, int]]:
        folder = home.home.data("relax_opt")
        with store.open_for_reading(home.home.store_file, folder, "relax_opt") as opened:
            found = opened.series("relax_opt", "run_time")
        names = [f"{each.labels['workload']} {each.labels['build_config']}" for each in found]
        return {name: (each.id, len(each.stamps)) for name, each in zip(names, found, strict=True)}

    before = ids()
    assert main(["rename", str(home.home.root), "workload", "network.dqn", "network.deep_q", "its paper's name"]) == 0
    now = ids()
    assert {name.replace("deep_q", "dqn"): known for name, known in now.items()} == before
    assert any("deep_q" in name for name in now)
    newest = home.home.data_file("relax_opt", stamp_of(1))
    later = newest.with_name(f"data_{stamp_of(2)}.json")
    later.write_text(newest.read_text().replace("network.dqn", "network.deep_q").replace(stamp_of(1), stamp_of(2)))
    after = ids()
    assert {name: known[0] for name, known in after.items()} == {name: known[0] for name, known in now.items()}
    assert {known[1] for known in after.values()} == {3}


def test_names_of_hosts_and_tvms_stay_behind_the_experiment_s() -> None:
    renames = (
        Rename(RenameKind.EXPERIMENT, "a", "b", "", ""),
        Rename(RenameKind.EXPERIMENT, "b", "c", "", ""),
    )
    machine = MachineIdentity("m", stamp_of(0), None, "x", renames=renames)
    assert machine.experiment_of_id("c~desk@release") == "a~desk@release"
    assert machine.experiment_of_id("other") == "other"
