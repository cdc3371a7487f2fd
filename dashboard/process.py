"""Run one program of somebody else's: a deadline always, a bounded log, and nothing left behind.

The night is a child subreaper (prctl(2)): a process that a stage detaches becomes a child of the night when its
parent ends, where `_end_orphans` finds it. A process that outlives the night itself is ended by `guardian`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.bounded_log import BoundedLog
from tvmdash.errors import DashboardError

MARK = "TVMDASH_STAGE_ID"
"""Environment variable by which the processes of one stage are known: `<night>/<number>`."""

GRACE_S = 5.0
_PR_SET_CHILD_SUBREAPER = 36
_ORPHANS_DEADLINE_S = 10.0

_live: dict[int, str] = {}
_lock = threading.Lock()
_cancelled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


class Cancelled(Exception):
    """The night was interrupted while this program ran; the program has been ended."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended. `exit_code` is None where a signal ended it; `tail` is the end of its output."""

    exit_code: int | None
    signal: int | None
    timed_out: bool
    elapsed_s: float
    left_behind: int
    tail: str


def become_subreaper() -> None:
    """Adopt what the programs started from here leave behind, so that it can be ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise DashboardError(f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(ctypes.get_errno())}. Linux 3.4 is needed.")


def cancel_all() -> None:
    """End every program that runs now; each `run` then raises Cancelled, and so does every later one."""
    os.eventfd_write(_cancelled, 1)


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, log: Path) -> Outcome:
    """Run `argv` to its end or to its deadline; its output (stdout and stderr) goes to `log`.

    Raises DashboardError where the program cannot be started, Cancelled after `cancel_all`.
    """
    mark = env.get(MARK, f"{os.getpid()}/{time.monotonic_ns()}")
    begun = time.monotonic()
    with BoundedLog(log) as output:
        leader = _start(argv, cwd, {**env, MARK: mark})
        with _lock:
            _live[leader.pid] = mark
        try:
            timed_out = _watch(leader, output, begun + timeout_s)
        finally:
            _end_group(leader)
            left_behind = _end_leftovers(leader, mark)
            _drain(leader, output)
            with _lock:
                del _live[leader.pid]
    code = leader.returncode
    return Outcome(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        timed_out=timed_out,
        elapsed_s=time.monotonic() - begun,
        left_behind=left_behind,
        tail=output.tail(),
    )


def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise DashboardError(f"{argv[0]}: cannot be started: {error.strerror}.") from error


def _watch(leader: subprocess.Popen[bytes], output: BoundedLog, deadline: float) -> bool:
    """Copy output until the leader ends; True where the deadline came first, and then the leader was told to end."""
    assert leader.stdout is not None
    pidfd = os.pidfd_open(leader.pid)
    timed_out = False
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(leader.stdout, selectors.EVENT_READ)
            selector.register(pidfd, selectors.EVENT_READ)
            selector.register(_cancelled, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
                if leader.stdout.fileno() in ready and not output.copy_once(leader.stdout):
                    selector.unregister(leader.stdout)
                if pidfd in ready:
                    return timed_out
                if _cancelled in ready:
                    raise Cancelled
                if time.monotonic() >= deadline:
                    if timed_out:
                        return True
                    timed_out, deadline = True, time.monotonic() + GRACE_S
                    _signal_group(leader.pid, signal.SIGTERM)
    finally:
        os.close(pidfd)


def _signal_group(group: int, number: int) -> bool:
    """Whether the group existed."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    if leader.poll() is None:
        _signal_group(leader.pid, signal.SIGKILL)
        leader.wait()


def _end_leftovers(leader: subprocess.Popen[bytes], mark: str) -> int:
    """End the background processes of an ended leader; how many there were."""
    group = _group_members(leader.pid) if _signal_group(leader.pid, 0) else set()
    _signal_group(leader.pid, signal.SIGKILL)
    return len(group | _end_orphans(mark, ours=leader.pid))


def _group_members(group: int) -> set[int]:
    members = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getpgid(int(entry)) == group:
                    members.add(int(entry))
    return members


def _end_orphans(mark: str, ours: int) -> set[int]:
    """End the adopted processes that carry `mark` or belong to no living stage; their numbers."""
    ended: set[int] = set()
    deadline = time.monotonic() + _ORPHANS_DEADLINE_S
    while time.monotonic() < deadline:
        orphans = [pid for pid in _children() if _is_leftover(pid, mark, ours)]
        if not orphans:
            return ended
        for pid in orphans:
            ended.add(pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    raise DashboardError(f"Processes {sorted(ended)[:5]} cannot be ended. Look for them with ps and end them.")


def _children() -> list[int]:
    found = []
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(pid) for pid in Path(f"/proc/self/task/{thread}/children").read_text().split()]
    return found


def _is_leftover(pid: int, mark: str, ours: int) -> bool:
    with _lock:
        living = {other: text for other, text in _live.items() if other != ours}
    if pid in living or pid == ours or pid in _helpers:
        return False
    carried = mark_of(pid)
    if carried is None:
        return not living
    return carried == mark or carried not in living.values()


_helpers: set[int] = set()


def spare(pid: int) -> None:
    """Count the child `pid` as the night's own, not as a leftover of a stage."""
    _helpers.add(pid)


def mark_of(pid: int) -> str | None:
    """The stage id that the process carries in its environment, if it can be read."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = f"{MARK}=".encode()
    found = (item[len(prefix) :] for item in environment.split(b"\0") if item.startswith(prefix))
    return next((text.decode(errors="replace") for text in found), None)


def _drain(leader: subprocess.Popen[bytes], output: BoundedLog) -> None:
    """Take what is still in the pipe, now that nobody writes to it any more."""
    assert leader.stdout is not None
    os.set_blocking(leader.stdout.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        while output.copy_once(leader.stdout):
            pass
    leader.stdout.close()
