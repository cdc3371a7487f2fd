"""What a subsystem needs of tonight, and what is said where it is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import Golden
from tvmdash.check_prerequisites import (
    needs_any,
    needs_config,
    needs_experiment,
    needs_setting,
    needs_subsystem,
    unmet,
)
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, SKIPPED, Home, JobResult, Night, StepResult
from tvmdash.dashboard_info.stages import read_status, write_status
from tvmdash.errors import DashboardError

STAMP = "20261121T031500Z"
REPO = Path(__file__).resolve().parents[2]


def job(name: str, kind: str = "experiment", message: str = "", **states: str) -> JobResult:
    steps = tuple(StepResult(stage, state, message, STAMP) for stage, state in states.items())
    return JobResult(kind, name, name, "", steps)


def night(*jobs: JobResult) -> Night:
    return Night(STAMP, "running", jobs=jobs)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    write(made.config_file, {"tmp_data_dir": "t", "backup_dir": "b", "setup_dir": "s"})
    return made


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def configure(home: Home, name: str, kind: str = "experiment", **fields: Any) -> None:
    write(home.config(kind, name) / "config.json", {"active": True, **fields})


def test_an_experiment_that_came_so_far_is_there(home: Home) -> None:
    tonight = night(job("relax_opt", precheck=OK, setup=SKIPPED, run=OK, analyze=OK))
    assert unmet([needs_experiment("relax_opt", stage="analyze")], home, tonight) == ()


def test_a_stage_without_a_script_of_its_own_is_there_once_a_later_one_went_well(home: Home) -> None:
    tonight = night(job("relax_opt", precheck=OK, run=OK))
    assert unmet([needs_experiment("relax_opt", stage="setup")], home, tonight) == ()


FAILED_RUN = job("relax_opt", message="no such network", precheck=OK, run=FAILED, analyze=BLOCKED)


def test_messages(home: Home, golden: Golden) -> None:
    configure(home, "off", active=False)
    configure(home, "late")
    configure(home, "relax_opt")
    write(home.config_file, {"tmp_data_dir": "t", "backup_dir": "b", "setup_dir": "s", "keep_raw_nights": 0})
    half = job("relax_opt", precheck=OK, run=OK)
    cases = {
        "a stage failed": (needs_experiment("relax_opt"), night(FAILED_RUN)),
        "a stage is to come": (needs_experiment("relax_opt", stage="summarize"), night(half)),
        "unknown": (needs_experiment("none"), night()),
        "inactive": (needs_experiment("off"), night()),
        "did not run": (needs_experiment("late"), night()),
        "not in the config": (needs_config("relax_opt", "networks", contains="mlp"), night()),
        "a setting of the home": (needs_setting("keep_raw_nights", above=0), night()),
        "none of several": (needs_any(needs_experiment("none"), needs_experiment("off")), night()),
    }
    told = ((name, f"{need}\n{chr(10).join(unmet([need], home, tonight))}") for name, (need, tonight) in cases.items())
    golden.messages("prerequisites", told)


def test_an_experiment_that_failed_is_told_with_its_stage_and_reason(home: Home) -> None:
    (sentence,) = unmet([needs_experiment("relax_opt")], home, night(FAILED_RUN))
    assert sentence.startswith("experiment relax_opt:")
    assert "run failed" in sentence
    assert sentence.endswith(": no such network")


def test_of_a_long_reason_the_beginning_is_told(home: Home) -> None:
    said = [job("opt", message="x" * columns, precheck=OK, run=FAILED) for columns in (150, 2000)]
    short, long = (unmet([needs_experiment("opt")], home, night(each))[0] for each in said)
    assert short.endswith("x" * 150)
    assert len(long) < 300


def test_an_experiment_that_has_not_come_so_far_is_told(home: Home) -> None:
    tonight = night(job("relax_opt", precheck=OK, run=OK))
    (sentence,) = unmet([needs_experiment("relax_opt", stage="summarize")], home, tonight)
    assert "stage summarize" in sentence


def test_an_unknown_an_inactive_and_an_absent_experiment_have_words_of_their_own(home: Home) -> None:
    configure(home, "off", active=False)
    configure(home, "late")
    sentences = unmet([needs_experiment(name) for name in ("none", "off", "late")], home, night())
    assert [sentence.split()[1] for sentence in sentences] == ["none", "off", "late"]
    words = ("config/experiments/none/config.json", "active to true", STAMP)
    assert [word in sentence for word, sentence in zip(words, sentences, strict=True)] == [True] * 3


def test_a_subsystem_that_runs_later_is_told_with_the_remedy(home: Home) -> None:
    tonight = night(job("score", "subsystem", precheck=OK))
    assert "Give it a higher priority" in unmet([needs_subsystem("score")], home, tonight)[0]
    assert unmet([needs_subsystem("score")], home, night(job("score", "subsystem", precheck=OK, run=OK))) == ()


def test_a_stage_that_does_not_exist_is_a_mistake_of_the_author() -> None:
    with pytest.raises(DashboardError, match="experiments have no stage 'analyse'"):
        needs_experiment("relax_opt", stage="analyse")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"contains": "mlp"}, None),
        ({"contains": "dqn"}, "$.networks: ['mlp'] does not contain 'dqn'. Add it."),
        ({"equals": ["mlp", "dqn"]}, "$.networks: ['mlp'] is not ['mlp', 'dqn']. Set it to that."),
        ({"above": 1}, "$.networks: ['mlp'] is not above 1. Raise it."),
        ({}, None),
    ],
)
def test_a_config_value_is_judged(home: Home, condition: dict[str, Any], words: str | None) -> None:
    configure(home, "relax_opt", networks=["mlp"])
    sentences = unmet([needs_config("relax_opt", "networks", **condition)], home, night())
    assert sentences == ((f"config/experiments/relax_opt/config.json: {words}",) if words else ())


def test_a_default_counts_once_the_experiment_has_measured_with_it(home: Home) -> None:
    configure(home, "relax_opt")
    needs = [needs_config("relax_opt", "networks", contains="mlp")]
    assert "$.networks:" in unmet(needs, home, night())[0]
    write(home.data_file("relax_opt", STAMP), {"night": {"config": {"active": True, "networks": ["mlp"]}}})
    assert unmet(needs, home, night()) == ()


def test_a_setting_of_the_home_counts_with_its_default(home: Home) -> None:
    assert unmet([needs_setting("telemetry_rate", above=0)], home, night()) == ()
    write(home.config_file, {"tmp_data_dir": "t", "backup_dir": "b", "setup_dir": "s", "telemetry_rate": 0})
    (sentence,) = unmet([needs_setting("telemetry_rate", above=0)], home, night())
    assert "$.telemetry_rate: 0" in sentence


def test_one_of_several_is_enough_and_all_reasons_are_told_where_none_is_there(home: Home) -> None:
    either = needs_any(needs_experiment("a"), needs_experiment("b"))
    assert unmet([either], home, night(job("b", run=OK, analyze=OK))) == ()
    (sentence,) = unmet([either], home, night())
    assert "experiment a is unknown" in sentence
    assert "experiment b is unknown" in sentence


@pytest.mark.parametrize("damage", ["[1]", "{", '{"night": 3}', '{"night": {"config": []}}'])
def test_a_damaged_file_is_a_need_that_is_not_met_and_no_crash(home: Home, damage: str) -> None:
    path = home.data_file("relax_opt", STAMP)
    path.parent.mkdir(parents=True)
    path.write_text(damage)
    assert unmet([needs_config("relax_opt", "networks")], home, night())


def test_a_status_says_blocked_only_where_it_is(tmp_path: Path) -> None:
    write_status(tmp_path, False, "no data", blocked=True)
    assert read_status(tmp_path).blocked
    write_status(tmp_path, True, "done")
    assert "blocked" not in json.loads((tmp_path / "status.json").read_text())
    assert not read_status(tmp_path).blocked


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"success": True, "message": "", "blocked": True}, r"\$\.blocked and \$\.success are both true"),
        ({"success": False, "message": "", "blocked": "yes"}, "'yes' is not true or false"),
    ],
)
def test_a_status_that_contradicts_itself_is_refused(tmp_path: Path, status: dict[str, Any], words: str) -> None:
    write(tmp_path / "status.json", status)
    with pytest.raises(DashboardError, match=words):
        read_status(tmp_path)


SCRIPT = """
import sys
from tvmdash.check_prerequisites import needs_experiment
from tvmdash.subsys_templates import Report, Subsystem

