"""The processes that a program leaves behind: found, told apart from the living, ended.

The night is a child subreaper (prctl(2)): a process that a stage detaches becomes a child of the night when its parent
ends, and is found among its children. A process that outlives the night itself is ended by `watchdog`, a program that
starts with each night and so imports nothing of the dashboard.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dashboard.process import watchdog
from dashboard.process.watchdog import mark_of
from tvmdash.errors import DashboardError

DEADLINE_S = 10.0
_PR_SET_CHILD_SUBREAPER = 36
_KEPT = ("PATH", "HOME", "SLURM_CONF")

_live: dict[int, str] = {}
_lock = threading.Lock()
"""Held from the start of a program until it stands in `_live`, so that no other thread takes it for an orphan."""
_helpers: set[int] = set()


def become_subreaper() -> None:
    """Adopt what the programs started from here leave behind, so that it can be ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise DashboardError(
            f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(ctypes.get_errno())}. Linux 3.4 or newer is required."
        )


def start(program: Callable[[], subprocess.Popen[bytes]], mark: str) -> subprocess.Popen[bytes]:
    """Call `program`, and count what it starts as living under `mark`."""
    with _lock:
        leader = program()
        _live[leader.pid] = mark
    return leader


def forget(leader: int) -> None:
    """Count the program as living no more."""
    with _lock:
        del _live[leader]


def signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; return False where there is no such group."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def end(leader: int, mark: str) -> int:
    """End the background processes of an ended leader; how many there were."""
    # Listed before the signal: afterwards nobody could tell whose the dying ones were.
    group = _group_members(leader) if signal_group(leader, 0) else set()
    signal_group(leader, signal.SIGKILL)
    for pid in group:  # one that has left the group since
        _kill(pid)
    return len(_end_orphans(mark, ours=leader, dying=group))


def _group_members(group: int) -> set[int]:
    members = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(int(entry)) == group:
                    members.add(int(entry))
    return members


def _end_orphans(mark: str, ours: int, dying: set[int]) -> set[int]:
    """End the adopted processes that carry `mark` or belong to no living stage; their numbers and those of `dying`.

    What is dying carries no mark any more, so nobody else would know whose it was: it is waited for by its number.
    """
    ended = set(dying)
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        dying = {pid for pid in dying if not _has_ended(pid)}
        orphans = [pid for pid in _list_children() if pid not in dying and _is_orphan(pid, mark, ours)]
        if not orphans and not dying:
            return ended
        for pid in orphans:
            if not _has_ended(pid):
                dying.add(pid)
                _kill(pid)
        ended |= dying
        time.sleep(0.001)
    raise DashboardError(f"Processes {sorted(ended)[:5]} could not be killed. Find them with ps and kill them.")


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _has_ended(pid: int) -> bool:
    """Return True where the process is gone. This reaps an adopted one; another stays until its parent reaps it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return not os.path.exists(f"/proc/{pid}")


def _list_children() -> list[int]:
    pids = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            pids += [int(pid) for pid in Path(f"/proc/self/task/{thread}/children").read_text().split()]
    return pids


def _is_orphan(pid: int, mark: str, ours: int) -> bool:
    with _lock:
        living = {other: text for other, text in _live.items() if other != ours}
    if pid in living or pid == ours or pid in _helpers:
        return False
    carried = mark_of(pid)
    if carried is None:
        # Its environment cannot be read (setuid, or it is just ending): only beside living stages may it belong to one.
        return not living
    return carried == mark or carried not in living.values()


def spare(pid: int) -> None:
    """Count the child `pid` as the night's own, not as a leftover of a stage."""
    _helpers.add(pid)


@contextlib.contextmanager
def watch(night: str, remedies: Sequence[Sequence[str]] = ()) -> Iterator[None]:
    """While the block lasts, another process stands by to end this night's programs should this one be killed.

    remedies: commands for what these programs leave elsewhere; called only where one of them had to be ended.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    argv = [sys.executable, "-I", "-S", watchdog.__file__, night, json.dumps([list(each) for each in remedies])]
    guard = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment, cwd="/", start_new_session=True)
    spare(guard.pid)
    try:
        yield
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
