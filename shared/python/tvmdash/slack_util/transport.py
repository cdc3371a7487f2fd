"""Requests to a server that may be down, slow or hostile: bounded in time and size, never redirected or repeated."""

from __future__ import annotations

import io
import json
import logging
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from tvmdash.common import Json
from tvmdash.redaction import redact_json
from tvmdash.slack_util.errors import BusyError, SlackError, UncertainError, make_refusal
from tvmdash.slack_util.token import is_local

MAX_ANSWER_BYTES = 4 << 20
_JSON = "application/json;charset=utf-8"
_FORM = "application/x-www-form-urlencoded"
logging.getLogger("urllib3").setLevel(logging.ERROR)  # its debug messages hold the path, and a webhook's is a secret


@dataclass(frozen=True)
class Answer:
    """What a server answered; the names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def parsed(self) -> Json:
        """The body as JSON, None where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True)
class WebApi:
    """Slack's Web API at `url`, as the owner of a bot token."""

    url: str
    token: str = field(repr=False)

    def call(self, limit_s: float, method: str, *, body: Json = None, form: Mapping[str, str] | None = None) -> Answer:
        """The good answer to one call of a method; SlackError for every other outcome."""
        content = urlencode(form or {}) if body is None else json.dumps(redact_json(body))
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

    def send(self, limit_s: float, body: Mapping[str, Any]) -> None:
        """Post a message; SlackError for every other outcome."""
        answer = post(self.url, json.dumps(redact_json(body)).encode(), {"Content-Type": _JSON}, limit_s)
        text = answer.body.decode("utf-8", errors="replace").strip()
        if answer.status != 200:
            raise make_refusal(answer.status, text, answer.headers)
        if text != "ok":
            raise UncertainError("the webhook's answer makes no sense")


def post(url: str, content: bytes, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """The answer to a POST, of any status; SlackError, without anything of the request, where there is none."""
    import requests
    import urllib3

    body = _Body(content, time.monotonic() + timeout_s)
    try:
        with requests.Session() as session:
            session.trust_env = False  # else a .netrc puts its own authorization in the token's place
            with session.post(
                url,
                data=body if content else None,
                headers={**headers, "Accept-Encoding": "identity", "Connection": "close"},
                timeout=timeout_s,
                allow_redirects=False,  # the token would go wherever a redirection points
                proxies=_find_proxies(url),
                verify=_find_authorities(),
                stream=True,
            ) as answer:
                answer_headers = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status_code, answer_headers, _read(answer.raw, body.end))
    except (OSError, urllib3.exceptions.HTTPError) as error:  # what requests raises is an OSError
        fault = _make_fault(error, body)
    raise fault  # out here: the exceptions of requests hold the request, and with it the token


class _Body(io.BytesIO):
    """A request's body: not sent after `end`, by which the caller gave up; `is_sent` once all of it is on its way."""

    def __init__(self, content: bytes, end: float) -> None:
        super().__init__(content)
        self.end = end
        self.is_sent = not content

    def read(self, size: int | None = -1) -> bytes:
        """The next part; TimeoutError after `end`."""
        _refuse_after(self.end)
        part = super().read(size)
        self.is_sent = not part
        return part


def _refuse_after(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError


def _find_proxies(url: str) -> dict[str, str]:
    """The proxies of the environment; none for this machine itself."""
    import requests.utils

    return {} if is_local(urlsplit(url).hostname or "") else requests.utils.get_environ_proxies(url)


def _find_authorities() -> str | bool:
    """The certificates that this machine trusts, which may be a company's own; where it has none, those of requests."""
    known = ssl.get_default_verify_paths()
    return known.cafile or known.capath or True


def _read(answer: Any, end: float) -> bytes:
    body = bytearray()
    while part := answer.read1(65536):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise UncertainError("Slack's answer is too long")
        _refuse_after(end)
    return bytes(body)


def _make_fault(error: Exception, body: _Body) -> SlackError:
    """What the failure says of the outcome: a request that was not sent whole was certainly not taken."""
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    if not body.is_sent:
        return BusyError(f"Slack cannot be reached ({type(cause).__name__})")
    if isinstance(cause, TimeoutError):
        return UncertainError("Slack did not answer in time")
    return UncertainError(f"the connection to Slack broke ({type(cause).__name__})")
