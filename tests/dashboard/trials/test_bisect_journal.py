"""The journal of a bisection: what is intact in it counts, whatever else stands there."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from dashboard.trials.bisect.journal import BisectJournal
from tvmdash.errors import DashboardError

FACTS = {"experiment": "cnn", "machine": "bench"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bisections" / "cnn.jsonl"


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        '{"event": "pair", "commit": "b", "seconds": 1.0, "good": "x", "here": 2.0}',
        '{"event": "built", "commit": "b"}',
        '{"event": "failed", "commit": ["b"], "seconds": 1.0, "why": "w"}',
        '{"event": "of a newer dashboard", "commit": "b", "seconds": 1.0}',
    ],
)
def test_a_broken_line_costs_itself_only_and_is_named(path: Path, line: str, caplog: pytest.LogCaptureFixture) -> None:
    BisectJournal.open(path, FACTS, fresh=False).pair("a", 1.0, 2.0, 3.0)
    with path.open("a") as file:
        file.write(line + "\n")
    BisectJournal.open(path, FACTS, fresh=False).fail("c", "cannot be built", 4.0)
    before = path.read_bytes()
    with caplog.at_level(logging.WARNING):
        again = BisectJournal.open(path, FACTS, fresh=False)
    assert (again.pairs, again.failed, again.elapsed_s) == ({"a": [(1.0, 2.0)]}, {"c": "cannot be built"}, 7.0)
    assert f"{path}:3: " in caplog.text
    assert path.read_bytes() == before


@pytest.mark.parametrize("first", ["nonsense", "[]", json.dumps({"event": "pair", "commit": "a"})])
def test_a_journal_that_does_not_say_what_was_measured_is_refused_with_its_remedy(path: Path, first: str) -> None:
    path.parent.mkdir()
    path.write_text(first + "\n")
    with pytest.raises(DashboardError, match=r"cnn\.jsonl:1: .*--fresh"):
        BisectJournal.open(path, FACTS, fresh=False)
    assert path.read_text() == first + "\n"
