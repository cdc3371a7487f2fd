"""Real TVM built from source at two commits, and an experiment measured on both: hours, where nothing is built yet.

CONTRIBUTING.md says what it needs and how it is called.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import real_tvm

from dashboard.artifacts.git import git_provider
from tests.dashboard import homes
from tvmdash import common

REMOTE = os.environ.get(real_tvm.MIRROR, "")
EXPERIMENT, ROUNDS = "pass_comparison", 3
MEASURING_S = 3600.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not REMOTE,
        reason=f"{real_tvm.MIRROR} is not set: give a clone of apache/tvm, two hours (CONTRIBUTING.md)",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where artifacts are kept: builds that are there are taken."""
    given = os.environ.get(real_tvm.ARTIFACTS)
    return Path(given).absolute() if given else tmp_path_factory.mktemp("artifacts")


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Lines that are shown at the end, whatever pytest keeps to itself, and left in the file that REPORT names."""
    lines: list[str] = []
    yield lines
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    if os.environ.get(real_tvm.REPORT):
        common.write_text(Path(os.environ[real_tvm.REPORT]).absolute(), "\n".join(lines) + "\n")


def compared(home: homes.HomeForTests, pair: real_tvm.Pair, markdown: Path) -> dict[str, Any]:
    """Both commits built where they are not there yet, and measured in turn by `compare`."""
    names = (f"git:{pair.older}", f"git:{pair.newer}")
    argv = [sys.executable, "-m", "dashboard", "compare", str(home.path), *names, "--rounds", str(ROUNDS), "--all"]
    env = {**homes.environment(), "HOME": os.environ.get("HOME", "/tmp")}  # git's own settings are the caller's
    timeout_s = 2 * git_provider.TIMEOUT_S + MEASURING_S
    done = subprocess.run(
        [*argv, "--markdown", str(markdown)], env=env, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    kept: dict[str, Any] = homes.read(max((home.path / "results" / "tries").glob("*.json")))
    return kept


def test_two_commits_are_built_and_an_experiment_runs_on_both(tmp_path: Path, folder: Path, told: list[str]) -> None:
    pair = real_tvm.Pair.chosen(REMOTE, folder)
    home = homes.make_home(
        tmp_path / "lab", folder, tvm_remote=REMOTE, tvm_branch=pair.newer, tvm_options=dict(pair.options)
    )
    config = {"active": True, "size": "smoke", "networks": ["mlp"]}
    homes.write(home.home.config("experiment", EXPERIMENT) / "config.json", config)
    kept = compared(home, pair, tmp_path / "table.md")

    assert [kept[side]["commit"] for side in ("base", "candidate")] == [pair.older, pair.newer]
    assert min(sum(run["pairs"] for run in one["runs"]) for one in kept["series"] if one["runs"]) >= ROUNDS
    metrics = {one["metric"] for one in kept["series"]}
    assert {"run_time", "compile_time"} <= metrics
    assert all(value > 0 for one in kept["series"] for values in one["rounds"] for value in values)

    again = {one: real_tvm.taken_again_s(pair, one, folder, tmp_path / "logs") for one in (pair.older, pair.newer)}
    builds = {commit: artifact for commit, (artifact, _) in again.items()}
    assert {commit: one.commit for commit, one in builds.items()} == {pair.older: pair.older, pair.newer: pair.newer}
    assert all(seconds < 60 for _, seconds in again.values()), "what is there is not built again"
    told += [real_tvm.table(pair, builds, {commit: seconds for commit, (_, seconds) in again.items()}), ""]
    told += [(tmp_path / "table.md").read_text(encoding="utf-8")]
    told += [f"Facts of the newer build: {json.dumps(dict(builds[pair.newer].facts))}"]
