"""Ends what a killed night leaves running.

The night starts this program and holds the other end of its standard input. When the night is gone, by whatever
signal, the input ends, and every process that carries the night's mark is ended.

It starts with each night: what it imports would take several times as long as all that it does.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "TVMDASH_STAGE_ID"
"""Environment variable by which the processes of one stage are known: `<night>/<number>`."""

_DEADLINE_S, _REMEDY_S = 30.0, 60.0


def end_all(is_meant: Callable[[str], bool]) -> int:
    """End every process whose stage id is meant; how many there were."""
    ended, own = set[int](), str(os.getpid())
    # New processes may start while the list is read, so it is read again until nothing is left.
    deadline = time.monotonic() + _DEADLINE_S
    while time.monotonic() < deadline:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and name != own]
        pids = [pid for pid in pids if is_meant(mark_of(pid) or "")]
        if not pids:
            break
        for pid in pids:
            ended.add(pid)
            try:  # noqa: SIM105 - contextlib is one of those imports
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        time.sleep(0.01)
    return len(ended)


def mark_of(pid: int) -> str | None:
    """Read the stage id in the process's environment; None where it cannot be read."""
    try:
        environment = _read(f"/proc/{pid}/environ")
        while not environment and _becomes_another_program(pid):
            time.sleep(0.001)
            environment = _read(f"/proc/{pid}/environ")
    except OSError:
        return None
    prefix = os.fsencode(f"{MARK}=")
    marks = (item[len(prefix) :] for item in environment.split(b"\0") if item.startswith(prefix))
    return next((os.fsdecode(text) for text in marks), None)


def _becomes_another_program(pid: int) -> bool:
    """Return True while execve(2) has not laid out the arguments: the environment reads as empty until then."""
    state = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[0]
    return state not in b"ZX" and not _read(f"/proc/{pid}/cmdline")


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _remedy(commands: str) -> None:
    """Call the commands in a text of JSON."""
    import json
    import subprocess

    for argv in json.loads(commands):
        try:  # noqa: SIM105
            subprocess.run(argv, check=False, timeout=_REMEDY_S, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):  # nobody is left to be told
            pass


def main() -> None:
    """Wait for the end of standard input, then end what carries the mark in the first argument.

    Where there was anything, the commands in the second one, if there is one, are called: JSON.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 4096):
        pass
    if end_all(lambda mark: mark.startswith(f"{sys.argv[1]}/")) and len(sys.argv) > 2:
        _remedy(sys.argv[2])


if __name__ == "__main__":
    main()
