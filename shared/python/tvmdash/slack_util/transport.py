"""Requests to Slack: what a good answer is, and what each other outcome means for the message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tvmdash import http_util
from tvmdash.common import Json
from tvmdash.http_util import Answer, Loss, NoAnswerError
from tvmdash.slack_util.errors import BusyError, SlackError, UncertainError, make_refusal
from tvmdash.text import clean_message

_JSON = "application/json;charset=utf-8"
_FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class WebApi:
    """Slack's Web API at `url`, as the owner of a bot token. It hears nothing of the secrets in `known`."""

    url: str
    token: str = field(repr=False)
    known: tuple[str, ...] = field(default=(), repr=False)

    def call(self, limit_s: float, method: str, *, body: Json = None, form: Mapping[str, str] | None = None) -> Answer:
        """The good answer to one call of a method; SlackError for every other outcome."""
        told = clean_message(form or {} if body is None else body, self.known)
        content = urlencode(told) if body is None else json.dumps(told)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": _FORM if body is None else _JSON}
        answer = post(f"{self.url.rstrip('/')}/{method}", content.encode(), headers, limit_s)
        data = answer.parsed()
        if answer.status == 200 and isinstance(data, dict) and data.get("ok") is True:
            return answer
        raise make_refusal(answer.status, data.get("error") if isinstance(data, dict) else None, answer.headers)


@dataclass(frozen=True)
class Webhook:
    """An incoming webhook of Slack, whose address is its secret."""

    url: str = field(repr=False)
    known: tuple[str, ...] = field(default=(), repr=False)

    def send(self, limit_s: float, body: Mapping[str, Any]) -> None:
        """Post a message; SlackError for every other outcome."""
        answer = post(self.url, json.dumps(clean_message(body, self.known)).encode(), {"Content-Type": _JSON}, limit_s)
        text = answer.body.decode("utf-8", errors="replace").strip()
        if answer.status != 200:
            raise make_refusal(answer.status, text, answer.headers)
        if text != "ok":
            raise UncertainError("the webhook sent an invalid response")


def post(url: str, content: bytes, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """The answer to a POST, of any status; SlackError, without anything of the request, where there is none."""
    try:
        return http_util.send("POST", url, content, headers, timeout_s)
    except NoAnswerError as error:
        raise _make_fault(error) from None


def _make_fault(error: NoAnswerError) -> SlackError:
    """What the failure says of the outcome: a request that was not sent whole was certainly not taken."""
    if error.loss is Loss.NOT_SENT:
        return BusyError(f"Slack could not be reached ({error.cause})")
    if error.loss is Loss.LATE:
        return UncertainError("Slack did not answer in time")
    if error.loss is Loss.TOO_LONG:
        return UncertainError("Slack's response is too long")
    return UncertainError(f"the connection to Slack was lost ({error.cause})")
