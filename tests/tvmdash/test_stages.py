"""The protocol table and the script half of it. What the night makes of odd statuses: test_faults_stages.py."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tvmdash.dashboard_info import stages
from tvmdash.dashboard_info.stages import PIPELINES, Status
from tvmdash.errors import DashboardError


def test_the_table_is_sound() -> None:
    known = {"config", "destination", "raw", "data", "analysis", "output", "home"}
    for row in PIPELINES:
        names = [stage.name for stage in row.stages]
        assert len(set(names)) == len(names)
        assert stages.PRECHECK not in names
        for stage in row.stages:
            assert set(stage.arguments) <= known
            assert len({"destination", "output"} & set(stage.arguments)) == 1, "each stage leaves its status somewhere"
            assert stage.timeout_s > 0
            assert stage.script == f"{stage.name}.sh"
    assert [stage.name for row in PIPELINES for stage in row.stages if stage.alone] == ["run"]


def test_a_pipeline_and_a_stage_are_found_by_name() -> None:
    assert stages.pipeline("subsystem").folder == "subsystem"
    assert stages.pipeline("experiment").stage("analyze").leaves == "data.json"


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    stages.write_status(tmp_path, True, "µs 🙂")
    assert stages.read_status(tmp_path) == Status(True, "µs 🙂")


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    stages.write_status(tmp_path, False, "x" * 100000)
    assert len(stages.read_status(tmp_path).message) == stages.MAX_MESSAGE_CHARS
    (tmp_path / "status.json").write_text(json.dumps({"success": True, "message": "y" * 100000}))
    assert len(stages.read_status(tmp_path).message) == stages.MAX_MESSAGE_CHARS


def test_further_fields_of_a_status_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text('{"success": true, "message": "", "more": [1]}')
    assert stages.read_status(tmp_path) == Status(True, "")


@pytest.mark.parametrize(
    "text", ['{"success": 1, "message": ""}', '{"success": null, "message": ""}', '{"message": ""}']
)
def test_success_is_true_or_false(tmp_path: Path, text: str) -> None:
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(DashboardError, match=r"^status\.json: \$\.success"):
        stages.read_status(tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"sucess": true, "message": ""}', "$.success: required field is missing. Did you misspell it as 'sucess'?"),
        ('{"success": true, "mesage": ""}', "$.message: required field is missing. Did you misspell it as 'mesage'?"),
        (
            '{"blocked": true, "message": ""}',
            '$.success: required field is missing. Write {"success": true or false, "message": "..."}.',
        ),
    ],
)
def test_a_field_that_is_missing_is_not_told_as_one_of_a_wrong_kind(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "status.json").write_text(text)
    with pytest.raises(DashboardError) as caught:
        stages.read_status(tmp_path)
    assert str(caught.value) == f"status.json: {fault}"


def test_errors_name_the_file_without_its_temporary_folder(tmp_path: Path) -> None:
    (tmp_path / "status.json").write_text("{")
    with pytest.raises(DashboardError) as caught:
        stages.read_status(tmp_path)
    assert str(tmp_path) not in str(caught.value)


def test_work_that_ends_well_leaves_its_message(tmp_path: Path) -> None:
    assert stages.run_stage(lambda: "3 points", tmp_path) == 0
    assert stages.read_status(tmp_path) == Status(True, "3 points")


def test_a_fault_for_people_is_left_as_it_is(tmp_path: Path) -> None:
    def work() -> str:
        raise DashboardError("no GPU. Take another machine.")

    assert stages.run_stage(work, tmp_path) == 1
    assert stages.read_status(tmp_path) == Status(False, "no GPU. Take another machine.", in_log=True)


FAILING = """
import json, pathlib
from tvmdash.dashboard_info import stages

def share(parts):
    return 1 / parts

def parse(parts):
    return json.loads("{")

stages.run_stage(lambda: str(WORK(0)), pathlib.Path("."))
"""


@pytest.mark.parametrize(
    ("work", "words"),
    [("share", "run.py:6: ZeroDivisionError: division by zero"), ("parse", "run.py:9: JSONDecodeError: Expecting ")],
)
def test_whatever_else_is_raised_is_left_with_its_place_in_the_stages_own_code(
    tmp_path: Path, work: str, words: str
) -> None:
    (tmp_path / "run.py").write_text(FAILING.replace("WORK", work))
    done = subprocess.run([sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert stages.read_status(tmp_path).message.startswith(words), done.stderr
    assert "Traceback" in done.stderr


def test_a_failure_outside_of_the_stages_folder_is_left_with_its_innermost_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert stages.run_stage(lambda: json.loads("{"), tmp_path) == 1
    assert re.match(r"decoder\.py:\d+: JSONDecodeError: ", stages.read_status(tmp_path).message)


def test_work_that_returns_no_words_is_a_failure_with_a_status(tmp_path: Path) -> None:
    assert stages.run_stage(lambda: None, tmp_path) == 1  # type: ignore[arg-type,return-value]
    assert not stages.read_status(tmp_path).success
