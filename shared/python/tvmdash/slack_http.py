"""Requests to a server that may be down, slow or hostile: bounded in time and size, never redirected or repeated.

`slack_sdk` is imported here alone; its clients are given this way of asking in place of their own.
"""

from __future__ import annotations

import http.client
import io
import logging
import time
import urllib.error
import urllib.request
from email.message import Message as Headers
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tvmdash.common import Json
from tvmdash.redaction import redact_json
from tvmdash.slack_errors import UncertainError, refusal_of
from tvmdash.slack_secrets import is_local

if TYPE_CHECKING:
    from slack_sdk import WebClient
    from slack_sdk.webhook import WebhookClient

MAX_ANSWER_BYTES = 4 << 20


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """urllib would send the token on to wherever a redirection points."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> None:
        return None


def fetch(request: urllib.request.Request, timeout_s: float) -> tuple[int, Headers, bytes]:
    """Status, headers and body (at most 4 MiB) of a good answer; HTTPError, its body bounded, for any other."""
    end = time.monotonic() + timeout_s
    local = is_local(urlsplit(request.full_url).hostname or "")
    proxies = urllib.request.ProxyHandler({} if local else None)
    opener = urllib.request.build_opener(proxies, _NoRedirect(), *_handlers(end))
    try:
        with opener.open(request, timeout=timeout_s) as answer:
            return answer.status, answer.headers, _read(answer, end)
    except urllib.error.HTTPError as error:
        with error:
            body = _read(error, end)
        raise urllib.error.HTTPError("", error.code, str(error.code), error.headers, io.BytesIO(body)) from None


def _handlers(end: float) -> tuple[urllib.request.HTTPHandler, urllib.request.HTTPSHandler]:
    """Handlers that send nothing after `end`: whoever gave up by then must not be surprised by a late success."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            _refuse_after(end)

    class Secure(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            _refuse_after(end)

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

    class SecureHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, req)

    return PlainHandler(), SecureHandler()


def _refuse_after(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError


def _read(answer: IO[bytes], end: float) -> bytes:
    body = bytearray()
    while chunk := answer.read1(65536):  # type: ignore[attr-defined]
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise http.client.HTTPException("the answer is too long")
        _refuse_after(end)
    return bytes(body)


def call_method(client: WebClient, limit_s: float, method: str, *, body: Json = None, form: Json = None) -> Any:
    """The answer to one call of a Web API method; SlackError for every other outcome."""
    from slack_sdk.errors import SlackApiError

    client.timeout = limit_s  # type: ignore[assignment]
    try:
        said = {"params": form} if body is None else {"json": redact_json(body)}
        answer = client.api_call(method, **said)
    except SlackApiError as error:
        data = error.response.data
        code = data.get("error") if isinstance(data, dict) else None
        fault = refusal_of(error.response.status_code, code, error.response.headers)
    else:
        if isinstance(answer.data, dict) and answer.data.get("ok") is True:
            return answer
        fault = UncertainError("Slack's answer makes no sense")
    raise fault


def call_hook(client: WebhookClient, limit_s: float, body: dict[str, Any]) -> None:
    """Post through a webhook; SlackError for every other outcome."""
    client.timeout = limit_s  # type: ignore[assignment]
    answer = client.send_dict(redact_json(body))
    if answer.status_code != 200:
        raise refusal_of(answer.status_code, str(answer.body), answer.headers)
    if answer.body.strip() != "ok":
        raise UncertainError("the webhook's answer makes no sense")


def _silent() -> logging.Logger:
    """The SDK would log requests and answers."""
    logger = logging.getLogger("tvmdash.slack_sdk")
    logger.propagate = False
    logger.setLevel(logging.CRITICAL + 1)
    return logger


def web_client(token: str, url: str) -> WebClient:
    """The SDK's client of the Web API at `url`, made safe."""
    from slack_sdk import WebClient

    class Client(WebClient):
        """Without the SDK's own retries, which may say something twice; answers bounded, redirections refused."""

        def _perform_urllib_http_request_internal(self, url: str, req: urllib.request.Request) -> dict[str, Any]:
            status, headers, body = fetch(req, self.timeout)
            return {"status": status, "headers": headers, "body": body.decode("utf-8")}

    return Client(token=token, base_url=url, retry_handlers=[], logger=_silent())


def hook_client(url: str) -> WebhookClient:
    """The SDK's client of a webhook, made safe."""
    from slack_sdk.webhook import WebhookClient, WebhookResponse

    class Client(WebhookClient):
        """As above."""

        def _perform_http_request_internal(self, url: str, req: urllib.request.Request) -> WebhookResponse:
            status, headers, body = fetch(req, self.timeout)
            return WebhookResponse(url="", status_code=status, body=body.decode("utf-8"), headers=dict(headers.items()))

    return Client(url, retry_handlers=[], logger=_silent())
