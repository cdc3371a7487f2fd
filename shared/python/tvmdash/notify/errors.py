"""The ways in which sending a message fails, and the time that it may take.

No error here holds words from outside, as these may hold a secret.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from tvmdash.common.http_util import end_after
from tvmdash.errors import DashboardError

_MOST_WAIT_S = 3600.0
_REQUEST_S, _ATTEMPTS, _FIRST_PAUSE_S = 20.0, 4, 0.5
_T = TypeVar("_T")


class TimeBudget:
    """The seconds from now on that a service of others may cost, and what is asked again within them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def repeat(self, call: Callable[[], _T], attempts: int, wait_after: Callable[[DashboardError], float | None]) -> _T:
        """Return the result of `call`, tried up to `attempts` times with pauses that double.

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


class DeliveryError(DashboardError):
    """A message was not taken, as far as is known; the text holds no secret."""


class RefusedError(DeliveryError):
    """It was refused, and will be again until somebody mends something. code: the service's own word for it."""

    def __init__(self, problem: str = "", *, code: str = "") -> None:
        super().__init__(problem)
        self.code = code


class UnfitError(RefusedError):
    """Nobody can send this message; others are taken."""


class BusyError(DeliveryError):
    """It certainly was not taken, and may be later: after `wait_s`, where that is known."""

    def __init__(self, problem: str = "", *, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


class UncertainError(DeliveryError):
    """It may have been taken. is_final: asking again tonight tells no more; wait_s: how long it takes to show."""

    def __init__(self, problem: str = "", *, is_final: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.is_final, self.wait_s = is_final, wait_s


class IncompleteError(DeliveryError):
    """It was taken, but not by all, or the other side has thrown it away; it is not sent again."""


class Budget(TimeBudget):
    """The seconds that one route may take, from now on."""

    def spend(self, call: Callable[[float], _T], *, again: bool) -> _T:
        """Return the result of `call`, which is given the seconds that it may take.

        It is repeated while the other side is busy and, with `again`, where its outcome is not known: where doing it
        twice does nothing more.
        """

        def wait_after(error: DashboardError) -> float | None:
            if isinstance(error, BusyError):
                return error.wait_s
            return error.wait_s if again and isinstance(error, UncertainError) and not error.is_final else None

        return self.repeat(lambda: self._try(call), _ATTEMPTS, wait_after)

    def _try(self, call: Callable[[float], _T]) -> _T:
        limit_s = min(_REQUEST_S, self.left_s)
        if limit_s <= 0:
            raise BusyError(f"the route's time limit of {self.seconds:g} s is used up")
        try:
            # Timeouts of sockets are for each read, not for the whole.
            return end_after(limit_s, lambda: call(limit_s))
        except TimeoutError:
            raise UncertainError(f"no answer within {limit_s:.0f} s") from None


def make_http_error(who: str, status: int, headers: Mapping[str, str]) -> DeliveryError:
    """Classify an HTTP status other than success."""
    if status in (429, 503):
        return BusyError(f"{who} asked to wait ({status})", wait_s=parse_wait(headers.get("retry-after", "")))
    if status >= 500:
        return UncertainError(f"{who} had an internal error ({status})")
    if 300 <= status < 400:
        return RefusedError(
            f"{who} redirects ({status}); redirects are not followed. Configure the target URL instead."
        )
    return RefusedError(f"{who} rejected the request ({status})")


def parse_wait(text: str, usual_s: float = 0.0) -> float:
    """The seconds of a Retry-After header; the usual ones where it makes no sense."""
    try:
        wait_s = float(text)
    except ValueError:
        return usual_s
    return min(wait_s, _MOST_WAIT_S) if math.isfinite(wait_s) and wait_s >= 0 else usual_s
