"""One night at a time in a home; the lock says who holds it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from dashboard.night import machine_lock
from tvmdash.common import stamp_of, utc_now
from tvmdash.common.files import lock
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_GLANCE_S = 0.2
"""`is_held` of another process holds the lock for an instant."""
_PATIENCE_S = 1.0
"""Interval at which a waiting night asks whether the holder still lets nights pass."""
_log = logging.getLogger("night")


class HeldError(DashboardError):
    """Another night holds the home, or another home's the machine."""


@contextlib.contextmanager
def night_lock(
    home: Home,
    *,
    waits: bool = False,
    patience_s: float = machine_lock.PATIENCE_S,
    measures: bool = True,
    cards: Sequence[str] = (),
) -> Iterator[None]:
    """Hold the home and its machine, or raise HeldError. The system lets go of both when this process ends.

    cards: those of the machine that are measured on, where nothing else is. What `measures` nothing that anybody
    compares needs no quiet machine and holds the home alone.

    It raises at once, or with `waits` only where the home's holder does not let nights pass (`take_turn`), or another
    home's measurement has the machine for `patience_s`.
    """
    with _naming(home.lock_file):
        held = _wait_for_turn(home) if waits else _take(home, _GLANCE_S)
    if held is None:
        holder = lock.read_holder(home.lock_file) or "an unknown process"
        raise HeldError(f"{home.root}: another night is using this home: {holder}. Wait for it, or stop it.")
    with held, _hold_machine(home, patience_s if waits else 0.0, cards) if measures else contextlib.nullcontext():
        yield


def _hold_machine(home: Home, patience_s: float, cards: Sequence[str]) -> contextlib.AbstractContextManager[object]:
    held = machine_lock.hold(home, patience_s, cards)
    if held is None:
        raise HeldError(f"{machine_lock.describe_holders(cards)} Wait for it, or stop it.")
    return held


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """DashboardError with the remedy where the lock `path` cannot be opened."""
    try:
        yield
    except OSError as error:
        raise DashboardError(f"{path}: {error.strerror}. Nights need write permission in their home.") from error


def _take(home: Home, within_s: float) -> lock.Lock | None:
    return lock.take(home.lock_file, f"since {stamp_of(utc_now())}", within_s=within_s)


def _wait_for_turn(home: Home) -> lock.Lock | None:
    """The home, after what lets nights pass has let go of it; None where something else holds it."""
    held = _take(home, _GLANCE_S)
    if held is not None:
        return held
    with lock.take(home.waiting_file, within_s=_GLANCE_S) or contextlib.nullcontext():
        if lock.is_held(home.turn_file):
            _log.info("%s is busy with another measurement; the night starts when that run ends.", home.root)
        while held is None and lock.is_held(home.turn_file):
            held = _take(home, _PATIENCE_S)
        return held or _take(home, _GLANCE_S)


@contextlib.contextmanager
def take_turn(home: Home) -> Iterator[None]:
    """Let nights that begin while this is held wait for its end; HeldError where one waits, or another has its turn."""
    with _naming(home.turn_file):
        held = lock.take(home.turn_file, within_s=_GLANCE_S)
    if held is None:
        raise HeldError(f"{home.root}: another command is measuring in this home.")
    with held:
        if lock.is_held(home.waiting_file):  # asked after the turn is taken, as the night asks after it waits
            raise HeldError(f"{home.root}: a night is waiting for this home.")
        if machine_lock.is_waited_for():
            raise HeldError(f"{machine_lock.node()}: a night of another home is waiting for this machine.")
        yield


def is_held(home: Home) -> bool:
    return lock.is_held(home.lock_file)


def read_holder_pid(home: Home) -> int | None:
    """The ID of the process that last held the home; None where its lock names none."""
    return lock.read_holder_pid(home.lock_file)
