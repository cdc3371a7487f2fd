"""One try at a time in a home, and how it is cancelled: whoever removes its file in results/tries/running ends it."""

from __future__ import annotations

import contextlib
import logging
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from tvmdash.common import stamp_of, utc_now
from tvmdash.contracts.tries import Asked, TryRequest
from tvmdash.dashboard_info import Home
from tvmdash.files import lock
from tvmdash.tries import files

_POLL_S = 0.5
_GLANCE_S = 1.0
"""How often to look whether somebody cancelled it."""
_BRIEFLY_S = 0.2
"""Who asks whether a lock is held holds it for an instant."""
_log = logging.getLogger("try")


@dataclass
class Claim:
    """A request that is being measured. cancelled: somebody wanted it to end."""

    id: str
    request: TryRequest
    cancelled: bool = False

    def asked(self, measured_s: float) -> Asked:
        """Who asked, where so much had been measured before."""
        return Asked(self.request.asked_by, self.request.asked_at, measured_s)


@contextlib.contextmanager
def take_turn(home: Home, *, lets_others_pass: bool = False) -> Iterator[None]:
    """Try alone in the home, after whatever else is being tried there.

    What `lets_others_pass` comes after everybody who waits: it has much to do, and they one thing.
    """
    path, waiting = files.lock_of(home), home.tries / ".waiting"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _wait(path, waiting, lets_others_pass=lets_others_pass):
        yield


def _wait(path: Path, waiting: Path, *, lets_others_pass: bool) -> lock.Lock:
    told = False
    with contextlib.ExitStack() as stack:
        while True:
            gives_way = lets_others_pass and lock.is_held(waiting)
            held = None if gives_way else lock.take(path, f"since {stamp_of(utc_now())}", within_s=_BRIEFLY_S)
            if held is not None:
                return held
            if not told:
                _log.info("waiting for another try in this home: %s", lock.read_holder(path) or "another process")
                if not lets_others_pass:
                    stack.enter_context(lock.take(waiting, within_s=_BRIEFLY_S) or contextlib.nullcontext())
            told = True
            time.sleep(_POLL_S)


@contextlib.contextmanager
def claim(home: Home, request: TryRequest, name: str) -> Iterator[Claim]:
    """A request that was begun in one's turn; KeyboardInterrupt in the block where somebody takes it away."""
    path, made = files.running_of(home) / f"{name}.json", Claim(name, request)
    try:
        with _watch(path, made):
            yield made
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _watch(path: Path, made: Claim) -> Iterator[None]:
    """Interrupt this process, as ^C does, when the file is gone."""

    def look(_number: int, _frame: FrameType | None) -> None:
        if not path.exists():
            signal.setitimer(signal.ITIMER_REAL, 0)
            made.cancelled = True
            _log.info("%s was cancelled.", made.id)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _GLANCE_S, _GLANCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
