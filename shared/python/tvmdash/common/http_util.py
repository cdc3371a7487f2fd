"""HTTP requests to servers that may be down, slow or hostile: bounded time and size, no redirects, no retries."""

from __future__ import annotations

import enum
import io
import logging
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tvmdash.common import Json, parse_json
from tvmdash.errors import DashboardError

MAX_ANSWER_BYTES = 4 << 20
_HOST = re.compile(r"(?:[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\.|\Z))+")
_T = TypeVar("_T")
logging.getLogger("urllib3").setLevel(logging.ERROR)  # its debug messages hold the path, which may be a secret


class Loss(enum.Enum):
    """Reasons for a missing answer. Only what was not sent was certainly not received."""

    NOT_SENT = enum.auto()
    LATE = enum.auto()
    BROKEN = enum.auto()
    TOO_LONG = enum.auto()


class NoAnswerError(DashboardError):
    """A request without an answer; `cause` names the exception. The message holds nothing of the request."""

    def __init__(self, loss: Loss, cause: str) -> None:
        super().__init__(f"no answer ({cause})")
        self.loss = loss
        self.cause = cause


@dataclass(frozen=True)
class Answer:
    """A server's answer; names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def parsed(self) -> Json:
        """Return the body as strict JSON, or None."""
        try:
            return parse_json(self.body, "the answer")
        except DashboardError:
            return None


def send(
    method: str,
    url: str,
    content: bytes,
    headers: Mapping[str, str],
    timeout_s: float,
    *,
    max_bytes: int = MAX_ANSWER_BYTES,
) -> Answer:
    """Send one request and return its answer, of any status; NoAnswerError where there is none."""
    import requests
    import urllib3

    body = _Body(content, time.monotonic() + timeout_s)
    try:
        with requests.Session() as session:
            session.trust_env = False  # else a .netrc puts its own authorization in the token's place
            with session.request(
                method,
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
                return Answer(answer.status_code, answer_headers, _read(answer.raw, body.end, max_bytes))
    except (OSError, urllib3.exceptions.HTTPError) as error:  # what requests raises is an OSError
        fault = _make_fault(error, body)
    raise fault  # out here: the exceptions of requests hold the request, and with it the token


def find_url_fault(url: str, schemes: Sequence[str] = ("https", "http")) -> str:
    """Return why no request can be sent to `url`, as a clause that quotes nothing of it; empty where one can."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "contains a space, or a character that a URL must escape"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "has an invalid host or port"
    if parts.scheme not in schemes:
        return f"does not start with {' or '.join(f'{scheme}://' for scheme in schemes)}"
    if parts.scheme == "file":
        return "" if parts.path.startswith("/") else "names no absolute path"
    return "" if port != 0 and (_HOST.fullmatch(host) or ":" in host) else "has an invalid host or port"


def is_safe(url: str) -> bool:
    """Return True where a secret may be sent to `url`: over TLS, or to this machine."""
    if find_url_fault(url):
        return False
    parts = urlsplit(url)
    return "@" not in parts.netloc and (parts.scheme == "https" or is_local(parts.hostname or ""))


def is_link(url: str) -> bool:
    """Return True where a page or a mail may link to `url`."""
    return not find_url_fault(url) and not set(url) & set("()<>[]\"'`\\") and "@" not in urlsplit(url).netloc


def make_tls_context() -> ssl.SSLContext:
    """Return a context that trusts the certificates that this machine trusts."""
    import certifi

    context = ssl.create_default_context()
    if _find_authorities() is True:
        context.load_verify_locations(certifi.where())
    return context


def is_local(host: str) -> bool:
    """Return True for the usual names of this machine."""
    return host in {"127.0.0.1", "::1", "localhost"}


class _Body(io.BytesIO):
    """A request's body: not sent after `end`, by which the caller gave up; `is_sent` once all of it was read."""

    def __init__(self, content: bytes, end: float) -> None:
        super().__init__(content)
        self.end = end
        self.is_sent = not content

    def read(self, size: int | None = -1) -> bytes:
        """Return the next part; TimeoutError after `end`."""
        _refuse_after(self.end)
        part = super().read(size)
        self.is_sent = not part
        return part


def _refuse_after(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError


def _find_proxies(url: str) -> dict[str, str]:
    import requests.utils

    return {} if is_local(urlsplit(url).hostname or "") else requests.utils.get_environ_proxies(url)


def _find_authorities() -> str | bool:
    """Return this machine's certificate store, which may hold a company's own; True: that of requests."""
    known = ssl.get_default_verify_paths()
    return known.cafile or known.capath or True


def _read(answer: Any, end: float, max_bytes: int) -> bytes:
    body = bytearray()
    while part := answer.read1(65536):
        body += part
        if len(body) > max_bytes:
            raise NoAnswerError(Loss.TOO_LONG, f"more than {max_bytes} bytes")
        _refuse_after(end)
    return bytes(body)


def _make_fault(error: Exception, body: _Body) -> NoAnswerError:
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    loss = Loss.BROKEN if body.is_sent else Loss.NOT_SENT
    if body.is_sent and isinstance(cause, TimeoutError):
        loss = Loss.LATE
    return NoAnswerError(loss, type(cause).__name__)


def end_after(timeout_s: float, call: Callable[[], _T]) -> _T:
    """Return what `call` returns or raise what it raises; TimeoutError after `timeout_s`, even where it hangs.

    It then goes on in a thread that dies with the process, so its outcome is not known.
    """
    outcome: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            outcome.append((True, call()))
        except BaseException as error:  # noqa: BLE001 - it is raised again in the caller's thread
            outcome.append((False, error))

    thread = threading.Thread(target=work, daemon=True, name="request")
    thread.start()
    thread.join(timeout_s)
    if not outcome:
        raise TimeoutError
    good, value = outcome[0]
    if good:
        return value  # type: ignore[no-any-return]
    raise value
