"""The route of kind `slack`: a channel, through a bot token, or through a webhook, which can only post.

A message is marked with its ID, so that one whose outcome is not known is looked for before it is posted again.
https://docs.slack.dev/reference/methods
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tvmdash.common import Json, http_util
from tvmdash.common.http_util import Answer, Loss, NoAnswerError, is_safe
from tvmdash.errors import DashboardError
from tvmdash.notify.config import Route
from tvmdash.notify.errors import (
    BusyError,
    DeliveryError,
    IncompleteError,
    RefusedError,
    UncertainError,
    UnfitError,
    make_http_error,
    parse_wait,
)
from tvmdash.notify.message import Item, Message, Occasion, Outgoing
from tvmdash.notify.payloads import (
    Part,
    Payload,
    build,
    code,
    escape,
    format_bold,
    format_mention,
    format_pings,
    link,
)
from tvmdash.notify.senders import Sender
from tvmdash.notify.text import choose_icon, list_end
from tvmdash.notify.token import Secrets, find_secrets
from tvmdash.text import clean_message

API_URL_VARIABLE, API_URL = "SLACK_API_URL", "https://slack.com/api/"
EVENT = "tvmdash_message"
SCOPES: Mapping[frozenset[str], str] = {
    frozenset(("chat:write",)): "to post and edit",
    frozenset(("files:write",)): "for graphs in threads",
    frozenset(("channels:history", "groups:history")): "to see whether a message arrived, after a failure",
}
"""Scopes that the bot token needs, one of each set, with their purpose."""
_PAGES, _BACK_S, _SETTLE_S = 5, 8 * 86400.0, 3.0
"""Limits of the search for a message of ours, and seconds until Slack shows a new one."""
_TS, _CODE = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}"), re.compile(r"[a-z][a-z0-9_]{1,60}")
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{7,20}")
_JSON, _FORM = "application/json;charset=utf-8", "application/x-www-form-urlencoded"
_BUSY = frozenset(("ratelimited", "rate_limited", "service_unavailable", "team_added_to_org", "org_login_required"))
_UNCERTAIN = frozenset(("internal_error", "fatal_error", "request_timeout"))
_GONE = frozenset(("thread_not_found", "message_not_found", "invalid_thread_ts", "cannot_reply_to_message"))
_UNEDITABLE = frozenset(("message_not_found", "cant_update_message", "edit_window_closed"))
_UNFIT = frozenset(
    ("invalid_blocks", "invalid_blocks_format", "msg_too_long", "msg_blocks_too_long", "no_text", "invalid_payload")
)
"""Slack's words for a message that it takes from nobody: a bug of ours."""
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
    "restricted_action": "The workspace does not allow the app to post there. Ask its admin, or use another channel.",
    **dict.fromkeys(sorted(_UNFIT), "This is a bug in the dashboard. Please report it with message.json."),
}


