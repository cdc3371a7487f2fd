"""pip and TVM's health check, forked from a process that has imported what they import, which is most of their cost.

`python warm_tools.py VERB ...`: the dashboard that starts them so. In /proc they have the warm process's command line
and variables: what looks at those starts programs of their own.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts import health
from dashboard.process import orphans, process
from tests.warm import Order, Running, Warm, serve

MODULES = ("pip._internal.cli.main", "pip._internal.commands.download", "pip._internal.commands.index", "numpy.testing")
_AT_ONCE = 2


class _Tools:
    """In place of the module subprocess: what no warm process is free for starts as ever."""

    DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, warm: Sequence[Warm]) -> None:
        self._running: dict[Warm, Running | None] = dict.fromkeys(warm)

    def Popen(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], **options: Any) -> Any:  # noqa: N802
        free = [warm for warm, running in self._running.items() if running is None or running.returncode is not None]
        program = argv[1:3] == ["-m", "pip"] or argv[1:2] == [health.__file__]
        if not (free and program and argv[0] == sys.executable):
            return subprocess.Popen(argv, cwd=cwd, env=env, **options)
        read, write = os.pipe()
        with os.fdopen(write, "wb") as output:
            running = self._running[free[0]] = free[0].begin(Order(argv[1:], env, str(cwd)), output)
        running.stdout = os.fdopen(read, "rb", buffering=0)
        return running


class _Forked(Warm):
    """A warm process that is a copy of this one."""

    pid = 0

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.pid = os.fork()
        if not self.pid:
            serve(theirs)
        theirs.close()
        orphans.spare(self.pid)
        return ours

    def end(self) -> None:
        """End it, so that what it cost is counted."""
        self.start().shutdown(socket.SHUT_RDWR)
        os.waitpid(self.pid, 0)


_IN_TESTS = _Tools([Warm(MODULES, []) for _ in range(_AT_ONCE)])


@pytest.fixture
def warm_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that this test has the dashboard start in the tests' own process."""
    monkeypatch.setattr(process, "subprocess", _IN_TESTS)


def main() -> int:
    from dashboard.cli.main import main as dashboard

    warm = [_Forked([], []) for _ in range(_AT_ONCE)]
    for one in warm:
        one.start()
    process.subprocess = _Tools(warm)  # type: ignore[assignment]
    try:
        return dashboard(sys.argv[1:])
    finally:
        for one in warm:
            one.end()


if __name__ == "__main__":
    sys.exit(main())
