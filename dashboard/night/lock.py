"""One night at a time in a home; the lock says who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator

from tvmdash.common import stamp_of, utc_now
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_TRIES = 4
_PAUSE_S = 0.05


class HeldError(DashboardError):
    """Another night holds the home."""


@contextlib.contextmanager
def night_lock(home: Home) -> Iterator[None]:
    """Hold the home, or raise HeldError at once. The system lets go of it when this process ends, however it ends."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise DashboardError(
            f"{home.lock_file}: {error.strerror}. A night must be able to write to its home."
        ) from error
    try:
        if not _taken(descriptor):
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "an unknown process"
            raise HeldError(f"{home.root}: another night holds this home: {holder}. Wait for it, or end it.")
        text = f"process {os.getpid()} on {socket.gethostname()} since {stamp_of(utc_now())}\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    for _ in range(_TRIES):  # more than one: `is_held` holds it for an instant
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        else:
            return True
    return False


def is_held(home: Home) -> bool:
    """Whether a night runs in the home now."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
