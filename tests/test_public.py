"""What a public repository promises to strangers: licence, change log, checks before a commit, CI."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

from tvmdash import __version__

REPO = Path(__file__).resolve().parent.parent
APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt."""


def text(name: str) -> str:
    return (REPO / name).read_text(encoding="utf-8")


def pin(name: str) -> str:
    found = re.search(rf"^{name}==(\S+)", text("tests/requirements.txt"), re.MULTILINE)
    assert found
    return found[1]


def test_the_licence_is_the_whole_text_of_apache_2() -> None:
    assert hashlib.sha256((REPO / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_the_change_log_knows_the_version() -> None:
    assert re.search(rf"^## {re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)$", text("CHANGELOG.md"), re.MULTILINE)


def test_every_fragment_of_the_change_log_has_a_kind_and_says_something() -> None:
    kinds = {kind["directory"] for kind in tomllib.loads(text("pyproject.toml"))["tool"]["towncrier"]["type"]}
    name = re.compile(rf"(\+[\w-]+|\d+)\.({'|'.join(sorted(kinds))})\.md", re.ASCII)
    fragments = [path for path in (REPO / "changelog.d").iterdir() if path.name != "README.md"]
    assert not [path.name for path in fragments if not name.fullmatch(path.name)], "write +NAME.KIND.md"
    assert not [path.name for path in fragments if not path.read_text(encoding="utf-8").rstrip().endswith(".")]


def test_ci_runs_the_two_commands_of_the_readme() -> None:
    workflow = text(".github/workflows/checks.yml")
    for command in ("./run_dashboard.sh sample-dashboard-home", "tests/run.sh"):
        assert f"    {command}" in text("README.md")
        assert f"run: {command}" in workflow


def test_before_a_commit_the_same_ruff_looks_as_in_the_tests() -> None:
    assert f"ruff-pre-commit\n    rev: v{pin('ruff')}\n" in text(".pre-commit-config.yaml")


def test_the_oldest_python_is_the_same_everywhere() -> None:
    project = tomllib.loads(text("pyproject.toml"))
    oldest = project["project"]["requires-python"].partition(",")[0].removeprefix(">=")
    assert project["tool"]["mypy"]["python_version"] == oldest
    assert project["tool"]["ruff"]["target-version"] == f"py{oldest.replace('.', '')}"
    assert f"OLDEST_PYTHON={oldest.replace('.', '')} " in text("shared/bash/common.sh")
    assert f'python: ["{oldest}", ' in text(".github/workflows/checks.yml")
    assert f"Python {oldest} to " in text("README.md")
