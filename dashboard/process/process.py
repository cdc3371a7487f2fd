"""Run one program of somebody else's: a deadline always, a bounded log, and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from dashboard.process import orphans
from dashboard.process.orphans import DEADLINE_S, signal_group
from dashboard.process.sandbox import Sandbox, split_code
from dashboard.process.watchdog import MARK
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact
from tvmdash.text import clean_lines

HEAD_BYTES = 64 << 10
TAIL_BYTES = 192 << 10
_CHUNK_BYTES = 64 << 10
_END_BYTES = 8192
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A stage may have put a pipe there, which nobody reads, or a link to a file that is not its own."""


class BoundedLog:
    """The first 64 KiB of an output go to the file at once, the last 192 KiB when it ends, the rest is counted."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, _NEW, 0o666), "wb", buffering=0)
        self._head_bytes = 0
        self._chunks: deque[bytes] = deque()
        self._kept_bytes = 0
        self._left_out_bytes = 0
        self._end = b""
        self._fault = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def copy_once(self, source: IO[bytes]) -> bool:
        """Take what `source` offers now; False at its end."""
        chunk = os.read(source.fileno(), _CHUNK_BYTES)
        if chunk:
            self.write(chunk)
        return bool(chunk)

    def write(self, chunk: bytes) -> None:
        """Keep `chunk` where it falls within the bounds."""
        self._end = (self._end + chunk)[-_END_BYTES:]
        head = chunk[: max(0, HEAD_BYTES - self._head_bytes)]
        self._head_bytes += len(head)
        self._put(head)
        rest = chunk[len(head) :]
        if rest:
            self._chunks.append(rest)
            self._kept_bytes += len(rest)
        self._drop(self._kept_bytes - TAIL_BYTES)

    def _drop(self, over_bytes: int) -> None:
        """Leave out the oldest of what is kept."""
        while over_bytes > 0:
            oldest = self._chunks.popleft()
            if len(oldest) > over_bytes:
                self._chunks.appendleft(oldest[over_bytes:])
            dropped = min(len(oldest), over_bytes)
            over_bytes -= dropped
            self._kept_bytes -= dropped
            self._left_out_bytes += dropped

    def close(self) -> None:
        """Write the kept end behind the beginning."""
        if self._left_out_bytes:
            self._put(f"\n[... {self._left_out_bytes} bytes omitted ...]\n".encode())
        self._put(b"".join(self._chunks))
        self._chunks.clear()
        self._file.close()

    def _put(self, content: bytes) -> None:
        if self._fault:
            return
        try:
            self._file.write(content)
        except OSError as error:
            # A full disk must not end the night: the tail still reaches the status.
            self._fault = f"\n[log not written: {error.strerror}]"

    @property
    def left_out_bytes(self) -> int:
        return self._left_out_bytes

    def _cut_to_whole_characters(self) -> bytes:
        """Cut the end at a word's begin: half a secret could not be told from other text."""
        return self._end if len(self._end) < _END_BYTES else re.sub(rb"^\S*", b"", self._end)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines, at most 2,000 characters; secrets are hidden, control characters replaced."""
        text = redact(self._cut_to_whole_characters().decode("utf-8", errors="replace")) + self._fault
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return "\n".join(clean_lines(text).strip().split("\n")[-lines:])[-2000:]


GRACE_S = 5.0
# epoll takes milliseconds as a C int, 24 days at most; a timeout in a config may be longer.
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
            # A group of its own, which can be ended as a whole.
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
