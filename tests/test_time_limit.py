"""The time-out that every test has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import time_limit

HANGS = """
import subprocess, threading, time

def wait_for_ever():
    time.sleep(600)

def test_hangs():
    threading.Thread(target=wait_for_ever, daemon=True).start()
    with subprocess.Popen(["sleep", "600"]) as sleeper:
        try:
            time.sleep(600)
        finally:
            sleeper.kill()

def test_hangs_twice():
    try:
        time.sleep(600)
    finally:
        time.sleep(600)

def test_is_quick():
    pass
"""
BEYOND_SIGNALS = """
import signal, time

def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    time.sleep(600)
"""
ENDS_ALL = ("-o", "faulthandler_timeout=1", "-o", "faulthandler_exit_on_timeout=true")


def tried(folder: Path, source: str, limit_s: float, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(source)
    plugins = ["-p", "time_limit", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), time_limit.LIMIT_VARIABLE: str(limit_s)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_test_that_hangs_fails_with_where_it_was_and_the_others_go_on(tmp_path: Path) -> None:
    done = tried(tmp_path, HANGS, 0.5)
    assert "2 failed, 1 passed" in done.stdout
    assert "test_it.py::test_hangs did not end within 0.5 s" in done.stdout
    assert "in wait_for_ever" in done.stdout, "the other threads are told as well"


def test_where_no_signal_helps_the_stacks_are_printed_and_all_ends(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("faulthandler_timeout")) > time_limit.SLOW_LIMIT_S
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True
    done = tried(tmp_path, BEYOND_SIGNALS, 0.5, *ENDS_ALL)
    assert done.returncode == 1
    assert "Timeout (0:00:01)!" in done.stderr
    assert 'test_it.py", line 6 in test_hangs' in done.stderr
