"""Slack for authors of subsystems: `delivery` opens a channel and tells it, `payloads` makes the message."""

from __future__ import annotations

from tvmdash.notify.channel import SPEAKERS, check, main
from tvmdash.notify.senders.slack import API_URL, API_URL_VARIABLE, EVENT, SCOPES, Slack

__all__ = ["API_URL", "API_URL_VARIABLE", "EVENT", "SCOPES", "SPEAKERS", "Slack", "check", "main"]
