"""Messages for Slack as values, made by an author's subsystem."""

from __future__ import annotations

from tvmdash.notify.payloads import Part, build, code, escape, format_bold, format_mention, link
from tvmdash.notify.payloads import Payload as Message

__all__ = ["Message", "Part", "build", "code", "escape", "format_bold", "format_mention", "link"]
