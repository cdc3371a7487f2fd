"""A channel of Slack as a sender: one message, marked, so that a second try finds the first."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.routes.config import Route
from tvmdash.routes.message import Message
from tvmdash.routes.outcome import BusyError, RefusedError, UncertainError
from tvmdash.routes.text import list_end
from tvmdash.slack_util import errors
from tvmdash.slack_util.client import Slack
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Message as Payload
from tvmdash.slack_util.payloads import Part, build, code, escape, link
from tvmdash.slack_util.token import Secrets, find_secrets

_BACK_S = 8 * 86400.0
"""How far back a message of ours may lie whose outcome was not known."""


@dataclass(frozen=True)
class ChannelSender:
    """A channel. A bot's message is looked for before it is posted; what a webhook took cannot be looked for."""

    secrets: Secrets = field(repr=False)
    channel: str

    @property
    def safe_twice(self) -> bool:
        return bool(self.secrets.bot_token)

    def send(self, message: Message, limit_s: float, remote: str) -> str:
        """Post it, unless the channel has it; its ts."""
        since = time.time() - _BACK_S
        try:
            slack = Slack(self.secrets, self.channel, Patience(limit_s))
            there = slack.find(message.id, since) if slack.can_edit else None
            return there or slack.post(_build(message), message.id, since)
        except errors.BusyError as error:
            raise BusyError(str(error), wait_s=error.wait_s or 0.0) from None
        except errors.UncertainError as error:
            raise UncertainError(str(error)) from None
        except DashboardError as error:
            raise RefusedError(str(error)) from None


def _build(message: Message) -> Payload:
    parts = []
    for item in message.items:
        lines = [escape(line) for line in item.lines]
        lines += [link(item.address, "Look at it")] if item.address else []
        lines += [f"{escape(purpose)}: {code(command)}" for purpose, command in item.commands]
        parts.append(Part("\n".join(lines)))
    return build(message.headline, escape(" ".join(list_end(message))), parts)


def open_channel(route: Route, home: Path) -> ChannelSender:
    """The channel with its token; DashboardError where there is none."""
    secrets = find_secrets(route.secret_file, home)
    if secrets is None:
        remedy = "See docs/how-to/slack.md for the steps."
        raise DashboardError("no Slack token found.", place=route.secret_file, remedy=remedy)
    return ChannelSender(secrets, route.channel)
