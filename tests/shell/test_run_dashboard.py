"""run_dashboard.sh as people, cron and accidents start it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tvmdash import __version__

REPO = Path(__file__).resolve().parents[2]
DEADLINE_S = 180.0


def test_the_first_start_under_cron_makes_the_environment_and_runs_the_night(first_start: Any) -> None:
    repo, started = first_start
    assert started.exit_code == 0, started.stderr
    assert len(started.stderr.splitlines()) == 2, "pip's noise belongs into its log"
    told = started.told
    assert told["argv"] == ["run", "höme of mine", "--no-rebuild-tvm", ""]
    assert told["cwd"] == str(repo.path.parent)
    assert Path(told["prefix"]) == repo.environments[0]
    assert told["env"]["PYTHONPATH"] == f"{repo.path}:{repo.path}/shared/python"
    assert told["env"]["LC_ALL"] == told["env"]["LANG"] == "C.UTF-8"
    assert told["encoding"].lower() == "utf-8"
    assert told["umask"] == 0o022
    assert told["locked"], "nobody may remove the environment of a night that runs"


def test_a_later_start_sets_up_nothing_and_says_nothing(ready_repo: Any) -> None:
    started = ready_repo.start("home", PIP_FIND_LINKS="/nowhere")
    assert started.exit_code == 0
    assert started.stderr == ""


@pytest.mark.parametrize("exit_code", [0, 1, 2, 3, 75, 130])
def test_the_exit_code_of_the_night_is_passed_on(ready_repo: Any, exit_code: int) -> None:
    assert ready_repo.start("home", EXIT_WITH=str(exit_code)).exit_code == exit_code


def test_a_link_to_the_script_and_sh_start_it_as_well(ready_repo: Any, tmp_path: Path) -> None:
    (tmp_path / "nightly").symlink_to(ready_repo.script)
    for argv in ([str(tmp_path / "nightly"), "home"], ["sh", str(ready_repo.script), "home"]):
        process = ready_repo.popen(argv)
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
        assert process.returncode == 0, stderr
        assert '"argv": ["run", "home"]' in stdout


def test_another_command_runs_in_the_same_environment(ready_repo: Any) -> None:
    process = ready_repo.popen([str(ready_repo.script), "--command", "tries", "höme of mine", "work", ""])
    stdout, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, stderr
    assert '"argv": ["tries", "h\\u00f6me of mine", "work", ""]' in stdout


def test_files_in_the_callers_folder_shadow_no_module(ready_repo: Any, tmp_path: Path) -> None:
    for name in ("json.py", "dashboard.py", "tvmdash_probe.py"):
        (tmp_path / name).write_text("raise SystemExit(99)\n")
    assert ready_repo.start("home", cwd=tmp_path).exit_code == 0


def test_the_version_is_told_without_an_environment(repo: Any) -> None:
    library = repo.path / "shared" / "python" / "tvmdash"
    library.mkdir(parents=True)
    shutil.copy(REPO / "shared" / "python" / "tvmdash" / "__init__.py", library)
    told = repo.start("--version")
    assert (told.exit_code, told.stdout, told.stderr) == (0, f"tvm-dashboard {__version__}\n", "")
    assert repo.environments == []


def test_without_argument_the_usage_goes_to_stderr_and_the_exit_code_is_2(repo: Any) -> None:
    started = repo.start()
    assert (started.exit_code, started.stdout) == (2, "")
    assert started.stderr.startswith("usage: run_dashboard.sh HOME")
    assert repo.start("").exit_code == 2


def test_help_needs_nothing(repo: Any, tmp_path: Path) -> None:
    alone = shutil.copy2(repo.script, tmp_path / "run_dashboard.sh")
    for flag in ("-h", "--help"):
        process = repo.popen([alone, flag], PATH="/usr/bin:/bin", TVMDASH_PYTHON="/nowhere")
        stdout, stderr = process.communicate(timeout=DEADLINE_S)
        assert (process.returncode, stderr) == (0, "")
        assert stdout.startswith("usage: run_dashboard.sh HOME")


def test_the_checkout_of_the_nightly_job_shares_the_environments_of_its_nights(ready_repo: Any, tmp_path: Path) -> None:
    folder = tmp_path / "nightly"
    shutil.copytree(ready_repo.path, folder / "source", symlinks=True, ignore=shutil.ignore_patterns(".venv"))
    (folder / ".dashboard_job").touch()
    (environment,) = ready_repo.environments
    (folder / "venv").symlink_to(environment.parent)
    shared = replace(ready_repo, path=folder / "source").start("home")
    assert shared.exit_code == 0, shared.stderr
    assert shared.told["prefix"] == str(folder / "venv" / environment.name)
    assert "setting up" not in shared.stderr
    assert not (folder / "source" / ".venv").exists()
