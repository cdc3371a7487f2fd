"""Locks between nights that share a folder of TVM builds, waited for until a deadline."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import NoReturn

from dashboard.artifacts.artifact import ArtifactError
from tvmdash import common
from tvmdash.common.files import lock
from tvmdash.common.files.lock import Lock


class LockDeadline:
    """A moment on the monotonic clock by which a piece of work has to be done."""

    def __init__(self, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._moment = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Return the seconds left, 0 where there are none."""
        return max(0.0, self._moment - time.monotonic())


def try_exclusive(path: Path, purpose: str) -> Lock | None:
    """Take the lock, or return None where somebody holds it; `purpose` is what a waiting night is told."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return lock.take(path, purpose)


def exclusive(path: Path, purpose: str, deadline: LockDeadline) -> Lock:
    """Take the lock, waiting until `deadline`; then ArtifactError says who holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return lock.take(path, purpose, within_s=deadline.left_s()) or _refuse(path, deadline)


def shared(path: Path, deadline: LockDeadline) -> Lock:
    """Take a lock that any number of nights hold together while nobody holds it exclusively."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return lock.take(path, shared=True, within_s=deadline.left_s()) or _refuse(path, deadline)


def _refuse(path: Path, deadline: LockDeadline) -> NoReturn:
    raise ArtifactError(
        f"{path}: gave up after waiting {deadline.timeout_s:.0f} s for {holder_of(path)}. Let it finish, or allow "
        "more time."
    )


def holder_of(path: Path) -> str:
    """Describe who took the lock last, with the moment in UTC."""
    try:
        taken = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC)
    except FileNotFoundError:
        return "a process that has just released it"
    return f"{lock.read_holder(path) or 'an unnamed process'}, since {common.stamp_of(taken)}"
