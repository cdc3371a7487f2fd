"""Locks between nights that share a folder: flock(2) on small files that say who holds them."""

from __future__ import annotations

import datetime
import fcntl
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from dashboard.artifacts.artifact import ArtifactError
from tvmdash import common

_POLL_S = 0.1


class Deadline:
    """A moment on the monotonic clock by which a piece of work has to be done."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._moment = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Seconds left, 0 where there are none."""
        return max(0.0, self._moment - time.monotonic())


class Lock:
    """A held lock; released by `release`, by leaving the block, or by the process's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Let go; a second call does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def try_exclusive(path: Path, purpose: str) -> Lock | None:
    """The lock, or None where somebody holds it; `purpose` is what a waiting night is told."""
    descriptor = _open(path)
    if not _flock(descriptor, fcntl.LOCK_EX):
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}, {purpose}".encode(), 0)
    return Lock(descriptor)


def exclusive(path: Path, purpose: str, deadline: Deadline) -> Lock:
    """The lock, waited for until `deadline`; then ArtifactError says who holds it."""
    while True:
        lock = try_exclusive(path, purpose)
        if lock is not None:
            return lock
        _wait(path, deadline)


def shared(path: Path, deadline: Deadline) -> Lock:
    """A lock that any number of nights hold together while nobody holds it exclusively."""
    descriptor = _open(path)
    try:
        while not _flock(descriptor, fcntl.LOCK_SH):
            _wait(path, deadline)
    except BaseException:
        os.close(descriptor)
        raise
    return Lock(descriptor)


def _open(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _flock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(path: Path, deadline: Deadline) -> None:
    if not deadline.left_s():
        raise ArtifactError(
            f"{path}: waited {deadline.timeout_s:.0f} s for {holder_of(path)}. Let it finish, or allow more time."
        )
    time.sleep(min(_POLL_S, deadline.left_s()))


def holder_of(path: Path) -> str:
    """Who took the lock last, in words, with the moment in UTC."""
    try:
        words = path.read_text(encoding="utf-8", errors="replace").strip()
        taken = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    except FileNotFoundError:
        return "a process that has just let go"
    return f"{words or 'an unnamed process'}, since {common.stamp_of(taken)}"
