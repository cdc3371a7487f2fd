"""The ways of sending: Slack, e-mail, webhooks, GitHub issues, and any other service through Apprise."""

from __future__ import annotations

from typing import ClassVar

from tvmdash.notify.message import Message


class Sender:
    """A way of sending. safe_twice: a message sent twice is there once; edits: what it took can be changed."""

    safe_twice: ClassVar[bool] = True
    edits: ClassVar[bool] = False

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Send it, or for an incident that the other side calls `remote` bring that up to date; what it calls it.

        again: an earlier try may have gone through. DeliveryError where it was not taken.
        """
        raise NotImplementedError

    def edit(self, message: Message, limit_s: float, remote: str) -> None:
        """Show it in place of what `remote` shows, where that can be; nobody is told of it."""
        raise NotImplementedError
