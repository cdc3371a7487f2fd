"""What can be known of a message that did not go through, in words without anything that came from outside."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tvmdash.errors import DashboardError

_MOST_WAIT_S = 3600.0


class DeliveryError(DashboardError):
    """A message was not taken, as far as is known; the text holds no secret."""


class RefusedError(DeliveryError):
    """It was refused, and will be again until somebody mends something."""


class BusyError(DeliveryError):
    """It certainly was not taken, and may be later: after `wait_s`, where that is known."""

    def __init__(self, problem: str = "", *, wait_s: float = 0.0) -> None:
        super().__init__(problem)
        self.wait_s = wait_s


class UncertainError(DeliveryError):
    """It may have been taken."""


class IncompleteError(DeliveryError):
    """It was taken, but not by all, or the other side has thrown it away; it is not sent again."""


def make_http_error(who: str, status: int, headers: Mapping[str, str]) -> DeliveryError:
    """What an HTTP status other than success says of the outcome."""
    if status in (429, 503):
        return BusyError(f"{who} asked to wait ({status})", wait_s=parse_wait(headers.get("retry-after", "")))
    if status >= 500:
        return UncertainError(f"{who} had an internal error ({status})")
    if 300 <= status < 400:
        return RefusedError(
            f"{who} redirects ({status}); redirects are not followed. Configure the target URL instead."
        )
    return RefusedError(f"{who} rejected the request ({status})")


def parse_wait(text: str) -> float:
    """The seconds of a Retry-After header; 0 where it makes no sense."""
    try:
        wait_s = float(text)
    except ValueError:
        return 0.0
    return min(wait_s, _MOST_WAIT_S) if math.isfinite(wait_s) and wait_s > 0 else 0.0
