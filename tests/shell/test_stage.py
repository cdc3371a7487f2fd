"""shared/bash/stage.sh: the one stage script of experiments in Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "shared" / "bash" / "stage.sh"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """An experiment's folder whose Python file says what it was asked for."""
    folder = tmp_path / "experiments" / "toy"
    folder.mkdir(parents=True)
    (folder / "toy.py").write_text("import sys\nprint(*sys.argv[1:], sep='|')\n")
    (folder / "run.sh").symlink_to(os.path.relpath(SCRIPT, folder))
    return folder


def stage(folder: Path, script: str = "run.sh", **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "BENCHMARK_DEPS": str(SCRIPT.parents[1]), **variables}
    argv = [folder / script, "a config", "raw"]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_link_to_it_is_the_stage_that_the_link_is_called(toy: Path) -> None:
    (toy / "analyze.sh").symlink_to("run.sh")
    assert stage(toy).stdout == "run|a config|raw\n"
    assert stage(toy, "analyze.sh").stdout == "analyze|a config|raw\n"


def test_a_script_outside_the_repository_sources_it(toy: Path) -> None:
    (toy / "visualize.sh").write_text('#!/usr/bin/env bash\nset -euo pipefail\n. "$BENCHMARK_DEPS/bash/stage.sh"\n')
    (toy / "visualize.sh").chmod(0o755)
    assert stage(toy, "visualize.sh").stdout == "visualize|a config|raw\n"


def test_in_a_night_the_job_names_the_python_file_whatever_the_folder_is_called(toy: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(toy, tmp_path / "code")
    assert stage(copy, TVMDASH_JOB="toy").stdout == "run|a config|raw\n"
    assert stage(copy, TVMDASH_JOB="toy@release").stdout == "run|a config|raw\n"


def test_a_folder_without_its_python_file_is_said(toy: Path) -> None:
    (toy / "toy.py").rename(toy / "other.py")
    done = stage(toy)
    assert done.returncode == 2
    assert f"toy.py not found in {toy}" in done.stderr
