"""What tests cost, and what is done with it: measured, kept in a file, dear ones first or left out."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import costs
import pytest

SPEND = """
import time

import pytest

def spend(cpu_s):
    end = time.process_time() + cpu_s
    while time.process_time() < end:
        pass
"""
CHEAP = "def test_cheap():\n    pass\n"
DEAR = f"""{SPEND}
@pytest.fixture(scope="module")
def shared():
    spend({costs.DEAR_S} + 0.05)

def test_of_what_is_shared(shared):
    pass

@pytest.mark.parametrize("half", [1, 2])
def test_dear(half):
    spend({costs.DEAR_S} / 2 + 0.05)

def test_beside():
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy2(costs.__file__, tmp_path)
    (tmp_path / "test_a.py").write_text(CHEAP)
    (tmp_path / "test_b.py").write_text(DEAR)
    return tmp_path


def tried(folder: Path, *options: str) -> str:
    argv = [sys.executable, "-m", "pytest", "-p", "costs", "-p", "xdist", "-p", "no:cacheprovider", "-v", *options]
    env = {**os.environ, "PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_dear_functions_and_shared_fixtures_are_written_down(folder: Path, workers: str) -> None:
    tried(folder, "--measure", "-n", workers)
    assert [line.split()[1] for line in (folder / "costs.txt").read_text().splitlines()] == [
        "test_b.py::shared",
        "test_b.py::test_dear",
    ]


def test_quick_leaves_out_what_is_dear_and_what_needs_it_and_dear_modules_begin(folder: Path) -> None:
    (folder / "costs.txt").write_text("0.4 test_b.py::shared\n0.5 test_b.py::test_dear\n0.9 test_gone.py::test_gone\n")
    quick = tried(folder, "--quick", "-n", "0")
    assert "2 passed, 3 deselected" in quick
    assert quick.index("test_b.py::test_beside") < quick.index("test_a.py::test_cheap")
    assert "5 passed" in tried(folder, "-n", "0")
