"""One night at a time in a home; the lock says who holds it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tvmdash.common import stamp_of, utc_now
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files import lock

_GLANCE_S = 0.2
"""`is_held` of another process holds the lock for an instant."""


class HeldError(DashboardError):
    """Another night holds the home."""


@contextlib.contextmanager
def night_lock(home: Home) -> Iterator[None]:
    """Hold the home, or raise HeldError at once. The system lets go of it when this process ends, however it ends."""
    try:
        held = lock.take(home.lock_file, f"since {stamp_of(utc_now())}", within_s=_GLANCE_S)
    except OSError as error:
        raise DashboardError(
            f"{home.lock_file}: {error.strerror}. A night must be able to write to its home."
        ) from error
    if held is None:
        holder = lock.read_holder(home.lock_file) or "an unknown process"
        raise HeldError(f"{home.root}: another night holds this home: {holder}. Wait for it, or end it.")
    with held:
        yield


def is_held(home: Home) -> bool:
    """Whether a night runs in the home now."""
    return lock.is_held(home.lock_file)


def read_holder_pid(home: Home) -> int | None:
    """The ID of the process that last held the home; None where its lock names none."""
    return lock.read_holder_pid(home.lock_file)
