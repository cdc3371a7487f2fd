"""Slack delivery for subsystems of authors; `tvmdash.notify` implements it."""

from __future__ import annotations

from tvmdash.notify.channel import Attachment, SlackConfig, attach, deliver, find_slack_faults, open_slack, tell

__all__ = ["Attachment", "SlackConfig", "attach", "deliver", "find_slack_faults", "open_slack", "tell"]
