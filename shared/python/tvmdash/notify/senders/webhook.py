"""The route of kind `webhook`: JSON, posted and signed as the Standard Webhooks specification says.

https://github.com/standard-webhooks/standard-webhooks: the headers webhook-id, webhook-timestamp and webhook-signature,
"v1," and the base64 of HMAC-SHA256 over "ID.TIMESTAMP.BODY". Whoever takes it passes over an ID that it has taken.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvmdash.common import http_util, structured
from tvmdash.common.http_util import Loss, NoAnswerError, is_safe
from tvmdash.common.secret_file import SecretFile
from tvmdash.errors import DashboardError
from tvmdash.notify.config import Route
from tvmdash.notify.errors import BusyError, UncertainError, make_http_error
from tvmdash.notify.message import Message
from tvmdash.notify.senders import Sender

SCHEMA_VERSION = 1
_PREFIX = "whsec_"
_LEAST_KEY_BYTES, _MAX_ANSWER_BYTES = 16, 1 << 16


@dataclass(frozen=True)
class WebhookSender(Sender):
    """An address that takes messages signed with `key`, and passes over an ID that it has."""

    url: str = field(repr=False)
    key: bytes = field(repr=False)

    def send(self, message: Message, limit_s: float, remote: str, *, again: bool = False) -> str:
        """Post it; DeliveryError where it is not taken."""
        body = json.dumps(build_body(message), ensure_ascii=False).encode()
        headers = {**sign(self.key, message.id, int(time.time()), body), "User-Agent": "tvm-dashboard"}
        try:
            answer = http_util.send("POST", self.url, body, headers, limit_s, max_bytes=_MAX_ANSWER_BYTES)
        except NoAnswerError as error:
            if error.loss is Loss.NOT_SENT:
                raise BusyError(f"the URL could not be reached ({error.cause})") from None
            if error.loss is Loss.TOO_LONG:
                raise UncertainError("the response is too long") from None
            raise UncertainError(f"no response ({error.cause})") from None
        if not 200 <= answer.status < 300:
            raise make_http_error("its server", answer.status, answer.headers)
        return ""


def open_webhook(route: Route, home: Path) -> WebhookSender:
    """The address with its key; DashboardError where one of them is not there."""
    file = SecretFile(home / Path(route.secret_file).expanduser(), "key", "~/.config/tvmdash/webhook_key")
    lines = [line.strip() for line in file.read_lines(home) or [] if line.strip()]
    keys = [line for line in lines if not line.startswith(("http://", "https://"))]
    urls = [route.url] if route.url else [line for line in lines if line not in keys]
    if len(keys) != 1:
        remedy = f"Create one: (umask 077; echo {_PREFIX}$(openssl rand -base64 32) > {file.path})"
        raise DashboardError("must contain exactly one signing key.", place=file.path, remedy=remedy)
    if len(urls) != 1 or not is_safe(urls[0]):
        problem = (
            ("contains no https:// URL, and the route has no `url`.")
            if not urls
            else "the URL does not start with https://."
        )
        raise DashboardError(
            problem, place=file.path, remedy="Set `url` in the config, or put the URL on a line of this file."
        )
    return WebhookSender(urls[0], _parse_key(keys[0], file.path))


def _parse_key(text: str, path: Path) -> bytes:
    """The key's bytes: whsec_BASE64, as the specification writes it, or any other text as it is."""
    try:
        key = base64.b64decode(text.removeprefix(_PREFIX), validate=True) if text.startswith(_PREFIX) else text.encode()
    except binascii.Error:
        raise DashboardError(
            f"the text after {_PREFIX} is not base64.", place=path, remedy="Copy the key again."
        ) from None
    if len(key) < _LEAST_KEY_BYTES:
        raise DashboardError(
            f"the key is shorter than {_LEAST_KEY_BYTES} bytes.", place=path, remedy="Create a longer one."
        )
    return key


def build_body(message: Message) -> dict[str, Any]:
    """The message as the webhook's JSON (webhook_v1.json)."""
    body = structured.to_json(message)
    body.pop("payload", None)  # what is only of a message on its way
    return {"schema_version": SCHEMA_VERSION, **body}


def sign(key: bytes, identity: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Make the headers of a body."""
    signed = f"{identity}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return {
        "Content-Type": "application/json",
        "webhook-id": identity,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
