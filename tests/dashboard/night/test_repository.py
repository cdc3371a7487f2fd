"""What a night says of the dashboard that ran it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dashboard.night import repository
from tvmdash import __version__


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def checkout(folder: Path) -> str:
    """Make a checkout of a dashboard there; its commit."""
    (folder / "dashboard").mkdir(parents=True)
    (folder / "dashboard" / "__init__.py").touch()
    (folder / ".gitignore").write_text("/venv/\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return git(folder, "rev-parse", "HEAD")


def test_a_checkout_is_told_with_its_version_commit_and_changes(tmp_path: Path) -> None:
    commit = checkout(tmp_path)
    assert repository.describe(tmp_path) == {"version": __version__, "commit": commit, "dirty": False}
    (tmp_path / "new.py").touch()
    assert repository.describe(tmp_path) == {"version": __version__, "commit": commit, "dirty": True}


def test_an_installed_copy_is_not_of_the_checkout_that_it_lies_in(tmp_path: Path) -> None:
    checkout(tmp_path)
    installed = tmp_path / "venv" / "tvm_dashboard"
    (installed / "dashboard").mkdir(parents=True)
    (installed / "dashboard" / "__init__.py").touch()
    assert repository.describe(installed) == {"version": __version__, "commit": None, "dirty": None}
