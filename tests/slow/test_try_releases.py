"""Two releases of real TVM measured in turn by `try`; the older one is got from the package index."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.artifacts.artifact import Artifact
from tests.dashboard import homes

pytestmark = pytest.mark.slow
BASE = "0.26.0"
TIMEOUT_S = 1800.0


def test_a_release_is_tried_against_the_one_before(tmp_path: Path, tvm_artifact: Artifact) -> None:
    shelf, table = tmp_path / "shelf", tmp_path / "table.md"
    shutil.copytree(tvm_artifact.path, shelf / tvm_artifact.key, copy_function=os.link)
    home = homes.make_home(tmp_path / "lab", shelf)
    config = {"active": True, "size": "smoke", "networks": ["mlp"], "opt_levels": [3]}
    homes.write(home.home.config("experiment", "relax_opt") / "config.json", config)
    words = [f"pypi:{tvm_artifact.version}", "--against", f"pypi:{BASE}", "--until", "20%", "--budget", "15m"]
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", "try", str(home.path), *words, "--markdown", str(table)],
        env={**os.environ, **homes.environment()},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = (home.path / "results" / "tries").glob("*.json")
    result = homes.read(path)
    assert (result["base"]["version"], result["candidate"]["version"]) == (BASE, tvm_artifact.version)
    assert result["state"] == "done"
    assert result["series"]
    assert all(item["change"]["pairs"] >= 2 and item["change"]["within"] <= 0.2 for item in result["series"])
    assert "code_size" in {item["metric"] for item in result["numbers"]}
    assert "TVM 0.26.0" in table.read_text(encoding="utf-8")
    assert not home.home.data("relax_opt").exists()
