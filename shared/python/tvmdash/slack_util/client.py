"""The one door to Slack: post, edit, reply, upload, look up, within a time budget and without saying anything twice.

`python3 -m tvmdash.slack_util check HOME` sends a test message for each way in which the home speaks to Slack.
Errors are those of `slack_errors`; none holds a token.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmdash.common import Json, read_json
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.http_util import Answer, is_safe
from tvmdash.slack_util.errors import RefusedError, SlackError, UncertainError, make_status_error
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Message, build, escape
from tvmdash.slack_util.token import DEFAULT_FILE, Secrets, find_secrets
from tvmdash.slack_util.transport import WebApi, Webhook
from tvmdash.slack_util.transport import post as post_bytes
from tvmdash.text import plain_output

API_URL_VARIABLE, API_URL = "SLACK_API_URL", "https://slack.com/api/"
EVENT = "tvmdash_message"
_PAGES, _CLOCK_SKEW_S = 5, 600.0
_CHECK_S = 30.0
SPEAKERS = ("deadline", "exp_reports", "subsys_reporter")
"""The subsystems that speak to Slack wherever there is a token; others do where their config names a channel."""
SCOPES: Mapping[frozenset[str], str] = {
    frozenset(("chat:write",)): "to post and edit",
    frozenset(("files:write",)): "for graphs in threads",
    frozenset(("channels:history", "groups:history")): "to see whether a message arrived, after a failure",
}
"""What the bot token must be allowed, one of each set, and for what."""
_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,9}")


class Slack:
    """A channel of Slack, through a bot token, or a webhook, which can only post."""

    def __init__(
        self,
        secrets: Secrets,
        channel: str,
        patience: Patience,
        *,
        api_url: str = "",
        settle_s: float = 3.0,
        known: tuple[str, ...] = (),
    ) -> None:
        """`settle_s`: how long Slack is given to show a message of whose post it did not tell.

        known: the home's secrets, which are hidden in whatever is posted.
        """
        url = api_url or os.environ.get(API_URL_VARIABLE) or API_URL
        if not is_safe(url):
            raise DashboardError(f"{API_URL_VARIABLE}: not an https:// URL. Remove it.")
        if secrets.bot_token and not re.fullmatch(r"[CGD][A-Z0-9]{7,20}", channel):
            raise DashboardError(
                f"$.channel: {channel!r:.40} is not a channel ID. Copy the ID (C...) from the channel details in Slack."
            )
        self.channel = channel
        self.can_edit = bool(secrets.bot_token)
        self.known = known
        self._patience = patience
        self._settle_s = settle_s
        self._api = WebApi(url, secrets.bot_token, known) if secrets.bot_token else None
        self._hook = None if secrets.bot_token else Webhook(secrets.webhook_url, known)

    def post(self, message: Message, key: str, since: float) -> str:
        """Post a message once; its ts, or "" where a webhook took it.

        `key` marks the message in Slack. Where it is not known whether Slack took it, it is looked for among those
        after `since` (seconds of the epoch) before it is posted again. UncertainError where that cannot be told.
        """
        if self._hook is not None:
            self._patience.persist(lambda: self._post_by_hook(message))
            return ""
        try:
            return self._patience.persist(lambda: self._post(message, key))
        except UncertainError as error:
            stamp = self._look_again(key, since, error)
        return stamp or self._patience.persist(lambda: self._post(message, key))

    def _look_again(self, key: str, since: float, fault: SlackError) -> str | None:
        self._patience.pause(self._settle_s)
        try:
            return self.find(key, since)
        except SlackError as error:
            raise UncertainError(
                f"{fault}, and it could not be checked whether the message was posted: {error}"
            ) from None

    def edit(self, ts: str, message: Message, key: str) -> None:
        """Replace a message of ours, which keeps its mark; doing it twice does nothing more."""
        fields: dict[str, Json] = {
            "channel": self.channel,
            "ts": ts,
            "text": message.text,
            "blocks": list(message.blocks),
        }
        fields |= {"parse": "none", "metadata": _mark(key)}
        self._patience.persist(lambda: self._call("chat.update", body=fields), again=True)

    def reply(self, ts: str, message: Message, key: str) -> str:
        """Post into the thread of `ts`; the reply's ts."""
        return self._patience.persist(lambda: self._post(message, key, {"thread_ts": ts}))

    def find(self, key: str, since: float) -> str | None:
        """The ts of the message posted after `since` and marked with `key`, None where the channel has none."""
        oldest = f"{max(0.0, since - _CLOCK_SKEW_S):.6f}"
        return self._find("conversations.history", {"oldest": oldest}, key)

    def find_reply(self, ts: str, key: str) -> str | None:
        """The ts of the reply in the thread of `ts` that is marked with `key`, None where the thread has none."""
        return self._find("conversations.replies", {"ts": ts}, key)

    def _find(self, method: str, range_fields: Mapping[str, str], key: str) -> str | None:
        cursor = ""
        for _ in range(_PAGES):
            fields = {"channel": self.channel, "limit": "200", "include_all_metadata": "true", **range_fields}
            page = self._read(method, {**fields, **({"cursor": cursor} if cursor else {})})
            for message in _check_dicts(page.get("messages")):
                if message.get("metadata") == _mark(key):
                    return _read_ts(message)
            following = page.get("response_metadata")
            cursor = str(following.get("next_cursor") or "") if isinstance(following, dict) else ""
            if not cursor:
                return None
        raise UncertainError(f"too many messages to find ours ({method})")

    def upload(self, ts: str, name: str, title: str, content: bytes) -> None:
        """Show a file in the thread of `ts`: ask for an address, send it there, then complete. Not repeated."""
        target = self._read("files.getUploadURLExternal", {"filename": name, "length": str(len(content))})
        url, file_id = target.get("upload_url"), target.get("file_id")
        if not isinstance(url, str) or not isinstance(file_id, str) or not is_safe(url):
            raise UncertainError("Slack returned no upload URL for the file")
        self._patience.persist(lambda: self._send(url, content), again=True)
        files = json.dumps([{"id": file_id, "title": title[:200]}])
        fields = {"files": files, "channel_id": self.channel, "thread_ts": ts}
        self._patience.persist(lambda: self._call("files.completeUploadExternal", form=fields))

    def _send(self, url: str, content: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        answer = self._patience.within(lambda limit_s: post_bytes(url, content, headers, limit_s))
        if answer.status >= 300:
            raise make_status_error(answer.status, answer.headers)

    def scopes(self) -> frozenset[str]:
        """Ask Slack whether the token is good; what it may do. Empty for a webhook, which cannot be asked."""
        if self._api is None:
            return frozenset()
        answer = self._patience.persist(lambda: self._call("auth.test", form={}), again=True)
        header = answer.headers.get("x-oauth-scopes", "")
        return frozenset(scope.strip() for scope in header.split(",") if scope.strip())

    def _post(self, message: Message, key: str, more: Mapping[str, Json] | None = None) -> str:
        fields = {"channel": self.channel, **message.to_json(), "parse": "none", "metadata": _mark(key), **(more or {})}
        return _read_ts(_check_dict(self._call("chat.postMessage", body=fields)))

    def _post_by_hook(self, message: Message) -> None:
        hook = self._hook
        assert hook is not None
        self._patience.within(lambda limit_s: hook.send(limit_s, message.to_json()))

    def _read(self, method: str, form: Mapping[str, str]) -> dict[str, Any]:
        return _check_dict(self._patience.persist(lambda: self._call(method, form=form), again=True))

    def _call(self, method: str, *, body: Json = None, form: Mapping[str, str] | None = None) -> Answer:
        api = self._api
        if api is None:
            raise RefusedError(f"{method}: a webhook can only post new messages. Use a bot token.")
        return self._patience.within(lambda limit_s: api.call(limit_s, method, body=body, form=form))


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


def check(home: Home) -> list[str]:
    """Send a test for each way in which the home's subsystems speak to Slack; a sentence for each that is good.

    DashboardError says everything that is not.
    """
    good: list[str] = []
    faults: list[str] = []
    seen: set[tuple[Secrets, str]] = set()
    for name, config in _list_speakers(home):
        try:
            secrets = find_secrets(str(config.get("token_file", DEFAULT_FILE)), home.root)
            channel = str(config.get("channel", ""))
            if secrets is None or (secrets, channel) in seen:
                continue
            seen.add((secrets, channel))
            good.append(f"{name}: {send_test(secrets, channel)}")
        except DashboardError as error:
            faults.append(f"{name}: {error}")
    if not good and not faults:
        remedy = f"put the token into {DEFAULT_FILE} (mode 600) and activate exp_reports; see docs/how-to/slack.md"
        faults.append(f"{home.root}: no active subsystem has a Slack token: {remedy}.")
    if faults:
        raise DashboardError("\n".join([*good, *faults]))
    return good


def _list_speakers(home: Home) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = home.configs("subsystem")
    for path in sorted(folder.glob("*/config.json")):
        config = read_json(path)
        if (
            isinstance(config, dict)
            and config.get("active") is True
            and (path.parent.name in SPEAKERS or config.get("channel"))
        ):
            yield path.parent.name, config


def send_test(secrets: Secrets, channel: str) -> str:
    """Post a test message, which pings nobody; a sentence about where it is, and what the token lacks."""
    slack = Slack(secrets, channel, Patience(_CHECK_S))
    scopes = slack.scopes()
    text = "Test message, sent by hand. The dashboard can post here; this message pings nobody."
    slack.post(
        build("Test of the TVM dashboard", escape(text), []),
        uuid.uuid4().hex,
        time.time(),
    )
    destination = f"the channel {channel}" if slack.can_edit else "the webhook's channel"
    lacking = [
        f"{' or '.join(sorted(any_of))} ({use})" for any_of, use in SCOPES.items() if scopes and not any_of & scopes
    ]
    advice = f" The token lacks {', '.join(lacking)}." if lacking else ""
    return f"posted the test message to {destination}, using the secret from {secrets.origin}.{advice}"


@plain_output()
def main(arguments: Sequence[str]) -> int:
    """`check HOME`: 0 where every test arrived, 1 where one did not, 2 where that is not what was asked."""
    if len(arguments) != 2 or arguments[0] != "check":
        sys.stderr.write("usage: python3 -m tvmdash.slack_util check HOME\n")
        return 2
    try:
        sys.stdout.write("\n".join([*check(Home(Path(arguments[1]))), ""]))
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
