"""`smoke`: one job through all its stages in a scratch home."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from dashboard.night import lock
from tests.dashboard import homes
from tvmdash.dashboard_info import Home


@pytest.fixture
def home(tmp_path: Path) -> homes.HomeForTests:
    """A home without TVM, and one experiment that needs none."""
    made = homes.make_home(tmp_path, tmp_path / "empty")
    homes.write(made.experiment("plain") / "fields.json", {"needs_tvm": False})
    return made


def scratch(home: homes.HomeForTests) -> Home:
    return Home(home.root / "scratch")


def files_below(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_all_stages_run_and_the_numbers_and_graphs_are_shown(home: homes.HomeForTests) -> None:
    before = files_below(home.path)
    done = home.smoke("plain", str(home.path))
    assert done.code == 0, done.output
    assert "experiment plain  ok        ok   ok       ok         ok" in done.output
    assert re.search(r"value \| 1\.50? +\|", done.output), done.output
    assert f"Graphs in {scratch(home).graph('plain')}: graph.svg" in done.output
    assert "of 2" in done.output, "the summary"
    assert files_below(home.path) == before, "the home that was named is as it was"


def test_it_is_small_and_otherwise_as_the_home_configures_it(home: homes.HomeForTests) -> None:
    config = {
        "title": "T",
        "size": "nightly",
        "nightly": {"title": "Big"},
        "active": False,
        "notify": ["U1"],
        "tvms": ["x"],
    }
    homes.write(home.experiment("plain", config=config) / "fields.json", {"needs_tvm": False})
    assert home.smoke("plain", str(home.path)).code == 0
    data = homes.read(scratch(home).data_file("plain", scratch(home).night_stamps()[0]))
    kept = {name: data["night"]["config"][name] for name in ("title", "size", "active", "notify")}
    assert kept == {"title": "T", "size": "smoke", "active": True, "notify": []}


def test_a_config_of_ones_own_takes_the_place_of_the_homes(home: homes.HomeForTests, tmp_path: Path) -> None:
    homes.write(tmp_path / "mine.json", {"title": "Mine"})
    assert home.smoke("plain", str(home.path), "--config", str(tmp_path / "mine.json")).code == 0
    data = homes.read(scratch(home).data_file("plain", scratch(home).night_stamps()[0]))
    assert data["night"]["config"]["title"] == "Mine"


def test_a_folder_can_be_named_that_no_home_knows(home: homes.HomeForTests) -> None:
    folder = home.code / "experiments" / "plain"
    folder = folder.rename(home.root / "elsewhere")
    done = home.smoke(f"{folder}", str(home.path))
    assert done.code == 0, done.output
    assert "experiment elsewhere  ok" in done.output


def test_a_subsystem_is_tried_in_a_night_of_its_own(home: homes.HomeForTests) -> None:
    report = """echo '{"title": "All well", "value": "Nothing moved."}' > "$2/report.json\""""
    home.subsystem("teller", run=homes.good("subsystem", report))
    for named in ("teller", f"{home.code}/subsystem/teller"):
        done = home.smoke(named, str(home.path))
        assert done.code == 0, done.output
        assert "subsystem teller  ok" in done.output
        assert "All well\nNothing moved." in done.output
        assert "index.html" in done.output
        shutil.rmtree(home.root / "scratch")


def test_a_stage_that_fails_is_said_and_is_exit_code_1(home: homes.HomeForTests) -> None:
    home.experiment(
        "plain", run=f"{homes.BEGIN}echo 'no compiler here'\n{homes.says('run', 'I cannot', success=False)}\n"
    )
    homes.write(home.code / "experiments" / "plain" / "fields.json", {"needs_tvm": False})
    done = home.smoke("plain", str(home.path))
    assert done.code == 1
    assert "run: I cannot" in done.output
    assert "no compiler here" in done.output


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("nothing", "nothing: no such experiment or subsystem"),
        ("./nothing", "nothing: no such folder"),
    ],
)
def test_what_is_not_there_cannot_be_tried(home: homes.HomeForTests, named: str, words: str) -> None:
    done = home.smoke(named, str(home.path))
    assert done.code == 2
    assert words in done.output


def test_it_needs_no_quiet_machine_and_says_what_its_times_are(home: homes.HomeForTests, tmp_path: Path) -> None:
    measuring = lock.hold_machine(Home(tmp_path / "other"), 0)
    assert measuring is not None
    with measuring:
        done = home.smoke("plain", str(home.path))
    assert done.code == 0, done.output
    assert "The times are no measurements: sizes are small, and a smoke test does not wait" in done.output


def test_a_scratch_home_is_new_and_no_night_is_disturbed(home: homes.HomeForTests) -> None:
    with lock.night_lock(home.home):
        assert home.smoke("plain", str(home.path)).code == 75
    assert not scratch(home).root.exists()
    scratch(home).root.mkdir()
    done = home.smoke("plain", str(home.path))
    assert done.code == 2
    assert "already exists" in done.output
