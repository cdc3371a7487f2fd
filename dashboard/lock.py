"""One night at a time in a home; the lock says who holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator

from tvmdash.common import stamp_of, utc_now
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError


class HeldError(DashboardError):
    """Another night holds the home."""


@contextlib.contextmanager
def night_lock(home: Home) -> Iterator[None]:
    """Hold the home, or raise HeldError at once. The system lets go of it when this process ends, however it ends."""
    descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "an unknown process"
            raise HeldError(f"{home.root}: another night holds this home: {holder}. Wait for it, or end it.") from None
        text = f"process {os.getpid()} on {socket.gethostname()} since {stamp_of(utc_now())}\n"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held(home: Home) -> bool:
    """Whether a night runs in the home now."""
    try:
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
