"""The subsystem example, tried as a night runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tvmdash

REPOSITORY = Path(tvmdash.__file__).resolve().parents[3]
FOLDER = Path(__file__).resolve().parent


def test_example_leaves_its_files(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "dashboard", "smoke", str(FOLDER), "--scratch", str(tmp_path / "home")]
    done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "home" / "results" / "subsystem" / "output" / "example").glob("*.json"))
