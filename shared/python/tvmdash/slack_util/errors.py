"""What can be known of a request to Slack that did not go well, in words without anything that came from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tvmdash.errors import DashboardError

MESSAGE_FAULTS = frozenset(
    ("invalid_blocks", "invalid_blocks_format", "msg_too_long", "msg_blocks_too_long", "no_text", "invalid_payload")
)
"""Slack's words for a message that it will not take from anybody: a bug of ours."""
MAX_WAIT_S = 3600.0
_DEFAULT_WAIT_S = 5.0
_CODE = re.compile(r"[a-z][a-z0-9_]{1,60}")
_BUSY = frozenset(("ratelimited", "rate_limited", "service_unavailable", "team_added_to_org", "org_login_required"))
_UNCERTAIN = frozenset(("internal_error", "fatal_error", "request_timeout"))
_NEW_TOKEN = "Reinstall the app in the workspace and replace the old token with its new Bot User OAuth Token."  # noqa: S105
_NEW_HOOK = "Create a new webhook under the app's Incoming Webhooks and replace the old URL."
_REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired"), _NEW_TOKEN),
    **dict.fromkeys(("no_service", "no_service_id", "invalid_token", "no_team", "team_disabled"), _NEW_HOOK),
    "channel_not_found": "Check `channel` in the config (an ID, C...), and invite the app: /invite @APP there.",
    "not_in_channel": "Invite the app: /invite @APP in the channel.",
    "is_archived": "The channel is archived. Choose another one as `channel`.",
    "channel_is_archived": "The channel is archived. Create a webhook for another channel.",
    "missing_scope": "Add the scopes listed in docs/how-to/slack.md to the app, and reinstall it.",
    "restricted_action": "The workspace does not allow the app to post there. Ask its admin, or choose another "
    "channel.",
    **dict.fromkeys(sorted(MESSAGE_FAULTS), "This is a bug in the dashboard. Please report it with message.json."),
}


class SlackError(DashboardError):
    """Slack did not do what was asked; the message holds no secret. `code` is Slack's word for it, where it has one."""

    def __init__(self, message: str, *, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class RefusedError(SlackError):
    """Slack refuses, and will again."""


class BusyError(SlackError):
    """Slack certainly did not take it, and may later: after `wait_s` seconds, where it said so."""

    def __init__(self, message: str, *, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class UncertainError(SlackError):
    """Slack may have taken it or not."""


def make_outcome_error(error: Exception) -> SlackError:
    """What an exception of a request says of its outcome, in words without anything that came from outside."""
    if isinstance(error, SlackError):
        return error
    if isinstance(error, TimeoutError):
        return UncertainError("Slack did not answer in time")
    if isinstance(error, OSError):
        return UncertainError(f"the connection to Slack was lost ({type(error).__name__})")
    return UncertainError(f"Slack sent an invalid response ({type(error).__name__})")


def make_status_error(status: int, headers: Mapping[str, str]) -> SlackError:
    """What an HTTP status other than 2xx says of the outcome."""
    if status == 429:
        return BusyError("Slack rate limit reached (429)", wait_s=wait_of(headers))
    if status == 503:
        return BusyError("Slack is not available (503)")
    if status >= 500:
        return UncertainError(f"Slack had an internal error ({status})")
    return RefusedError(f"Slack rejected the request with HTTP status {status}")


def wait_of(headers: Mapping[str, str]) -> float:
    """The seconds of a Retry-After header, whose name is in lower case; a few where it makes no sense."""
    try:
        wait_s = float(headers.get("retry-after") or _DEFAULT_WAIT_S)
    except ValueError:
        return _DEFAULT_WAIT_S
    return min(wait_s, MAX_WAIT_S) if wait_s >= 0 else _DEFAULT_WAIT_S


def make_refusal(status: int, code: object, headers: Mapping[str, str]) -> SlackError:
    """What went wrong, from Slack's own word for it, else from the HTTP status."""
    known = isinstance(code, str) and _CODE.fullmatch(code.strip()) is not None
    word = str(code).strip() if known else ""
    if status == 429 or word in _BUSY:
        return BusyError("Slack rate limit reached", wait_s=wait_of(headers))
    if status >= 500 or word in _UNCERTAIN:
        return make_status_error(max(status, 500), headers)
    if not word:
        return make_status_error(status, headers) if status >= 300 else UncertainError("Slack's answer makes no sense")
    remedy = _REMEDIES.get(word, f"For its meaning, see https://docs.slack.dev/reference/methods, {word}.")
    return RefusedError(f"Slack rejected the request: {word}. {remedy}", code=word)
