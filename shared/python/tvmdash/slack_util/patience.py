"""How long Slack is waited for, all in all, and what is asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from tvmdash.errors import DashboardError
from tvmdash.http_util import end_after
from tvmdash.slack_util.errors import BusyError, UncertainError, make_outcome_error
from tvmdash.time_budget import TimeBudget

_REQUEST_S, _ATTEMPTS = 15.0, 5
_T = TypeVar("_T")


class Patience(TimeBudget):
    """The time that may be spent on Slack, all in all; it begins when this is made."""

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        time.sleep(min(seconds, self.left_s))

    def within(self, call: Callable[[float], _T]) -> _T:
        """What `call` returns, which is given the seconds that it may take; SlackError for every other outcome."""
        limit_s = min(_REQUEST_S, self.left_s)
        if limit_s <= 0:
            raise BusyError(f"the time limit of {self.seconds:g} s for Slack is used up")
        try:
            return end_after(limit_s, lambda: call(limit_s))
        except Exception as error:  # noqa: BLE001 - an SDK's exceptions hold the request, and with it the token
            fault = make_outcome_error(error)
        raise fault

    def persist(self, call: Callable[[], _T], *, again: bool = False) -> _T:
        """`call`, repeated with pauses while Slack is busy, and, with `again`, also where its outcome is not known."""

        def wait_after(error: DashboardError) -> float | None:
            if isinstance(error, BusyError):
                return error.wait_s or 0.0
            return 0.0 if again and isinstance(error, UncertainError) else None

        return self.repeat(call, _ATTEMPTS, wait_after)
