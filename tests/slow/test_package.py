"""`pip install .` gives the library and a command that runs in the copy of the repository that comes with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tvmdash import __version__

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, without what it depends on."""
    folder = tmp_path_factory.mktemp("package")
    source, site = folder / "source", folder / "site"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=REPO, capture_output=True, check=True).stdout
    argv = ["xargs", "-0", "cp", "--parents", "-t", str(source)]
    source.mkdir()
    subprocess.run(argv, cwd=REPO, input=files, check=True)
    argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", f"--target={site}", str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


def run(site: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Somebody's shell, in a folder where things are named like ours."""
    place = site.parent / "place"
    (place / "dashboard").mkdir(parents=True, exist_ok=True)
    (place / "dashboard" / "__init__.py").write_text("raise SystemExit('not ours')\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(site)}
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, check=False)


def test_the_library_can_be_imported(installed: Path) -> None:
    told = run(installed, sys.executable, "-P", "-c", "import tvmdash; print(tvmdash.__version__, tvmdash.__file__)")
    assert told.stdout.split() == [__version__, str(installed / "tvmdash" / "__init__.py")], told.stderr


def test_the_command_tells_the_same_version(installed: Path) -> None:
    told = run(installed, str(installed / "bin" / "dashboard"), "--version")
    assert (told.returncode, told.stdout) == (0, f"tvm-dashboard {__version__}\n"), told.stderr


def test_the_librarys_command_exports_records(installed: Path) -> None:
    told = run(installed, str(installed / "bin" / "tvmdash"), "records", "export", "--help")
    assert (told.returncode, "--to" in told.stdout) == (0, True), told.stderr
    wrong = run(installed, str(installed / "bin" / "tvmdash"), "traces", "query", "SELECT 1", "nowhere")
    assert (wrong.returncode, "no such file" in wrong.stderr) == (1, True)


def test_the_command_plans_a_night_of_the_sample_home_that_came_along(installed: Path) -> None:
    home = installed / "tvm_dashboard" / "sample-dashboard-home"
    told = run(installed, str(installed / "bin" / "dashboard"), "plan", str(home))
    assert told.returncode == 0, told.stderr
    assert "canary" in told.stdout


def test_every_stage_can_be_executed(installed: Path) -> None:
    scripts = [*installed.glob("tvm_dashboard/experiments/*/*.sh"), *installed.glob("tvm_dashboard/subsystem/*/run.sh")]
    assert len(scripts) > 50
    assert not [path for path in scripts if not os.access(path, os.X_OK)]