class Toy(Subsystem):
    def needs(self, config):
        return (needs_experiment("relax_opt"),)

    def work(self, config, output, home, tonight):
        (output / "worked").touch()
        return Report("Toy", "words") if config["priority"] else None

if __name__ == "__main__":
    sys.exit(Toy().main())
"""


def run_toy(home: Home, root: Path, tonight: Night, **config: Any) -> tuple[int, dict[str, Any], Path]:
    script, output = root / "code" / "toy.py", root / "output"
    for folder in (script.parent, output):
        folder.mkdir(exist_ok=True)
    script.write_text(SCRIPT)
    write(root / "config" / "config.json", {"active": True, **config})
    write(home.night_file(STAMP), tonight.to_json())
    argv = [sys.executable, str(script), str(root / "config"), str(output), str(home.root)]
    environment = {**os.environ, "PYTHONPATH": str(REPO / "shared" / "python"), "TVMDASH_NIGHT": STAMP}
    code = subprocess.run(argv, env=environment, check=False, capture_output=True).returncode
    return code, json.loads((output / "status.json").read_text()), output


def test_a_subsystem_whose_needs_are_not_met_is_blocked_and_does_no_work(home: Home, tmp_path: Path) -> None:
    code, status, output = run_toy(home, tmp_path, night())
    assert code == 1
    assert status["blocked"] is True
    assert status["success"] is False
    assert "experiment relax_opt is unknown" in status["message"]
    assert not (output / "worked").exists()


def test_words_of_an_earlier_night_do_not_stay_where_there_are_none_tonight(home: Home, tmp_path: Path) -> None:
    good = night(job("relax_opt", run=OK, analyze=OK))
    *_, output = run_toy(home, tmp_path, good, priority=1)
    assert (output / "report.json").exists()
    _, status, _ = run_toy(home, tmp_path, good, priority=0)
    assert status == {"success": True, "message": "done, nothing to report"}
    assert not (output / "report.json").exists()
    run_toy(home, tmp_path, good, priority=1)
    run_toy(home, tmp_path, night(), priority=1)
    assert not (output / "report.json").exists()
