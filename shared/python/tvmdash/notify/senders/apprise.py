"""The route of kind `apprise`: any other service, by an address as Apprise writes them."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tvmdash.common.secret_file import SecretFile
from tvmdash.errors import DashboardError
from tvmdash.notify import text
from tvmdash.notify.config import Route
from tvmdash.notify.errors import BusyError, DeliveryError, RefusedError, UncertainError, make_http_error
from tvmdash.notify.message import Message
from tvmdash.notify.senders import Sender

_LOGGER = logging.getLogger("apprise")
_LOGGER.propagate = False  # what it logs holds the address
_LOGGER.setLevel(logging.DEBUG)  # what is not logged is not in a result's logs either
_STATUS = re.compile(r"\berror=(\d{3})\b")
_SMTP = re.compile(r"\((\d{3}), b['\"]")
_NOT_CONNECTED = re.compile(r"NewConnectionError|NameResolutionError|ConnectTimeout|\[Errno (?:-\d|101|111|113)\]")


@dataclass(frozen=True)
class AppriseSender(Sender):
    """A service. Of a message that it gets twice it knows nothing, so none is sent again that it may have taken."""

    url: str = field(repr=False)
    safe_twice: ClassVar[bool] = False

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Hand it over; DeliveryError where it is not taken."""
        import apprise

        service = apprise.Apprise()
        if not service.add(self.url):
            raise RefusedError("Apprise does not recognize its URL")
        subject, body = text.format_subject(message), text.format_plain(message)
        taken = service.notify(title=subject, body=body, body_format="text", log_level=logging.DEBUG)
        if not taken:
            raise make_outcome("\n".join(entry.message for entry in taken.logs()))
        return ""


def open_apprise(route: Route, home: Path) -> AppriseSender:
    """The service; DashboardError where the file does not hold one address."""
    import apprise  # noqa: F401 - takes a second or more, which is not to count as the service's

    file = SecretFile(home / Path(route.secret_file).expanduser(), "address", "~/.config/tvmdash/apprise_url")
    lines = [line.strip() for line in file.read_lines(home) or [] if line.strip()]
    if len(lines) != 1 or "://" not in lines[0]:
        problem = "must contain exactly one URL, e.g. ntfys://TOPIC."
        raise DashboardError(problem, place=file.path, remedy="Use the format that Apprise documents for the service.")
    return AppriseSender(lines[0])


def make_outcome(said: str) -> DeliveryError:
    """Classify a failure by the codes in Apprise's log; its words hold the address, and go no further."""
    if status := _STATUS.search(said):
        return make_http_error("its server", int(status[1]), {})
    if code := _SMTP.search(said):
        busy = code[1].startswith("4")
        return (
            BusyError(f"its server asked to retry later ({code[1]})") if busy else RefusedError(f"refused ({code[1]})")
        )
    if _NOT_CONNECTED.search(said):
        return BusyError("its server could not be reached")
    return UncertainError("Apprise did not report whether the message was sent")
