"""One program: its deadline, its log, and what it leaves behind. What a night makes of it: test_faults_stages.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dashboard.process import process, watchdog
from dashboard.process.process import HEAD_BYTES, TAIL_BYTES, BoundedLog, ProcessOutcome
from tests.dashboard import homes
from tvmdash.errors import DashboardError


def run(tmp_path: Path, text: str, *, timeout_s: float = 20.0, env: dict[str, str] | None = None) -> ProcessOutcome:
    log = tmp_path / "log"
    whole = {"PATH": os.environ["PATH"], **(env or {})}
    return process.run(["/bin/sh", "-c", text], cwd=tmp_path, env=whole, timeout_s=timeout_s, log=log)


def test_the_outcome_says_how_the_program_ended(tmp_path: Path) -> None:
    outcome = run(tmp_path, "echo out; echo err >&2; exit 4")
    assert (outcome.exit_code, outcome.signal, outcome.timed_out, outcome.left_behind) == (4, None, False, 0)
    assert (outcome.tail, (tmp_path / "log").read_text()) == ("out\nerr", "out\nerr\n")
    assert 0 < outcome.elapsed_s < 20
    outcome = run(tmp_path, "kill -9 $$")
    assert (outcome.exit_code, outcome.signal) == (None, 9)


def test_a_program_that_heeds_sigterm_ends_at_its_deadline(tmp_path: Path) -> None:
    outcome = run(tmp_path, "trap 'echo bye; exit 3' TERM; sleep 100 & wait", timeout_s=0.3)
    assert (outcome.timed_out, outcome.exit_code, outcome.tail) == (True, 3, "bye")
    assert outcome.elapsed_s < process.GRACE_S


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_S", 0.3)
    outcome = run(tmp_path, "trap '' TERM; while :; do sleep 0.05; done", timeout_s=0.2)
    assert (outcome.timed_out, outcome.signal) == (True, 9)


def test_a_program_may_close_its_output(tmp_path: Path) -> None:
    outcome = run(tmp_path, "echo said; exec >&- 2>&-; sleep 0.1; exit 5")
    assert (outcome.exit_code, outcome.tail) == (5, "said")


def test_input_is_empty(tmp_path: Path) -> None:
    assert run(tmp_path, "cat; echo end").tail == "end"


def test_a_very_long_deadline_is_not_too_long(tmp_path: Path) -> None:
    assert run(tmp_path, "exit 0", timeout_s=1e18).exit_code == 0


def test_a_program_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DashboardError, match="no-such-program: could not be started: No such file"):
        process.run([f"{tmp_path}/no-such-program"], cwd=tmp_path, env={}, timeout_s=1, log=tmp_path / "log")


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_a_variable_that_the_system_refuses_is_an_error_for_people(tmp_path: Path, value: str) -> None:
    with pytest.raises(DashboardError, match="could not be started"):
        run(tmp_path, "exit 0", env={"X": value})


def test_the_log_keeps_the_beginning_and_the_end(tmp_path: Path) -> None:
    outcome = run(tmp_path, "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last")
    log = (tmp_path / "log").read_text()
    assert log.startswith("first\nx")
    assert log.endswith("x\nlast\n")
    assert f"[... {outcome.left_out_bytes} bytes omitted ...]" in log
    assert outcome.left_out_bytes + len(log) > 3_000_000
    assert len(log) <= HEAD_BYTES + TAIL_BYTES + len("\n[... 1000000000 bytes omitted ...]\n")
    assert len(outcome.tail) <= 2000


def test_a_tail_is_text_whatever_was_printed(tmp_path: Path) -> None:
    assert run(tmp_path, r"printf 'a\033[31mb\377\000c\r\nd'").tail == "a\ufffd[31mb\ufffd\ufffdc\nd"


def test_a_log_on_a_full_disk_does_not_end_the_program(tmp_path: Path) -> None:
    log = BoundedLog(Path("/dev/full"))
    for _ in range(2000):
        log.write(b"some words\n" * 100)
    log.close()
    assert log.tail(1) == "[log not written: No space left on device]"


RACE = """
import sys, threading
from pathlib import Path
from dashboard.process import orphans, process
orphans.become_subreaper()
bad = []
def work(number):
    for index in range(40):
        script = sys.argv[2] if number % 2 else "exit 0"
        outcome = process.run(["/bin/sh", "-c", script], cwd=Path("/"), env={"PATH": "/bin:/usr/bin"},
                              timeout_s=20, log=Path(sys.argv[1], str(number)))
        if outcome.exit_code != 0:
            bad.append(outcome)
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(bad), *bad[:2], len(orphans._list_children()))
"""


def test_programs_side_by_side_do_not_end_one_another(tmp_path: Path) -> None:
    orphan = "(setsid sleep 300 &) ; exit 0"
    argv = [sys.executable, "-c", RACE, str(tmp_path), orphan]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "0 0\n", done.stdout + done.stderr


BESIDE = """
import sys, threading, time
from pathlib import Path
from dashboard.process import orphans, process
orphans.become_subreaper()
def run(script, name):
    process.run(["/bin/sh", "-c", script], cwd=Path("/"), env={"PATH": "/bin:/usr/bin"}, timeout_s=300,
                log=Path(sys.argv[1], name))
