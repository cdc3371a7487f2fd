"""The time that one route may cost, and what is asked again within it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tvmdash.http_util import end_after
from tvmdash.routes.outcome import BusyError, UncertainError

_REQUEST_S, _ATTEMPTS, _FIRST_PAUSE_S = 20.0, 4, 0.5
_T = TypeVar("_T")


class Budget:
    """So many seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def spend(self, call: Callable[[float], _T], *, again: bool) -> _T:
        """What `call` returns, which is given the seconds that it may take.

        It is repeated while the other side is busy and, with `again`, where its outcome is not known: where doing it
        twice does nothing more.
        """
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._try(call)
            except (BusyError, UncertainError) as error:
                wait_s = max(pause_s, error.wait_s if isinstance(error, BusyError) else 0.0)
                last = attempt == _ATTEMPTS or wait_s >= self.left_s
                if last or not (again or isinstance(error, BusyError)):
                    raise
            time.sleep(wait_s)
            pause_s *= 2
        raise AssertionError

    def _try(self, call: Callable[[float], _T]) -> _T:
        limit_s = min(_REQUEST_S, self.left_s)
        if limit_s <= 0:
            raise BusyError(f"the {self._seconds:g} s of the route are used up")
        try:
            return end_after(limit_s, lambda: call(limit_s))
        except TimeoutError:
            raise UncertainError(f"there was no answer within {limit_s:.0f} s") from None
