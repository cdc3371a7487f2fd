"""The time that one route may cost, and what is asked again within it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tvmdash.errors import DashboardError
from tvmdash.http_util import end_after
from tvmdash.routes.outcome import BusyError, UncertainError
from tvmdash.time_budget import TimeBudget

_REQUEST_S, _ATTEMPTS = 20.0, 4
_T = TypeVar("_T")


class Budget(TimeBudget):
    """The seconds of one route."""

    def spend(self, call: Callable[[float], _T], *, again: bool) -> _T:
        """What `call` returns, which is given the seconds that it may take.

        It is repeated while the other side is busy and, with `again`, where its outcome is not known: where doing it
        twice does nothing more.
        """

        def wait_after(error: DashboardError) -> float | None:
            if isinstance(error, BusyError):
                return error.wait_s
            return 0.0 if again and isinstance(error, UncertainError) else None

        return self.repeat(lambda: self._try(call), _ATTEMPTS, wait_after)

    def _try(self, call: Callable[[float], _T]) -> _T:
        limit_s = min(_REQUEST_S, self.left_s)
        if limit_s <= 0:
            raise BusyError(f"the route's time limit of {self.seconds:g} s is used up")
        try:
            return end_after(limit_s, lambda: call(limit_s))
        except TimeoutError:
            raise UncertainError(f"no answer within {limit_s:.0f} s") from None
