"""Results of dashboards before are trials as well, and each says what it said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.trials import files, text

STAMP = "20261101T000000Z"
WHEEL = {"key": "wheel-0.27.0", "version": "0.27.0", "commit": None}
OLD: dict[str, dict[str, Any]] = {
    "comparisons": {
        "a": {"asked": "pypi:0.26.0", "artifact": {"key": "wheel-0.26.0", "version": "0.26.0", "commit": None}},
        "b": {"asked": "pypi:0.27.0", "artifact": WHEEL},
        "elapsed_s": 60.0,
        "series": [
            {
                "id": "s1", "experiment": "e", "metric": "run_time", "unit": "ms", "labels": {}, "name": "e mlp time",
                "rounds": [[1.0, 1.1]] * 6, "difference": {"effect": 0.1, "low": 0.09, "high": 0.11, "rounds": 6},
            },
            {
                "id": "s2", "experiment": "e", "metric": "code_size", "unit": "bytes", "labels": {}, "kind": "exact",
                "name": "e mlp code size", "rounds": [[100.0, 104.0]] * 6,
            },
        ],
    },
    "bisections": {
        "state": "range", "series": "s1", "name": "e mlp run time", "builds": 4, "measurements": 48, "elapsed_s": 60.0,
        "experiment": "e", "direction": "lower", "good": {"id": "0.10.0"}, "bad": {"id": "0.22.0"}, "candidates": 12,
        "ends": 6, "failed": {"0.16.0": "it crashed"}, "error": 0.05, "journal": "/x.jsonl",
        "suspects": [{"id": "0.16.0"}, {"id": "0.17.0"}], "probability": 0.97, "effect": 0.05, "low": 0.04,
        "high": 0.06, "noise": 0.01, "least": 20.0,
    },
    "reproductions": {
        "verdict": "does not hold", "stamp": STAMP, "source": "x", "experiment": "e", "night": "20261001T000000Z",
        "artifact": WHEEL, "rounds": 3, "elapsed_s": 90.0, "matters": 0.05, "is_same_machine": True, "code": "here",
        "lines": [{
            "name": "e mlp run time", "unit": "ms", "old": 1.0, "verdict": "does not hold", "new": [1.3, 1.3, 1.3],
            "found": {"old": 1.0, "new": 1.3, "effect": 0.3, "low": 1.2, "high": 1.4, "holds": False}, "id": "s1",
        }],
    },
    "backfills": {
        "stamp": STAMP, "artifacts": "pypi:0.20.0..0.25.0", "wanted": 6, "done": ["e/data_1.json"], "there": 1,
        "had": ["0.20.0"], "failed": {"e on 0.21.0": "it crashed"}, "unbuilt": {"0.22.0": "no wheel"}, "left": 2,
        "elapsed_s": 90.0,
    },
}  # fmt: skip
SAYS = {
    "comparisons": ("Base: pypi:0.26.0, TVM 0.26.0", "Sizes and counts: 1 of 1 changed.", "done"),
    "bisections": ("with one of 2:", "0.16.0 (not measured: it crashed)", "range"),
    "reproductions": ("1.00 ms then, 1.30 ms now (+30.0 %); DOES NOT HOLD", "1 does not hold.", "does not hold"),
    "backfills": ("6 TVMs in pypi:0.20.0..0.25.0: 1 already measured", "e on 0.21.0: it crashed", "budget"),
}


@pytest.mark.parametrize("folder", OLD)
def test_each_says_what_it_said(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "results" / folder / f"{STAMP}.json"
    path.parent.mkdir(parents=True)
    common.write_json(path, {"schema_version": 1, **OLD[folder]})
    (found,) = files.read_all(Home(tmp_path))
    assert found.result is not None, found.fault
    *said, outcome = SAYS[folder]
    table = text.format_table(found.result, every=True)
    assert [words for words in said if words not in table] == []
    assert found.result.outcome == outcome
    assert files.load(path) == found.result


@pytest.mark.parametrize("folder", OLD)
def test_one_that_is_damaged_names_its_file_and_what_to_do(folder: str, tmp_path: Path) -> None:
    path = tmp_path / "results" / folder / f"{STAMP}.json"
    path.parent.mkdir(parents=True)
    common.write_json(path, [])
    with pytest.raises(DashboardError, match=rf"{folder}/{STAMP}\.json: .*Restore it from the backup"):
        files.load(path)
