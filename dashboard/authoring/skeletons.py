"""A new experiment or subsystem, written from a skeleton that runs as it stands."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import shutil
import sys
from pathlib import Path

from dashboard.plan.job import REPOSITORY
from tvmdash import common
from tvmdash.dashboard_info.stages import PIPELINES, Pipeline
from tvmdash.errors import DashboardError

SKELETONS = REPOSITORY / "shared" / "skeletons"
STAGE_SCRIPT = REPOSITORY / "shared" / "bash" / "stage.sh"
LANGUAGES = ("python", "bash", "c")
_PLACEHOLDER = "example"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SOURCED = '#!/usr/bin/env bash\n. "$BENCHMARK_DEPS/bash/stage.sh"\n'
_BESIDE = "FOLDER = Path(__file__).resolve().parent"
"""The line by which a test finds the job that it lies beside."""


def write_new_job(row: Pipeline, name: str, language: str, folder: Path, test: Path) -> None:
    """Write the job into `folder` and its test to `test`; DashboardError where there can be none, or is one."""
    skeleton = SKELETONS / f"{row.kind}-{language}"
    _check(row, name, skeleton)
    for path in (folder, test):
        if path.exists() or path.is_symlink():
            raise DashboardError(f"{path}: already exists. Choose another name.")
    _write_job(row, name, skeleton, folder)
    _write_test(row, name, folder, test)


def _check(row: Pipeline, name: str, skeleton: Path) -> None:
    if not skeleton.is_dir():
        known = ", ".join(f"--{language}" for language in LANGUAGES if (SKELETONS / f"{row.kind}-{language}").is_dir())
        raise DashboardError(f"{skeleton.name}: no such skeleton. Skeletons of a {row.kind}: {known}.")
    if not _NAME.fullmatch(name):
        raise DashboardError(
            f"{name!r}: invalid name. Use up to 40 characters of a-z, 0-9 and _, starting with a letter."
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names or importlib.util.find_spec(name):
        raise DashboardError(
            f"{name}: is a Python keyword or package that {name}.py would shadow. Choose another name."
        )
    for other in PIPELINES:
        if (REPOSITORY / other.folder / name).exists():
            raise DashboardError(f"{name}: already exists in {other.folder}/ of this repository. Choose another name.")


def _write_job(row: Pipeline, name: str, skeleton: Path, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with common.folder_beside(folder) as new:
        for path in sorted(path for path in skeleton.iterdir() if path.is_file()):  # pip leaves a __pycache__
            copy = new / path.name.replace(_PLACEHOLDER, name)
            copy.write_text(_rename(path.read_text(encoding="utf-8"), name), encoding="utf-8")
            shutil.copymode(path, copy)
        for stage in row.stages:
            if not stage.optional and not (new / stage.script).exists():
                _write_stage(new / stage.script, folder)


def _write_stage(script: Path, folder: Path) -> None:
    """Link to the script within the repository, which moves as a whole; elsewhere write one that finds it."""
    if folder.is_relative_to(REPOSITORY):
        script.symlink_to(os.path.relpath(STAGE_SCRIPT, folder))
        return
    script.write_text(_SOURCED, encoding="utf-8")
    script.chmod(0o755)


def _write_test(row: Pipeline, name: str, folder: Path, test: Path) -> None:
    text = _rename((SKELETONS / f"test_{row.kind}.py").read_text(encoding="utf-8"), name)
    if test.parent != folder:
        text = text.replace(_BESIDE, f'FOLDER = REPOSITORY / "{row.folder}" / "{name}"')
    test.parent.mkdir(parents=True, exist_ok=True)
    common.write_text(test, text)


def _rename(text: str, name: str) -> str:
    camel = "".join(part.capitalize() for part in name.split("_"))
    return text.replace(_PLACEHOLDER.capitalize(), camel).replace(_PLACEHOLDER, name)
