"""`new`: an experiment or subsystem that passes `check` and its own test as it is written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from dashboard.authoring import skeletons
from dashboard.cli import authoring as command
from dashboard.cli.main import main
from tests.dashboard import homes

KINDS = sorted(path.name for path in skeletons.SKELETONS.glob("*-*"))
IN_OTHER_LANGUAGES = {"experiment-bash", "experiment-c"}


def new(*words: str, folder: Path) -> int:
    return main(["new", *words, "--in", str(folder)])


@pytest.fixture
def home(tmp_path: Path, tvm_artifact_folder: Path) -> homes.HomeForTests:
    """A home whose own folders of code are empty."""
    for kind in ("experiments", "subsystem"):
        (tmp_path / kind).mkdir()
    folders = {"experiment_dirs": ["../experiments"], "subsystem_dirs": ["../subsystem"]}
    return homes.make_home(tmp_path, tvm_artifact_folder, **folders)


@pytest.mark.parametrize(
    "skeleton", [pytest.param(name, marks=pytest.mark.slow if name in IN_OTHER_LANGUAGES else ()) for name in KINDS]
)
def test_what_it_writes_passes_check_and_its_own_test(
    home: homes.HomeForTests, skeleton: str, tvm_artifact: Artifact
) -> None:
    kind, _, language = skeleton.partition("-")
    folder = home.root / {"experiment": "experiments", "subsystem": "subsystem"}[kind]
    assert new(kind, "my_try", f"--{language}", folder=folder) == 0
    home.experiment("other")  # a home without an experiment has a fault
    homes.write(home.home.config(kind, "my_try") / "config.json", {"active": True})
    checked = home.run(verb="check")
    assert "no problems found" in checked.output
    test = folder / "my_try" / "test_my_try.py"
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # it needs none, and they take time
    argv = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", home.root, test]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_in_the_repository_stage_scripts_are_links_and_the_test_lies_with_the_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(skeletons.SKELETONS, tmp_path / "skeletons")
    (tmp_path / "skeletons" / "experiment-c" / "__pycache__").mkdir(exist_ok=True)  # as an installed package has it
    monkeypatch.setattr(skeletons, "SKELETONS", tmp_path / "skeletons")
    for module in (skeletons, command):
        monkeypatch.setattr(module, "REPOSITORY", tmp_path)
    monkeypatch.setattr(skeletons, "STAGE_SCRIPT", tmp_path / "shared" / "bash" / "stage.sh")
    assert main(["new", "experiment", "my_try", "--c"]) == 0
    folder = tmp_path / "experiments" / "my_try"
    assert {path.name for path in folder.iterdir()} == {
        "analyze.sh", "fields.json", "my_try.c", "my_try.py", "run.sh", "summarize.sh", "visualize.sh"
    }  # fmt: skip
    assert (folder / "run.sh").readlink() == Path("../../shared/bash/stage.sh")
    assert "class MyTry(Experiment)" in (folder / "my_try.py").read_text()
    test = (tmp_path / "tests" / "experiments" / "test_my_try.py").read_text()
    assert 'FOLDER = REPOSITORY / "experiments" / "my_try"' in test
    assert "dashboard smoke my_try" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["experiment", "My-Try"], "'My-Try': invalid name"),
        (["experiment", "1st"], "invalid name"),
        (["experiment", "json"], "is a Python keyword or package"),
        (["experiment", "numpy"], "is a Python keyword or package"),
        (["experiment", "lambda"], "is a Python keyword or package"),
        (["experiment", "canary"], "already exists in experiments/ of this repository"),
        (["subsystem", "score"], "already exists in subsystem/ of this repository"),
        (["subsystem", "mine", "--c"], "subsystem-c: no such skeleton. Skeletons of a subsystem: --python"),
    ],
)
def test_a_name_that_would_do_harm_is_refused_and_nothing_is_written(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert new(*words, folder=tmp_path) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert new("experiment", "mine", folder=tmp_path) == 2
    assert "mine: already exists" in capsys.readouterr().err
    assert not list((tmp_path / "mine").iterdir())