class Slack:
    """A channel of Slack. Each method is one try: DeliveryError for every outcome that is not good."""

    def __init__(
        self, secrets: Secrets, channel: str, seconds: float = 60.0, *, api_url: str = "", known: tuple[str, ...] = ()
    ) -> None:
        """seconds: what telling it may take in all; known: the home's secrets, hidden in whatever is posted."""
        url = api_url or os.environ.get(API_URL_VARIABLE) or API_URL
        if not is_safe(url):
            raise DashboardError(f"{API_URL_VARIABLE}: not an https:// URL. Remove it.")
        if secrets.bot_token and not _CHANNEL.fullmatch(channel):
            raise DashboardError(
                f"$.channel: {channel!r:.40} is not a channel ID. Copy the ID (C...) from the channel details in Slack."
            )
        self.channel, self.known, self.seconds = channel, known, seconds
        self.can_edit = bool(secrets.bot_token)
        self._secrets, self._url = secrets, url.rstrip("/")

    def post(self, payload: Payload, key: str, end: float, *, thread: str = "") -> str:
        """Post a message with the mark `key`, into the thread where that is given; its ts, "" by a webhook.

        end: until when it may be sent, by the monotonic clock.
        """
        if not self.can_edit:
            self._post_by_hook(payload, end)
            return ""
        fields = {"channel": self.channel, **payload.to_json(), "parse": "none", "metadata": _mark(key)}
        fields |= {"thread_ts": thread} if thread else {}
        return _read_ts(_check_dict(self._call("chat.postMessage", end, body=fields)))

    def edit(self, ts: str, payload: Payload, key: str, end: float) -> None:
        """Replace a message of ours, which keeps its mark."""
        fields: dict[str, Json] = {"channel": self.channel, "ts": ts, "text": payload.text}
        fields |= {"blocks": list(payload.blocks), "parse": "none", "metadata": _mark(key)}
        self._call("chat.update", end, body=fields)

    def find(self, key: str, end: float, *, thread: str = "") -> str | None:
        """The ts of our message of the last days with the mark `key`, or of the reply in `thread`; None without one."""
        method = "conversations.replies" if thread else "conversations.history"
        cursor = {"ts": thread} if thread else {"oldest": f"{max(0.0, time.time() - _BACK_S):.6f}"}
        for _ in range(_PAGES):
            fields = {"channel": self.channel, "limit": "200", "include_all_metadata": "true", **cursor}
            page = _check_dict(self._call(method, end, form=fields))
            for message in _check_dicts(page.get("messages")):
                if message.get("metadata") == _mark(key):
                    return _read_ts(message)
            following = page.get("response_metadata")
            following = str(following.get("next_cursor") or "") if isinstance(following, dict) else ""
            if not following:
                return None
            cursor["cursor"] = following
        raise UncertainError(f"too many messages to find ours ({method})")

    def upload(self, ts: str, name: str, title: str, content: bytes, end: float) -> None:
        """Show a file in the thread of `ts`: ask for an address, send it there, then complete."""
        fields = {"filename": name, "length": str(len(content))}
        target = _check_dict(self._call("files.getUploadURLExternal", end, form=fields))
        url, file_id = target.get("upload_url"), target.get("file_id")
        if not isinstance(url, str) or not isinstance(file_id, str) or not is_safe(url):
            raise UncertainError("Slack returned no upload URL for the file")
        answer = _post(url, content, {"Content-Type": "application/octet-stream"}, end)
        if answer.status >= 300:
            raise make_http_error("Slack", answer.status, answer.headers)
        files = json.dumps([{"id": file_id, "title": title[:200]}])
        done = {"files": files, "channel_id": self.channel, "thread_ts": ts}
        self._call("files.completeUploadExternal", end, form=done)

    def scopes(self, end: float) -> frozenset[str]:
        """Ask Slack whether the token is good; what it may do. Empty for a webhook, which cannot be asked."""
        if not self.can_edit:
            return frozenset()
        header = self._call("auth.test", end, form={}).headers.get("x-oauth-scopes", "")
        return frozenset(scope.strip() for scope in header.split(",") if scope.strip())

    def _call(self, method: str, end: float, *, body: Json = None, form: Mapping[str, str] | None = None) -> Answer:
        """The good answer to one call of a method of the Web API."""
        if not self.can_edit:
            raise RefusedError(f"{method}: a webhook can only post new messages. Use a bot token.")
        said = clean_message(form or {} if body is None else body, self.known)
        content = urlencode(said) if body is None else json.dumps(said)
        kind = _FORM if body is None else _JSON
        headers = {"Authorization": f"Bearer {self._secrets.bot_token}", "Content-Type": kind}
        answer = _post(f"{self._url}/{method}", content.encode(), headers, end)
        data = answer.parsed()
        if answer.status == 200 and isinstance(data, dict) and data.get("ok") is True:
            return answer
        raise _make_refusal(answer.status, data.get("error") if isinstance(data, dict) else None, answer.headers)

    def _post_by_hook(self, payload: Payload, end: float) -> None:
        content = json.dumps(clean_message(payload.to_json(), self.known)).encode()
        answer = _post(self._secrets.webhook_url, content, {"Content-Type": _JSON}, end)
        text = answer.body.decode("utf-8", errors="replace").strip()
        if answer.status != 200:
            raise _make_refusal(answer.status, text, answer.headers)
        if text != "ok":
            raise UncertainError("the webhook sent an invalid response")


def _post(url: str, content: bytes, headers: Mapping[str, str], end: float) -> Answer:
    """The answer to a POST, of any status; DeliveryError, without anything of the request, where there is none."""
    left_s = end - time.monotonic()
    if left_s <= 0:
        raise BusyError("Slack did not answer in time")
    try:
        return http_util.send("POST", url, content, headers, left_s)
    except NoAnswerError as error:
        fault = _make_fault(error)
    except Exception as error:  # noqa: BLE001 - an SDK's exceptions hold the request, and with it the token
        fault = UncertainError(f"Slack sent an invalid response ({type(error).__name__})")
    raise fault


def _make_fault(error: NoAnswerError) -> DeliveryError:
    """Classify a lost request: one that was not sent whole was certainly not taken."""
    if error.loss is Loss.NOT_SENT:
        return BusyError(f"Slack could not be reached ({error.cause})")
    if error.loss is Loss.LATE:
        return UncertainError("Slack did not answer in time")
    if error.loss is Loss.TOO_LONG:
        return UncertainError("Slack's response is too long")
    return UncertainError(f"the connection to Slack was lost ({error.cause})")


def _make_refusal(status: int, word: object, headers: Mapping[str, str]) -> DeliveryError:
    """Classify a refusal by Slack's error code, else by the HTTP status."""
    name = word.strip() if isinstance(word, str) and _CODE.fullmatch(word.strip()) else ""
    if status == 429 or name in _BUSY:
        return BusyError("Slack rate limit reached", wait_s=parse_wait(headers.get("retry-after", ""), 5.0))
    if status >= 500 or name in _UNCERTAIN:
        return make_http_error("Slack", max(status, 500), headers)
    if not name:
        return (
            make_http_error("Slack", status, headers)
            if status >= 300
            else UncertainError("Slack's answer makes no sense")
        )
    remedy = _REMEDIES.get(name, f"For its meaning, see https://docs.slack.dev/reference/methods, {name}.")
    kind = UnfitError if name in _UNFIT else RefusedError
    return kind(f"Slack rejected the request: {name}. {remedy}", code=name)


