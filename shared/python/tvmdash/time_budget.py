"""The time that a service of others may cost, and what is asked again within it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tvmdash.errors import DashboardError

_FIRST_PAUSE_S = 0.5
_T = TypeVar("_T")


class TimeBudget:
    """So many seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """The seconds left, 0 or more."""
        return max(0.0, self._end - time.monotonic())

    def repeat(self, call: Callable[[], _T], attempts: int, wait_after: Callable[[DashboardError], float | None]) -> _T:
        """What `call` returns, tried up to `attempts` times with pauses that double.

        wait_after: the least seconds to wait after an error; None where the error is final.
        """
        pause_s = _FIRST_PAUSE_S
        for _ in range(attempts - 1):
            try:
                return call()
            except DashboardError as error:
                asked_s = wait_after(error)
                wait_s = max(pause_s, asked_s or 0.0)
                if asked_s is None or wait_s >= self.left_s:
                    raise
            time.sleep(wait_s)
            pause_s *= 2
        return call()
