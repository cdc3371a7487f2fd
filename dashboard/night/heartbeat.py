"""Tell a dead man's switch that a night began and how it ended: who does not hear of it knows that it did not run.

Two forms: of healthchecks.io (and what speaks like it) ADDRESS/start, ADDRESS, ADDRESS/fail with `rid`; of Cronitor
ADDRESS?state=run, complete, fail with `series`. https://healthchecks.io/docs/http_api/, https://cronitor.io/docs/telemetry-api
"""

from __future__ import annotations

import enum
import logging
import os
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from tvmdash.common import http_util
from tvmdash.common.http_util import Answer, Loss, NoAnswerError, find_url_fault
from tvmdash.dashboard_info import Home, Night, last_config
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

_START_S, _END_S, _REQUEST_S, _PAUSE_S, _TRIES = 5.0, 15.0, 5.0, 0.5, 3
"""Seconds that a ping may cost a night that begins, and one that ends; seconds of one request, pause, and tries."""
_MAX_BODY_BYTES, _MAX_PARAMETER_CHARS, _MAX_ANSWER_BYTES = 10_000, 1_000, 1 << 16
_CRONITOR = (".cronitor.link", ".cronitor.io")
_log = logging.getLogger("night")


class HeartbeatStyle(enum.StrEnum):
    """The form of a service's addresses."""

    AUTO = "auto"
    """Cronitor for its own hosts, else healthchecks."""
    HEALTHCHECKS = "healthchecks"
    CRONITOR = "cronitor"


class _Event(enum.Enum):
    """An event as the end of the path, and as Cronitor's `state`."""

    START = ("/start", "run")
    SUCCESS = ("", "complete")
    FAIL = ("/fail", "fail")


@dataclass
class Heartbeat:
    """A night's heartbeat at `url`, nothing where that is empty. It never raises, and costs seconds at most."""

    url: str = field(repr=False)
    style: HeartbeatStyle = HeartbeatStyle.AUTO
    secrets: tuple[str, ...] = field(default=(), repr=False)
    home: str = ""
    run_id: str = ""

    def start(self, stamp: str) -> None:
        """Tell that the night `stamp` has begun: it holds the home."""
        self.run_id = make_run_id(self.home, stamp)
        self._tell(_Event.START, "", _START_S)

    def succeed(self) -> None:
        """Tell that every job went well."""
        self._tell(_Event.SUCCESS, "", _END_S)

    def fail(self, text: str) -> None:
        """Something did not; `text` says what. Of a long one the begin and the end are told."""
        self._tell(_Event.FAIL, _cut(redact(text, self.secrets)), _END_S)

    def _tell(self, event: _Event, body: str, limit_s: float) -> None:
        if not self.url:
            return
        if unusable := find_url_fault(self.url):
            _log.warning("heartbeat_url: the URL %s. The night itself is not affected.", unusable)
            return
        end, fault = time.monotonic() + limit_s, "did not answer in time"
        for attempt in range(_TRIES):
            left_s = end - time.monotonic()
            if left_s <= 0:
                break
            time.sleep(_PAUSE_S * (attempt > 0))
            try:
                answer = self._send(event, body, min(left_s, _REQUEST_S))
            except (NoAnswerError, TimeoutError) as error:
                fault = _describe_loss(error)
            else:
                if 200 <= answer.status < 300:
                    return
                fault = f"answered {answer.status}"
                # Asked in the same way again, it would refuse again; only 429 and errors of the server pass.
                if answer.status < 500 and answer.status != 429:
                    break
        # Not the address: who knows that can answer in the night's stead.
        _log.warning("heartbeat_url: the host %s. The night itself is not affected.", fault)

    def _send(self, event: _Event, body: str, limit_s: float) -> Answer:
        address = make_address(self.url, self.style, event.value, self.run_id, body)
        content = body.encode("utf-8", errors="replace")
        method = "POST" if content else "GET"
        headers = {"User-Agent": "tvm-dashboard", **({"Content-Type": "text/plain; charset=utf-8"} if content else {})}

        def send() -> Answer:
            return http_util.send(method, address, content, headers, limit_s, max_bytes=_MAX_ANSWER_BYTES)

        return http_util.end_after(limit_s, send)


def open_heartbeat(home: Home) -> Heartbeat:
    """Open the heartbeat that the config names, even where another part of it has a fault, which is then told."""
    try:
        value = last_config.read_config(home)
    except DashboardError:
        return Heartbeat("")
    fields: Mapping[str, object] = value if isinstance(value, dict) else {}
    url, style = fields.get("heartbeat_url"), fields.get("heartbeat_style")
    chosen = next((known for known in HeartbeatStyle if known == style), HeartbeatStyle.AUTO)
    return Heartbeat(url if isinstance(url, str) else "", chosen, find_secrets_of_home(home), str(home.root))


def make_run_id(home: str, stamp: str) -> str:
    """Make the UUID of one night, the same for its start and its end."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{os.uname().nodename}:{home}:{stamp}"))


def make_address(url: str, style: HeartbeatStyle, event: tuple[str, str], run_id: str, body: str = "") -> str:
    parts = urlsplit(url)
    given, host = parse_qsl(parts.query, keep_blank_values=True), parts.hostname or ""
    ending, state = event
    if style is HeartbeatStyle.AUTO and f".{host}".endswith(_CRONITOR):
        style = HeartbeatStyle.CRONITOR
    if style is HeartbeatStyle.CRONITOR:
        given += [("state", state), *([("series", run_id)] if run_id else [])]
        given += [("message", body[:_MAX_PARAMETER_CHARS])] if body else []
        return urlunsplit(parts._replace(query=urlencode(given)))
    given += [("rid", run_id)] if run_id else []
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}{ending}" or "/", query=urlencode(given)))


def format_failure(summary: str, night: Night) -> str:
    """Join the night's summary and the end of the output of each stage that failed."""
    steps = [(job, step) for job in night.jobs if (step := job.first_failure)]
    tails = [
        f"--- {job.kind} {job.name}, {step.stage}:\n{step.log_tail.rstrip()}" for job, step in steps if step.log_adds
    ]
    return "\n\n".join([f"Run {night.stamp}", summary, *tails])


def _cut(text: str) -> str:
    content = text.encode("utf-8", errors="replace")
    if len(content) <= _MAX_BODY_BYTES:
        return text
    half = _MAX_BODY_BYTES // 2 - 10
    begin, end = content[:half].decode(errors="ignore"), content[-half:].decode(errors="ignore")
    return f"{begin}\n[...]\n{end}"


def _describe_loss(error: Exception) -> str:
    if isinstance(error, NoAnswerError) and error.loss is not Loss.LATE:
        return f"could not be reached ({error.cause})"
    return "did not answer in time"
