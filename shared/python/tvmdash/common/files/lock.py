"""The one lock between processes: flock(2) on a file or a folder. The system releases it when its holder ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_POLL_S = 0.1
_PROCESS = "process "
"""Prefix of the ID of a holder."""


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


def take(
    path: Path, purpose: str = "", *, shared: bool = False, within_s: float = 0.0, everyone: bool = False
) -> Lock | None:
    """Lock the file `path`, which is made where it is not there; None where others hold it for `within_s`.

    A `shared` lock is held by any number of processes together while nobody holds it alone. With a
    `purpose`, who holds it is written into the file, for `read_holder`. `everyone`: all users of the machine can take
    it. OSError where the file cannot be opened.
    """
    end = time.monotonic() + within_s
    descriptor = _open_for_everyone(path) if everyone else os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not try_descriptor(descriptor, shared=shared):
            left_s = end - time.monotonic()
            if left_s <= 0:
                os.close(descriptor)
                return None
            time.sleep(min(_POLL_S, left_s))
    except BaseException:
        os.close(descriptor)
        raise
    if purpose:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{_PROCESS}{os.getpid()} on {socket.gethostname()}, {purpose}".encode(), 0)
    return Lock(descriptor)


def _open_for_everyone(path: Path) -> int:
    # in a sticky folder, open(2) with O_CREAT refuses another user's file (proc(5), protected_regular)
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        os.fchmod(descriptor, 0o666)
        return descriptor
    return os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)


def is_held(path: Path) -> bool:
    """Return True where a process holds the file exclusively now; nobody has to wait for this check."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not try_descriptor(descriptor, shared=True)
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> str:
    """Return what the last exclusive holder wrote; empty where it wrote nothing."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace").strip()
    return ""


def read_holder_pid(path: Path) -> int | None:
    """Return the ID of the last exclusive holder; None where it wrote none."""
    text = read_holder(path)
    pid = text.removeprefix(_PROCESS).partition(" ")[0]
    return int(pid) if text.startswith(_PROCESS) and pid.isdecimal() else None


def try_descriptor(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file and return True where nobody else held it. OSError where the filesystem has no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_for_descriptor(descriptor: int) -> None:
    """Lock an open file, however long others hold it: for work of an instant."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextlib.contextmanager
def wait_for(path: Path) -> Iterator[None]:
    """Hold the file exclusively while the block runs, however long others hold it before."""
    with path.open("ab") as file:
        wait_for_descriptor(file.fileno())
        yield
