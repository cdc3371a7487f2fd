"""The one lock between processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tvmdash
from tvmdash.common.files import lock

LIBRARY = Path(tvmdash.__file__).parents[1]
HOLD = (
    "import sys, time; from pathlib import Path; from tvmdash.common.files import lock\n"
    "held = lock.take(Path(sys.argv[1]), 'building', shared=len(sys.argv) > 2)\n"
    "print('held', flush=True); sys.stdin.read()"
)


def holder(path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process that holds the lock until its standard input ends."""
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY)}
    argv = [sys.executable, "-c", HOLD, str(path), *arguments]
    process = subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_lock_held_by_another_process_is_not_given_and_says_who_holds_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        assert lock.is_held(path)
        assert lock.take(path, "archiving") is None
        assert lock.take(path, shared=True) is None
        assert lock.read_holder(path).startswith(f"process {process.pid} on ")
        assert lock.read_holder_pid(path) == process.pid
        assert lock.read_holder(path).endswith(", building")
        process.kill()
        process.wait()
        taken = lock.take(path, "archiving")  # the system released it
        assert taken is not None
        taken.release()
    assert not lock.is_held(path)


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path) as process:
        started = time.monotonic()
        assert lock.take(path, within_s=0.3) is None
        assert time.monotonic() - started >= 0.3
        process.communicate()  # its standard input ends
        assert lock.take(path, within_s=60) is not None


def test_many_share_a_lock_and_nobody_has_it_alone_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holder(path, "shared") as process:
        shared = lock.take(path, shared=True)
        assert shared is not None
        assert not lock.is_held(path)
        assert lock.take(path) is None
        process.communicate()
        assert lock.take(path) is None
        shared.release()
        shared.release()
        assert lock.take(path) is not None


def test_no_file_is_no_lock(tmp_path: Path) -> None:
    assert not lock.is_held(tmp_path / "none")
    assert lock.read_holder(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("text", "pid"),
    [
        ("process 412 on host since 20261122T031500Z\n", 412),  # as nights wrote it before
        ("process 412 on host, building", 412),
        ("process x on host, building", None),
        ("412", None),
        ("", None),
    ],
)
def test_the_holders_id_is_read_or_there_is_none(tmp_path: Path, text: str, pid: int | None) -> None:
    (tmp_path / "lock").write_text(text)
    assert lock.read_holder_pid(tmp_path / "lock") == pid
