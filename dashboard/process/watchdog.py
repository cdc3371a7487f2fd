"""Ends what a killed night leaves running.

The night starts this program and holds the other end of its standard input. When the night is gone, by whatever
signal, the input ends, and every process that carries the night's mark is ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dashboard.process.orphans import mark_of, spare

_REPOSITORY = Path(__file__).resolve().parents[2]
_DEADLINE_S = 30.0
_REMEDY_S = 60.0
_KEPT = ("PATH", "HOME", "SLURM_CONF")


def end_marked(night: str) -> int:
    """End every process whose stage id begins with `night`; how many there were."""
    return end_all(lambda mark: mark.startswith(f"{night}/"))


def end_all(is_meant: Callable[[str], bool]) -> int:
    """End every process whose stage id is meant; how many there were."""
    ended: set[int] = set()
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        pids = [pid for pid in _processes() if is_meant(mark_of(pid) or "")]
        if not pids:
            break
        for pid in pids:
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return len(ended)


@contextlib.contextmanager
def watch(night: str, remedies: Sequence[Sequence[str]] = ()) -> Iterator[None]:
    """While the block lasts, another process stands by to end this night's programs should this one be killed.

    remedies: commands for what these programs leave elsewhere; called only where one of them had to be ended.
    """
    environment = {
        **{name: os.environ[name] for name in _KEPT if name in os.environ},
        "PYTHONPATH": f"{_REPOSITORY}:{_REPOSITORY / 'shared' / 'python'}",
    }
    argv = [sys.executable, "-m", "dashboard.process.watchdog", night, json.dumps([list(each) for each in remedies])]
    guard = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment, cwd="/", start_new_session=True)
    spare(guard.pid)
    try:
        yield
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def main() -> None:
    """Wait for the end of standard input, then end what carries the mark in the first argument.

    Where there was anything, the commands in the second one, if there is one, are called: JSON.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    if end_marked(sys.argv[1]):
        for argv in json.loads(sys.argv[2]) if len(sys.argv) > 2 else ():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # nobody is left to be told
                subprocess.run(argv, check=False, timeout=_REMEDY_S, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