def _mark(key: str) -> dict[str, Any]:
    return {"event_type": EVENT, "event_payload": {"key": key}}


def _read_ts(message: Mapping[str, Any]) -> str:
    ts = message.get("ts")
    if not isinstance(ts, str) or not _TS.fullmatch(ts):
        raise UncertainError("Slack's response contains no message ID")
    return ts


def _check_dict(answer: Answer) -> dict[str, Any]:
    data = answer.parsed()
    return data if isinstance(data, dict) else {}


def _check_dicts(value: Json) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


@dataclass(frozen=True)
class SlackSender(Sender):
    """A channel. What a webhook took cannot be looked for, so it is not sent again.

    A message is called by its channel and ts, as in "C0123456789 1716174000.000100": of another channel than today's,
    it has no thread here.
    """

    slack: Slack = field(repr=False)

    @property
    def safe_twice(self) -> bool:  # type: ignore[override]
        return self.slack.can_edit

    @property
    def edits(self) -> bool:  # type: ignore[override]
        return self.slack.can_edit

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Post it, or reply in the thread of `remote`, unless it is there; what it is called."""
        end, payload = time.monotonic() + limit_s, make_payload(message)
        thread = ""
        if message.first and message.event is not Occasion.RUNS_AGAIN:
            thread = self._find_ts(remote)
            if not thread:
                raise IncompleteError(f"{message.title}: it has no thread in the channel {self.slack.channel}")
        try:
            ts = self._look(message.id, thread, end, again=again) if self.slack.can_edit else None
            if ts and not thread:
                self.slack.edit(ts, payload, message.id, end)  # an earlier try may have told less
            ts = ts or self.slack.post(payload, message.id, end, thread=thread)
        except UncertainError as error:
            # It is looked for before it is posted again, and shows only after a while.
            error.wait_s = _SETTLE_S
            raise
        except RefusedError as error:
            if error.code in (_GONE if thread else _UNEDITABLE):
                raise IncompleteError(f"{message.title}: what it was in Slack is gone ({error.code})") from None
            raise
        return "" if thread else f"{self.slack.channel} {ts}" if ts else ""

    def edit(self, message: Message, limit_s: float, remote: str) -> None:
        """Show it in place of what `remote` shows; IncompleteError where that cannot be edited any more."""
        ts = self._find_ts(remote)
        if not ts:
            raise IncompleteError(f"{message.title} is in another channel and was not changed")
        try:
            self.slack.edit(ts, make_payload(message), message.id, time.monotonic() + limit_s)
        except RefusedError as error:
            if error.code in _UNEDITABLE:
                raise IncompleteError(f"{message.title} can no longer be edited ({error.code})") from None
            raise

    def attach(self, remote: str, name: str, title: str, content: bytes, limit_s: float) -> None:
        self.slack.upload(self._find_ts(remote), name, title, content, time.monotonic() + limit_s)

    def _find_ts(self, remote: str) -> str:
        channel, _, ts = remote.rpartition(" ")
        return ts if channel in ("", self.slack.channel) else ""

    def _look(self, key: str, thread: str, end: float, *, again: bool) -> str | None:
        """The message that is there; without the right to look, nothing is known of one that was tried before."""
        try:
            return self.slack.find(key, end, thread=thread)
        except RefusedError as error:
            if error.code != "missing_scope":
                raise
            if not again:
                return None
            problem = f"it could not be checked whether the message was posted: {error}"
            raise UncertainError(problem, is_final=True) from None


def make_payload(message: Message) -> Payload:
    if isinstance(message, Outgoing) and message.payload is not None:
        return message.payload
    parts = [_make_part(item, message) for item in message.items]
    pings = tuple(filter(None, map(format_mention, message.people)))
    parts += [Part(format_pings(pings), pings)] if pings else []
    if message.event in (Occasion.UPDATED, Occasion.CLOSED):
        return build(message.news, "", parts)
    icon = choose_icon(message.incident) if message.incident else ""
    headline = f"{icon} {message.headline}".lstrip()
    return build(headline, escape(" ".join(list_end(message))), parts)


def _make_part(item: Item, message: Message) -> Part:
    lines = [format_bold(item.title, 150)] if item.title else []
    lines += [escape(line.removeprefix(f"{message.news}: ")) for line in item.lines if line != f"{message.news}."]
    lines += [link(item.address, "Look at it")] if item.address else []
    lines += [f"{escape(purpose)}: {code(command)}" for purpose, command in item.commands]
    return Part("\n".join(lines))


def open_channel(route: Route, home: Path) -> SlackSender:
    """The channel with its token; DashboardError where there is none."""
    secrets = find_secrets(route.secret_file, home)
    if secrets is None:
        remedy = "See docs/how-to/slack.md for the steps."
        raise DashboardError("no Slack token found.", place=route.secret_file, remedy=remedy)
    return SlackSender(Slack(secrets, route.channel, route.seconds))
