"""A home that an older version of this repository made: upgraded, taken back, and upgraded again.

The older versions come from this repository's own history and run in the environment of the tests, which has all that
they pin but slack_sdk, and only a message to Slack imports that. Their nights measure no TVM, but want one there.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.dashboard.homes import BEGIN, DEADLINE_S, REPO, HomeForTests, make_home, says, write
from tvmdash.dashboard_info import Home
from tvmdash.series import store

pytestmark = pytest.mark.slow
COMMITS = {
    "6566842": "the first whose nights keep what they measured",
    "7de9890": "the first with alerts, which keep counts of their own format",
    "eb4d597": "before modules became packages",
    "dc8c411": "before the reference",
    "1acafe3": "with hosts, devices and routes",
}
"""About one for each half day of the repository's first days."""
SUBSYSTEMS = ("history_check", "score", "stat_alerts", "website")
MEASURED = """echo '{"gpu": {"O3": {"mean": 1.5}}, "value": 2.25}' > "$2/raw.json\""""


@dataclass(frozen=True)
class Version:
    """A checkout of the dashboard, and what it does with a home."""

    code: Path

    def succeed(self, *words: str) -> None:
        """Run a command that must go well."""
        env = {name: os.environ[name] for name in ("PATH", "SLURMD_NODENAME")}
        env |= {"HOME": "/tmp", "PYTHONPATH": f"{self.code}:{self.code}/shared/python", "PYTHONSAFEPATH": "1"}
        argv = [sys.executable, "-m", "dashboard", *words]
        done = subprocess.run(
            argv, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        assert "Traceback" not in done.stdout

    def night(self, home: HomeForTests) -> None:
        """Run a night in which all must go well."""
        self.succeed("run", str(home.path), "--no-rebuild-tvm", "--experiments-dir", f"{home.code}/experiments")


@pytest.fixture(params=list(COMMITS))
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Version:
    """A checkout of one commit of the past."""
    commit = request.param
    if _git("rev-parse", "-q", "--verify", f"{commit}^{{commit}}").returncode:
        pytest.skip(f"commit {commit} is not in this clone. Fetch the whole history: git fetch --unshallow")
    folder = tmp_path / "older"
    folder.mkdir()
    archive = _git("archive", "--format=tar", commit)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
    return Version(folder)


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    argv = ["git", "-c", "safe.directory=*", "-C", str(REPO), *arguments]
    return subprocess.run(argv, capture_output=True, check=False)


def make_older_home(root: Path, version: Version, artifacts: Path) -> HomeForTests:
    """A home with an experiment of shell scripts, and with those of SUBSYSTEMS that `version` has."""
    home = make_home(root, artifacts, env_name="bench")
    home.experiment("shelly", run=f"{BEGIN}{MEASURED}\n{says('run')}\n")
    for name in SUBSYSTEMS:
        if (version.code / "subsystem" / name).is_dir():
            write(home.home.config("subsystem", name) / "config.json", {"active": True})
    return home


def checksums(home: HomeForTests) -> dict[Path, str]:
    """The SHA-256 of each file that is kept for ever: of data, of nights, of what archives hold."""
    results = home.path / "results"
    folders = (results / "experiments" / "data", results / "nights", home.root / "backup" / "objects")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".jsonl"]
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def check_kept(home: HomeForTests, before: dict[Path, str]) -> None:
    """That every file of `before` is there, byte for byte."""
    after = checksums(home)
    assert before
    assert {path: after.get(path) for path in before} == before


def test_an_upgraded_home_loses_nothing_and_can_go_back_and_forward_again(
    older: Version, tmp_path: Path, tvm_artifact_folder: Path
) -> None:
    newest, backup = Version(REPO), str(tmp_path / "bench" / "backup")
    home = make_older_home(tmp_path / "bench", older, tvm_artifact_folder)
    older.night(home)
    (first,) = home.stamps()
    kept = checksums(home)

    newest.succeed("check", str(home.path), "--experiments-dir", f"{home.code}/experiments")
    newest.night(home)
    check_kept(home, kept)
    kept = checksums(home)

    older.night(home)
    older.succeed("verify", backup)
    older.succeed("status", str(home.path))
    check_kept(home, kept)
    kept = checksums(home)

    newest.night(home)
    newest.succeed("verify", backup)
    check_kept(home, kept)
    assert len(home.stamps()) == 4
    with store.open_for_reading(home.home.store_file, home.home.data("shelly"), "shelly") as opened:
        series = {row.labels["path"]: (row.stamps, list(row.values)) for row in opened.series("shelly")}
    stamps = tuple(home.stamps())
    assert series == {"$.gpu.O3.mean": (stamps, [1.5] * 4), "$.value": (stamps, [2.25] * 4)}
    assert (home.path / "results" / "subsystem" / "output" / "website" / "nights" / f"{first}.html").exists() == (
        (older.code / "subsystem" / "website").is_dir()
    )

    newest.succeed("restore", backup, str(tmp_path / "restored"), "--archive", f"{first}-after")
    restored = Home(tmp_path / "restored")
    assert restored.night_stamps() == [first]
    name = f"data_{first}.json"
    assert (restored.data("shelly") / name).read_bytes() == (home.home.data("shelly") / name).read_bytes()
