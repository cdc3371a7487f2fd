"""pip, TVM's health check and Python stages, forked from a process that has imported what takes most of their time.

`python warm_tools.py VERB ...`: the dashboard that starts them so. In /proc they have the warm process's command line
and variables: what looks at those starts programs of their own.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.artifacts import health
from dashboard.process import orphans, process
from tests.warm import Order, Running, Warm, fork, serve
from tvmdash.measure import within_night

MODULES = (
    "pip._internal.cli.main",
    "pip._internal.commands.download",
    "pip._internal.commands.index",
    "numpy.testing",
    "jinja2",
    "tvmdash.judge.history.fleet.fleet",
    "tvmdash.exp_templates",
    "tvmdash.common.github_api",
    "tvmdash.judge.home",
    "tvmdash.signoff",
    "tvmdash.store",
    "tvmdash.subsys_templates",
)
_AT_ONCE = 2
_ONLY_STARTS = re.compile(r'exec python3 ((?P<name>\w+\.py)(?P<words>( \w+)*)|"\$script" "\$\{stage%\.sh\}") "\$@"\n\Z')
"""How a stage's script ends that does nothing but start a Python: a subsystem's own, and shared/bash/stage.sh."""


class _Tools:
    """In place of the module subprocess: what no warm process is free for starts as ever."""

    DEVNULL, PIPE, STDOUT = subprocess.DEVNULL, subprocess.PIPE, subprocess.STDOUT
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, warm: Sequence[Warm]) -> None:
        self._running: dict[Warm, Running | None] = dict.fromkeys(warm)

    def Popen(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], **options: Any) -> Any:  # noqa: N802
        free = [warm for warm, running in self._running.items() if running is None or running.returncode is not None]
        arguments = _arguments_in(argv, cwd, env)
        if not (free and arguments):
            return subprocess.Popen(argv, cwd=cwd, env=env, **options)
        read, write = os.pipe()
        with os.fdopen(write, "wb") as output:
            running = self._running[free[0]] = free[0].begin(Order(arguments, env, str(cwd)), output)
        running.stdout = os.fdopen(read, "rb", buffering=0)
        return running


def _arguments_in(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> list[str]:
    """What follows `python` in what `argv` comes to; empty where it is another program."""
    if argv[0] == sys.executable:
        known = argv[1:3] == ["-m", "pip"] or argv[1:2] == [health.__file__]
        return list(argv[1:]) if known else []
    script = Path(argv[0])
    found = _ONLY_STARTS.search(script.read_text(errors="replace")) if script.suffix == ".sh" else None
    if not found:
        return []
    if found["name"]:
        return [str(cwd / found["name"]), *found["words"].split(), *argv[1:]]
    name = re.split("[@~]", env.get("TVMDASH_JOB", cwd.name))[0]
    return [str(cwd / f"{name}.py"), script.stem, *argv[1:]]


class _Copies:
    """In place of the module subprocess for a stage that has the dashboard remeasure: a copy of it goes on as that."""

    TimeoutExpired = subprocess.TimeoutExpired

    class Popen:
        def __init__(self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
            self.args, self._pid = argv, fork(Order(argv[1:], env, str(cwd)))

        def __enter__(self) -> _Copies.Popen:
            return self

        def __exit__(self, *_: object) -> None:
            """It has been waited for."""

        def wait(self, timeout: float | None = None) -> int:
            """Wait for its end; its exit code."""
            file = os.pidfd_open(self._pid)
            with os.fdopen(file):
                if not select.select([file], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

        def send_signal(self, number: int) -> None:
            """Send it a signal."""
            os.kill(self._pid, number)

        def kill(self) -> None:
            """End it at once."""
            self.send_signal(signal.SIGKILL)


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


_SHARED = Path(__file__).resolve().parents[2] / "shared" / "python"
_IN_TESTS = _Tools([Warm(MODULES, [_SHARED]) for _ in range(_AT_ONCE)])


@pytest.fixture
def warm_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that this test has the dashboard start in the tests' own process."""
    monkeypatch.setattr(process, "subprocess", _IN_TESTS)


def main() -> int:
    from dashboard.cli.main import main as dashboard

    within_night.subprocess = _Copies  # type: ignore[assignment]
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
