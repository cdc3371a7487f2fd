"""How long Slack is waited for, all in all, and what is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tvmdash.http_util import end_after
from tvmdash.slack_util.errors import BusyError, UncertainError, make_outcome_error

_REQUEST_S, _ATTEMPTS, _FIRST_PAUSE_S = 15.0, 5, 0.5
_T = TypeVar("_T")


class Patience:
    """The time that may be spent on Slack, all in all; it begins when this is made."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        """The seconds left, 0 or more."""
        return max(0.0, self._end - time.monotonic())

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        time.sleep(min(seconds, self.left_s))

    def within(self, call: Callable[[float], _T]) -> _T:
        """What `call` returns, which is given the seconds that it may take; SlackError for every other outcome."""
        limit_s = min(_REQUEST_S, self.left_s)
        if limit_s <= 0:
            raise BusyError(f"the {self._seconds:g} s for Slack are used up")
        try:
            return end_after(limit_s, lambda: call(limit_s))
        except Exception as error:  # noqa: BLE001 - an SDK's exceptions hold the request, and with it the token
            fault = make_outcome_error(error)
        raise fault

    def persist(self, call: Callable[[], _T], *, again: bool = False) -> _T:
        """`call`, repeated with pauses while Slack is busy, and, with `again`, also where its outcome is not known."""
        pause_s = _FIRST_PAUSE_S
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return call()
            except (BusyError, UncertainError) as error:
                wait_s = max(pause_s, getattr(error, "wait_s", None) or 0.0)
                if attempt == _ATTEMPTS or wait_s >= self.left_s or not (again or isinstance(error, BusyError)):
                    raise
            time.sleep(wait_s)
            pause_s *= 2
        raise AssertionError
