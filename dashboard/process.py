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
_LONGEST_WAIT_S = 3600.0
_DRAINED_CHUNKS = 64

_live: dict[int, str] = {}
_lock = threading.Lock()
"""Held from the start of a program until it stands in `_live`, so that no other thread takes it for an orphan."""
_night = str(os.getpid())
_cancelled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


class Cancelled(Exception):
    """The night was interrupted while this program ran; the program has been ended."""


@dataclass(frozen=True)
class Outcome:
    """How a program ended. `exit_code` is None where a signal ended it; `tail` is the end of its output.

    `left_behind` background processes were ended; `left_out_bytes` of its output are not in the log.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    elapsed_s: float
    left_behind: int
    tail: str
    left_out_bytes: int = 0


def become_subreaper() -> None:
    """Adopt what the programs started from here leave behind, so that it can be ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise DashboardError(f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(ctypes.get_errno())}. Linux 3.4 is needed.")


def begin_night(mark: str) -> None:
    """Give the programs that carry no mark of their own (pip, the health check) the night's."""
    global _night  # noqa: PLW0603 - one night in a process, as one list of living programs
    _night = mark


def cancel_all() -> None:
    """End every program that runs now; each `run` then raises Cancelled, and so does every later one."""
    os.eventfd_write(_cancelled, 1)


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float, log: Path) -> Outcome:
    """Run `argv` to its end or to its deadline; its output (stdout and stderr) goes to `log`.

    Raises DashboardError where the program cannot be started, Cancelled after `cancel_all`.
    """
    mark = env.get(MARK) or f"{_night}/tool-{time.monotonic_ns()}"
    begun = time.monotonic()
    with BoundedLog(log) as output:
        with _lock:
            leader = _start(argv, cwd, {**env, MARK: mark})
            _live[leader.pid] = mark
        try:
            timed_out = _watch(leader, output, begun + timeout_s)
        finally:
            try:
                _end_group(leader)
                left_behind = _end_leftovers(leader, mark)
            finally:
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
        left_out_bytes=output.left_out_bytes,
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
    except (OSError, ValueError) as error:  # ValueError: NUL or half a character in an argument or a variable
        raise DashboardError(f"{argv[0]}: cannot be started: {_why_not_started(argv[0], error)}.") from error


def _why_not_started(program: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError) and os.path.isfile(program):
        with open(program, "rb") as file:
            first = file.readline(200).decode(errors="replace").rstrip("\n")
        return f"the interpreter that its first line names is not there: {first!r}. Install it or mend the line"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


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
                ready = {
                    key.fd for key, _ in selector.select(min(max(0.0, deadline - time.monotonic()), _LONGEST_WAIT_S))
                }
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
        try:
            leader.wait(_ORPHANS_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise DashboardError(
                f"Process {leader.pid} cannot be ended. It hangs in the kernel: look at its disk."
            ) from None


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
            if not _has_ended(pid):
                ended.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    raise DashboardError(f"Processes {sorted(ended)[:5]} cannot be ended. Look for them with ps and end them.")


def _has_ended(child: int) -> bool:
    """Whether the adopted child is already gone; it is then forgotten."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] == child
    except ChildProcessError:
        return True


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
    prefix = os.fsencode(f"{MARK}=")
    found = (item[len(prefix) :] for item in environment.split(b"\0") if item.startswith(prefix))
    return next((os.fsdecode(text) for text in found), None)


def _drain(leader: subprocess.Popen[bytes], output: BoundedLog) -> None:
    """Take what is still in the pipe, now that nobody writes to it any more."""
    assert leader.stdout is not None
    os.set_blocking(leader.stdout.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(_DRAINED_CHUNKS):  # bounded: what could not be ended may write for ever
            if not output.copy_once(leader.stdout):
                break
    leader.stdout.close()
