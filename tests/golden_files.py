"""Files that hold what a product module writes, one for each room, made of typed cases by its test.

A test hands its cases to the fixture `golden`; `pytest --update` writes the files anew, and their diff is reviewed. CI
refuses the option: there nothing could fail.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).with_name("golden")
_WRITTEN = "golden file"
"""The property of a test's report that carries the name of a file to the process that sums up."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("golden").addoption("--update", action="store_true", help="write the golden files of tests anew")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--update") and os.environ.get("CI"):
        raise pytest.UsageError(
            "--update writes golden files anew, so no golden test can fail; CI is set. Run it outside CI, review the "
            "diff of tests/golden, and commit it."
        )


@dataclass(frozen=True)
class Golden:
    """The golden files as one test sees them."""

    node: str
    is_update: bool
    written: list[tuple[str, object]]

    def messages(self, room: str, cases: Iterable[tuple[str, str]]) -> None:
        """Hold messages/<room>.txt against the name and the text of each case; the file is this test's alone."""
        told = list(cases)
        assert len(dict(told)) == len(told), "two cases have one name"
        text = "".join(f"\n[{name}]\n{text.rstrip()}\n" for name, text in told)
        self._compare(f"messages/{room}.txt", f"# Written by {self.node} with --update.\n{text}")

    def values(self, name: str, value: Any) -> None:
        """Hold a JSON file against `value`."""
        self._compare(name, json.dumps(value, indent=1) + "\n")

    def _compare(self, name: str, text: str) -> None:
        path = FOLDER / name
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        if text == known:
            return
        if self.is_update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self.written.append((_WRITTEN, name))
            return
        diff = "\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), name, "this test", lineterm=""))
        pytest.fail(f"tests/golden/{name} says otherwise. Is it meant? Then: pytest --update\n{diff}", pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """The golden files, which --update writes anew."""
    node: pytest.Item = request.node
    return Golden(node.nodeid, request.config.getoption("--update"), node.user_properties)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    names = {
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for key, value in getattr(report, "user_properties", ())
        if key == _WRITTEN
    }
    for name in sorted(names):
        terminalreporter.write_line(f"tests/golden/{name} was written anew: review its diff.", yellow=True)
