"""Slack: payloads as values, and the one client that sends them, within a time budget and nothing twice."""

from __future__ import annotations

from tvmdash.slack_util.client import (
    API_URL,
    API_URL_VARIABLE,
    EVENT,
    SCOPES,
    SPEAKERS,
    Slack,
    check,
    main,
)

__all__ = [
    "API_URL",
    "API_URL_VARIABLE",
    "EVENT",
    "SCOPES",
    "SPEAKERS",
    "Slack",
    "check",
    "main",
]
