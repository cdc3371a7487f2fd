"""The experiment example, tried as a night runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import tvmdash

REPOSITORY = Path(tvmdash.__file__).resolve().parents[3]
FOLDER = Path(__file__).resolve().parent


def test_example_measures_all_that_it_is_asked_for(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "dashboard", "smoke", str(FOLDER), "--scratch", str(tmp_path / "home")]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "home" / "results" / "experiments"
    (path,) = (results / "data" / "example").glob("data_*.json")
    data = json.loads(path.read_text(encoding="utf-8"))
    assert not data.get("failures")
    assert data["night"]["experiment"] == "example"
    assert json.loads((results / "summary" / "example" / "summary.json").read_text(encoding="utf-8"))["value"]
