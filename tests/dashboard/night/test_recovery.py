"""What is taken of a night that was killed while it measured: whole runs whole, half runs as what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard import homes
from tvmdash import records

SOURCE = """
import os, sys, time
from pathlib import Path
from tvmdash.exp_templates import Axis, Engine, EngineFacts, Experiment, Point, Prepared
from tvmdash.trial_util import python_timer

class Toy(Experiment):
    engines = (Engine("python", facts=lambda: EngineFacts("3", tvm_hash="abc123")),)
    axes = (Axis("size", "workload_args"), Axis("threads", "runtime_config"))

    def points(self, config):
        return [Point("toy.sum", {"size": n, "threads": 1}, group=str(n), target="cpu", engine="python")
                for n in (10, 20, 30)]

    def prepare(self, point, config, seed):
        folder = Path(config["env"]["FOLDER"])
        (folder / f"begun-{time.time_ns()}").touch()
        if len(list(folder.glob("begun-*"))) == int((folder / "hangs").read_text()):
            (folder / "waits").touch()
            time.sleep(1000)
        data = list(range(point.values["size"]))
        return Prepared(timer=python_timer(lambda: sum(data)))

if __name__ == "__main__":
    sys.exit(Toy().main())
"""
TIMING = {"number": 1, "repeat": 3, "processes": 2, "max_processes": 2}


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    return homes.make_home(tmp_path, tvm_artifact_folder)


def add_toy(home: homes.HomeForTests, hangs_at: int) -> None:
    """An experiment of three points, each measured in two processes, of which the given one never ends."""
    scripts = {stage: f'#!/bin/sh\nexec python3 toy.py {stage} "$@"\n' for stage in ("run", "analyze")}
    folder = home.experiment("toy", config={**TIMING, "env": {"FOLDER": str(home.root)}}, **scripts)
    (folder / "toy.py").write_text(SOURCE)
    (folder / "fields.json").write_text('{"include": ["timing"]}')
    (home.root / "hangs").write_text(str(hangs_at))


def killed_night(home: homes.HomeForTests) -> str:
    """The stamp of a night that was killed when its stage had left the file `waits`."""
    with homes.killed_at_end(home.start()) as night:
        homes.wait_for((home.root / "waits").exists, "the stage waits")
        night.kill()
        night.wait()
    homes.wait_for(lambda: home.processes() == [], "the watchdog ends what the night left")
    return home.stamps()[-1]


def next_night(home: homes.HomeForTests) -> dict[str, Any]:
    home.subsystem("website")
    return home.night()


@pytest.mark.parametrize(("hangs_at", "measured"), [(3, 2), (5, 3)])
def test_of_a_run_that_was_killed_the_finished_points_are_kept_as_partial_data(
    home: homes.HomeForTests, hangs_at: int, measured: int
) -> None:
    add_toy(home, hangs_at)
    killed = killed_night(home)
    homes.write(home.home.config("experiment", "toy") / "config.json", {"active": False})
    noted = next_night(home)["notes"]
    data = homes.read(home.home.data_file("toy", killed))
    assert data["night"]["partial"] is True
    records.check_data(data)
    assert (len(data["records"]), len(data["failures"])) == (measured, 3 - measured)
    assert all(failure["error"].startswith("not started: the run was stopped earlier") for failure in data["failures"])
    ends = {record["additional_info"]["ended_by"] for record in data["records"]}
    assert ends <= {"the run was ended in the middle", "max_processes", "interval"}
    (partial,) = home.home.read_night(killed).partial
    assert (partial.experiment, partial.measured, partial.planned) == ("toy", measured, 3)
    assert any(f"partial measurements of toy ({measured} of 3 points)" in note for note in noted)


def test_numbers_of_a_foreign_run_that_was_killed_are_not_published(home: homes.HomeForTests) -> None:
    half = f"{homes.BEGIN}{homes.WORK['run']}\ntouch '{home.root}/waits'\nsleep 1000\n"
    home.experiment("a-whole")
    home.experiment("foreign", run=half)
    killed = killed_night(home)
    home.experiment("foreign")
    noted = next_night(home)["notes"]
    assert home.home.data_stamps("foreign") == home.stamps()[1:]
    assert home.home.data_stamps("a-whole") == home.stamps()
    assert home.home.read_night(killed).partial == ()
    assert any("published nothing of foreign, interrupted during the run" in note for note in noted)
    assert (home.root / "tmp" / "raw" / "foreign" / f"raw_{killed}.zip").is_file(), "its raw files are kept"


def test_records_that_a_killed_foreign_run_would_make_are_not_published(home: homes.HomeForTests) -> None:
    empty = json.dumps({"schema_version": 1, "tvm_hash": "x", "records": []})
    analyze = f"{homes.BEGIN}printf '%s' '{empty}' > $3/data.json\n{homes.says('analyze')}\n"
    half = f"{homes.BEGIN}{homes.WORK['run']}\ntouch '{home.root}/waits'\nsleep 1000\n"
    home.experiment("foreign", run=half, analyze=analyze)
    killed_night(home)
    home.experiment("foreign", analyze=analyze)
    next_night(home)
    assert home.home.data_stamps("foreign") == home.stamps()[1:]


def test_a_run_that_had_said_it_went_well_is_whole_though_the_night_had_not_written_it(
    home: homes.HomeForTests,
) -> None:
    ended = f"{homes.BEGIN}{homes.WORK['run']}\n{homes.says('run')}\ntouch '{home.root}/waits'\nsleep 1000\n"
    home.experiment("foreign", run=ended)
    killed = killed_night(home)
    home.experiment("foreign")
    noted = next_night(home)["notes"]
    data = homes.read(home.home.data_file("foreign", killed))
    assert (data["value"], "partial" in data["night"]) == (1.5, False)
    assert any("saved its measurements of foreign" in note for note in noted)


def test_a_run_that_had_said_it_failed_is_not_saved(home: homes.HomeForTests) -> None:
    says = homes.says("run", "wrong answer", success=False)
    failed = f"{homes.BEGIN}{homes.WORK['run']}\n{says}\ntouch '{home.root}/waits'\nsleep 1000\n"
    home.experiment("foreign", run=failed)
    killed_night(home)
    home.experiment("foreign")
    next_night(home)
    assert home.home.data_stamps("foreign") == home.stamps()[1:]