beside = threading.Thread(target=run, args=("exec sleep 300", "beside"))
beside.start()
while not orphans._live: time.sleep(0.001)
for number in range(5): run(sys.argv[2], str(number))
print(len(orphans._list_children()), len(orphans._live))
import os, signal
for leader in list(orphans._live): os.kill(leader, signal.SIGKILL)
beside.join()
"""


@pytest.mark.parametrize("orphan", ["(setsid sleep 300 &) ; exit 0", "(sleep 300 &) ; exit 0", "sleep 300 & exit 0"])
def test_what_was_ended_while_another_program_runs_leaves_no_zombie(tmp_path: Path, orphan: str) -> None:
    argv = [sys.executable, "-c", BESIDE, str(tmp_path), orphan]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "1 1\n", done.stdout + done.stderr


CANCEL = """
import sys, threading, time
from pathlib import Path
from dashboard.process import orphans, process
orphans.become_subreaper()
said = []
def work(index):
    try:
        process.run(["/bin/sh", "-c", "sleep 300 & setsid sleep 300"], cwd=Path("/"), env={"PATH": "/bin:/usr/bin"},
                    timeout_s=300, log=Path(sys.argv[1], str(index)))
    except process.Cancelled:
        said.append("cancelled")
threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
for thread in threads: thread.start()
while len(orphans._live) < 3: time.sleep(0.001)
process.cancel_all()
for thread in threads: thread.join()
print(*said, len(orphans._list_children()))
"""


def test_cancelling_ends_every_program(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CANCEL, str(tmp_path)]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "cancelled cancelled cancelled 0\n", done.stdout + done.stderr


ADOPTED = """
import sys
from pathlib import Path
from dashboard.process import orphans, process
orphans.become_subreaper()
outcome = process.run(["/bin/sh", "-c", sys.argv[2]], cwd=Path("/"), env={"PATH": "/bin:/usr/bin"}, timeout_s=20,
                      log=Path(sys.argv[1]))
print(outcome.left_behind, len(orphans._list_children()))
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("(setsid true &) ; sleep 0.2", "0 0\n"),  # gone by itself: nothing to be ended
        ("(setsid sleep 300 &) ; sleep 0.1", "1 0\n"),
        ("env -i /bin/sleep 300 & exit 0", "1 0\n"),
        ("setsid env -i /bin/sleep 300 & sleep 0.1", "1 0\n"),
    ],
)
def test_only_what_still_ran_counts_as_left_behind(tmp_path: Path, script: str, said: str) -> None:
    argv = [sys.executable, "-c", ADOPTED, str(tmp_path / "log"), script]
    done = subprocess.run(argv, env=homes.environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == said, done.stderr


def test_a_program_without_a_mark_carries_the_nights(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from dashboard.process import process\n"
        "process.begin_night('/home/x:20261121T000000Z')\n"
        "process.run(['/usr/bin/env'], cwd=Path('/'), env={}, timeout_s=9, log=Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "log"], env=homes.environment(), check=True, timeout=300)
    assert "TVMDASH_STAGE_ID=/home/x:20261121T000000Z/tool-" in (tmp_path / "log").read_text()


def test_a_watchdog_ends_what_carries_its_mark_once_its_night_is_gone() -> None:
    mark = "/home/größe\udcff:20261121T000000Z"
    env = {**homes.environment(), watchdog.MARK: f"{mark}/1"}
    other = {**homes.environment(), watchdog.MARK: f"{mark}0/1"}
    with (
        subprocess.Popen(["setsid", "sleep", "300"], env=env) as marked,
        subprocess.Popen(["sleep", "300"], env=other) as neighbour,
    ):
        argv = [sys.executable, "-I", "-S", watchdog.__file__, mark]
        guard = subprocess.Popen(argv, env=homes.environment(), stdin=subprocess.PIPE, cwd="/")
        time.sleep(0.1)
        assert marked.poll() is None
        assert guard.stdin is not None
        guard.stdin.close()
        assert marked.wait(20) == -9
        assert guard.wait(20) == 0
        assert neighbour.poll() is None
        neighbour.kill()


def test_threads_are_needed_for_nothing_after_the_program(tmp_path: Path) -> None:
    before, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run(tmp_path, "exit 0")
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (before, files)
