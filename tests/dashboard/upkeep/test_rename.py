"""An experiment or a workload under another name: its series go on, with their IDs and all they had measured."""

from __future__ import annotations

import datetime
import json
import os
from pathlib import Path

import pytest

from dashboard.cli.main import main
from tests.dashboard.homes import HomeForTests, make_home, write
from tests.subsystem.stat_alerts.alert_homes import AlertHome, Truth, stamp_of
from tvmdash.dashboard_info import Home
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


def make_imported_home(tmp_path: Path, *names: str) -> Home:
    """A home with a night of Google Benchmark a day: of each name in turn, 20 of 1 us and 20 of 1.3 us."""
    home = Home(tmp_path / "home")
    write(home.config_file, {})
    home.machine_file.parent.mkdir()
    identity.write(home.machine_file, MachineIdentity("sample", stamp_of(0), None, "AMD EPYC x 2"))
    for day in range(40):
        name, took = names[day * len(names) // 40], (1 if day < 20 else 1.3) + day % 5 * 0.001
        row = {"name": name, "run_type": "iteration", "threads": 1, "real_time": took, "time_unit": "us"}
        date = datetime.datetime(2026, 8, 1, 3, tzinfo=datetime.UTC) + datetime.timedelta(days=day)
        context = {"date": date.isoformat(), "host_name": "box", "executable": "./bm"}
        write(tmp_path / "nights" / f"{day:02}.json", {"context": context, "benchmarks": [row]})
    assert main(["import", str(home.root), str(tmp_path / "nights")]) == 0
    return home


def read_imported(home: Home, experiment: str) -> list[tuple[str, str, int]]:
    """The ID, workload and number of points of each of its series."""
    with store.open_for_reading(None, home.data(experiment), experiment) as opened:
        return [(each.id, each.labels["workload"], len(each.stamps)) for each in opened.series(experiment)]


def test_imported_series_keep_their_ids_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = make_imported_home(tmp_path, "BM_a", "BM_alpha")
    (old, *_), _ = read_imported(home, "bm")
    memory = home.output("stat_alerts") / "state.json"
    write(memory, {})
    words = ["google_benchmark.BM_a", "google_benchmark.BM_alpha"]
    assert main(["rename", str(home.root), "workload", *words]) == 0
    assert read_imported(home, "bm") == [(old, "google_benchmark.BM_alpha", 40)]
    assert not memory.exists(), "no night has judged the two histories as one"
    assert main(["rename", str(home.root), "experiment", "bm", "bench"]) == 0
    assert read_imported(home, "bench") == [(old, "google_benchmark.BM_alpha", 40)]
    capsys.readouterr()
    main(["import", str(home.root), str(tmp_path / "nights")])
    assert "0 nights taken, 40 already imported" in capsys.readouterr().out
    assert home.experiments_with_data() == ["bench"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ("google_benchmark.BM_b", "x", "no workload 'google_benchmark.BM_b'. Did you mean 'google_benchmark.BM_a'?"),
        ("nothing", "x", "has no workload 'nothing'. Its workloads: google_benchmark.BM_a."),
        ("google_benchmark.BM_a", "google_benchmark.BM_c", "bm measured both names in the night 20260801T030000Z"),
    ],
)
def test_a_workload_that_cannot_be_renamed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: str, now: str, said: str
) -> None:
    home = make_imported_home(tmp_path, "BM_a")
    if now != "x":
        path = home.data_file("bm", "20260801T030000Z")
        value = json.loads(path.read_text())
        value["records"].append({**value["records"][0], "workload": now})
        write(path, value)
    assert main(["rename", str(home.root), "workload", before, now]) == 2
    assert said in capsys.readouterr().err
    kept = home.machine()
    assert kept is not None
    assert kept.renames == ()


def test_names_of_hosts_and_tvms_stay_behind_the_experiment_s() -> None:
    renames = (
        Rename(RenameKind.EXPERIMENT, "a", "b", "", ""),
        Rename(RenameKind.EXPERIMENT, "b", "c", "", ""),
    )
    machine = MachineIdentity("m", stamp_of(0), None, "x", renames=renames)
    assert machine.experiment_of_id("c~desk@release") == "a~desk@release"
    assert machine.experiment_of_id("other") == "other"
