"""Every command that measures two TVMs leaves one format, goes on after a kill, and lets a night pass."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from dashboard.night import lock
from tests.dashboard import homes
from tests.dashboard.remeasure_homes import NAME, Lab, make_lab, measure_in_turn, past, put_artifact
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.json_schema import Schema
from tvmdash.records import SCHEMAS
from tvmdash.trials import files
from tvmdash.trials.trial import Trial

VERSIONS = ("0.20.0", "0.21.0", "0.22.0", "0.23.0")
COMMANDS: dict[str, tuple[str, ...]] = {
    "try": ("pypi:0.23.0", "--against", "pypi:0.20.0", "--until", "5%"),
    "compare": ("pypi:0.20.0", "pypi:0.23.0", "--rounds", "6"),
    "bisect": (NAME, "$.mlp", "--good", "pypi:0.20.0", "--bad", "pypi:0.23.0"),
    "reproduce": ("NIGHT", "--rounds", "3"),
    "backfill": ("--artifacts", "pypi:0.20.0..0.23.0"),
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """A lab with four releases, of which the last two are slower, and a night on the last one beside another."""
    made = make_lab(tmp_path_factory.mktemp("one") / "lab")
    shelf = [put_artifact(made.home.root / "shelf", version) for version in VERSIONS]
    made.change(slow={one.key: {"mlp": 1.1} for one in shelf[2:]}, foreign=True, sigma=0.002)
    measure_in_turn(made, 3)
    made.home.night()
    return made


def run(lab: Lab, verb: str, *more: str) -> homes.Finished:
    words = [f"{NAME}/{lab.home.stamps()[0]}" if word == "NIGHT" else word for word in COMMANDS[verb]]
    return lab.home.run(*words, "--no-rebuild-tvm", *more, verb=verb)


@pytest.mark.parametrize("verb", COMMANDS)
def test_each_writes_a_trial_by_one_schema_and_the_same_with_json(measured: Lab, tmp_path: Path, verb: str) -> None:
    done = run(measured, verb, "--json", str(tmp_path / "done.json"), "--markdown", str(tmp_path / "done.md"))
    assert done.code == 0, done.output
    value: Any = homes.read(tmp_path / "done.json")
    assert list(Schema(common.read_json(SCHEMAS / "trial_v1.json")).errors(value)) == []
    trial = structured.from_json(Trial, value, tmp_path)
    assert (trial.kind, trial.state, sum(trial.runs.values()) > 0) == (verb, "done", True)
    assert files.find(measured.home.home, trial.stamp) == trial
    assert (tmp_path / "done.md").read_text()
    listed = measured.home.run(verb="tries").output
    assert trial.stamp in listed


@pytest.mark.parametrize("verb", ["compare", "bisect", "backfill"])
def test_each_waits_while_a_night_holds_the_home(measured: Lab, verb: str) -> None:
    words = [f"{NAME}/{measured.home.stamps()[0]}" if word == "NIGHT" else word for word in COMMANDS[verb]]
    with lock.night_lock(measured.home.home):
        process = measured.home.start(*words, "--no-rebuild-tvm", verb=verb)
        with homes.killed_at_end(process):
            assert process.stdout is not None
            assert "Waiting: " in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=300)
    assert process.returncode == 130


def test_what_is_no_try_is_not_resumed_as_one(tmp_path: Path) -> None:
    lab = make_lab(tmp_path / "lab")
    shelf = [put_artifact(lab.home.root / "shelf", version) for version in VERSIONS]
    past(lab, 1, shelf[-1])
    lab.home.run(NAME, "mlp", "--good", "pypi:0.20.0", "--bad", "pypi:0.23.0", "--budget", "1s", verb="bisect")
    (path,) = files.list_files(lab.home.home)
    done = lab.home.run("resume", path.stem, verb="tries")
    assert done.code == 2
    assert "is a bisect. Run the same" in done.output


def test_a_night_says_how_many_pairs_it_measured_a_minute(measured: Lab) -> None:
    (night,) = measured.home.home.last_nights(1)
    assert (night.pairs, night.paired_s > 0) == (6, True), "three pairs of each of two points"
    assert night.pairs_a_minute == pytest.approx(60 * 6 / night.paired_s)
    assert night.timed_s == night.paired_s, "a run in turn is timed as a whole"
    said = f"6 pairs of processes, {night.speed_of_pairs}"
    assert said in measured.home.run(verb="status").output
    doctor = measured.home.run("--no-rebuild-tvm", "--no-drill", verb="doctor").output
    assert f"measured 6 in turn, {night.speed_of_pairs}" in doctor
