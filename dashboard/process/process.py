"""Run one program of somebody else's: a deadline always, a bounded log, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboard.process import orphans
from dashboard.process.log import BoundedLog
from dashboard.process.orphans import DEADLINE_S, signal_group
from dashboard.process.sandbox import Sandbox, split_code
from dashboard.process.watchdog import MARK
from tvmdash.errors import DashboardError

GRACE_S = 5.0
_LONGEST_WAIT_S = 3600.0
_DRAINED_CHUNKS = 64

_night = str(os.getpid())
_cancelled = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)


class Cancelled(Exception):
    """The night was interrupted while this program ran; the program has been ended."""


@dataclass(frozen=True)
class ProcessOutcome:
    """The end of one program: `exit_code` is None where a signal ended it, and `tail` is the last of its output.

    `left_behind` background processes were ended; `left_out_bytes` of its output are not in the log.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    elapsed_s: float
    left_behind: int
    tail: str
    left_out_bytes: int = 0


def begin_night(mark: str) -> None:
    """Give the programs that carry no mark of their own (pip, the health check) the night's."""
    global _night  # noqa: PLW0603 - one night in a process, as one list of living programs
    _night = mark


def cancel_all() -> None:
    """End every program that runs now; each `run` then raises Cancelled, and so does every later one."""
    os.eventfd_write(_cancelled, 1)


def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    log: Path,
    sandbox: Sandbox | None = None,
) -> ProcessOutcome:
    """Run `argv`, in a sandbox where one is given, to its end or to its deadline; its output goes to `log`.

    Raises DashboardError where the program cannot be started, Cancelled after `cancel_all`.
    """
    mark = env.get(MARK) or f"{_night}/tool-{time.monotonic_ns()}"
    begun = time.monotonic()
    with BoundedLog(log) as output, sandbox.lend() if sandbox else contextlib.nullcontext():
        command = sandbox.wrap(argv, cwd) if sandbox else argv
        leader = orphans.start(lambda: _start(command, cwd, {**env, MARK: mark}), mark)
        try:
            timed_out = _watch(leader, output, begun + timeout_s)
        finally:
            try:
                _end_group(leader)
                left_behind = orphans.end(leader.pid, mark)
            finally:
                _drain(leader, output)
                orphans.forget(leader.pid)
    elapsed_s = time.monotonic() - begun
    exit_code, number = split_code(leader.returncode, is_sandboxed=sandbox is not None)
    return ProcessOutcome(
        exit_code=exit_code,
        signal=number,
        timed_out=timed_out,
        elapsed_s=elapsed_s,
        left_behind=0 if sandbox else left_behind,  # what is left there ends with the sandbox's own first process
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
        raise DashboardError(f"{argv[0]}: could not be started: {_format_start_error(argv[0], error)}.") from error


def _format_start_error(program: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError) and os.path.isfile(program):
        with open(program, "rb") as file:
            first = file.readline(200).decode(errors="replace").rstrip("\n")
        return f"the interpreter in its first line does not exist: {first!r}. Install it or correct the line"
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
                    signal_group(leader.pid, signal.SIGTERM)
    finally:
        os.close(pidfd)


def _end_group(leader: subprocess.Popen[bytes]) -> None:
    if leader.poll() is None:
        signal_group(leader.pid, signal.SIGKILL)
        try:
            leader.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise DashboardError(
                f"Process {leader.pid} could not be killed because it hangs in the kernel. Check its disk."
            ) from None


def _drain(leader: subprocess.Popen[bytes], output: BoundedLog) -> None:
    """Take what is still in the pipe, now that nobody writes to it any more."""
    assert leader.stdout is not None
    os.set_blocking(leader.stdout.fileno(), False)
    with contextlib.suppress(BlockingIOError):
        for _ in range(_DRAINED_CHUNKS):  # bounded: what could not be ended may write for ever
            if not output.copy_once(leader.stdout):
                break
    leader.stdout.close()
