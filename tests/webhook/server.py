"""Somebody's webhook on this machine, stricter than most, that fails when it is told to.

It checks what the Standard Webhooks specification asks of who takes a message, and the schema. What is wrong is refused
and kept in `violations`; an ID that it has is taken and not kept twice.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.local_server import FailingHandler, QuietServer, serving

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA = REPOSITORY / "shared" / "python" / "tvmdash" / "schemas" / "webhook_v1.json"
KEY = b"0123456789abcdef0123456789abcdef"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
PATH = "/hooks/tvm?room=7"
_MAX_BYTES, _SKEW_S = 256 << 10, 300


@dataclass(frozen=True)
class Fault:
    """How one request fails; with `taken`, what it brought is kept before."""

    kind: str = "status"
    """status, reset, hang, drip_head, drip_body, endless or redirect"""
    status: int = 500
    retry_after: str | None = None
    taken: bool = False


@dataclass
class State:
    """What was taken, in its order, and how the next requests go.

    repeats: IDs that came again. hanging: a request is held.
    """

    url: str = ""
    taken: dict[str, dict[str, Any]] = field(default_factory=dict)
    repeats: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    requests: int = 0
    strays: list[str] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return list(self.taken.values())


class Handler(FailingHandler, BaseHTTPRequestHandler):
    """One request."""

    server: Server

    @property
    def closing(self) -> threading.Event:
        return self.server.state.closing

    def do_GET(self) -> None:
        self.server.state.strays.append(self.path)
        self.send_answer(404)

    def do_POST(self) -> None:
        state = self.server.state
        state.requests += 1
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = state.faults.pop(0) if state.faults else None
        wrong = self.find_wrong(body)
        if wrong:
            state.violations.append(wrong)
            self.send_answer(400)
            return
        if fault is None or fault.taken:
            identity = self.headers["webhook-id"]
            if identity in state.taken:
                state.repeats.append(identity)
            state.taken.setdefault(identity, json.loads(body))
        if fault is None:
            self.send_answer(204)
            return
        self.close_connection = True
        with contextlib.suppress(OSError):
            getattr(self, f"fail_{fault.kind}")(fault)

    def find_wrong(self, body: bytes) -> str:
        """What is wrong with the request; empty where nothing is."""
        headers = self.headers
        identity, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        mac = hmac.new(KEY, f"{identity}.{moment}.".encode() + body, hashlib.sha256).digest()
        value = json.loads(body)
        faults = {
            f"the path {self.path}": self.path != PATH,
            f"{len(body)} bytes": len(body) > _MAX_BYTES,
            f"the type {headers.get('Content-Type')}": headers.get("Content-Type") != "application/json",
            "no user agent": not headers.get("User-Agent"),
            "an authorization": headers.get("Authorization"),
            f"the moment {moment}": not moment.isdecimal() or abs(time.time() - int(moment)) > _SKEW_S,
            "the signature": headers.get("webhook-signature") != f"v1,{base64.b64encode(mac).decode()}",
            "the key is in the body": KEY in body or SECRET.encode() in body,
            "another ID in the body": value.get("id") != identity,
        }
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        wrong = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
        return "; ".join([*(fault for fault, holds in faults.items() if holds), *wrong])

    def fail_status(self, fault: Fault) -> None:
        self.send_answer(fault.status, **({"Retry_After": fault.retry_after} if fault.retry_after is not None else {}))

    def fail_hang(self, *_: object) -> None:
        self.server.state.hanging.set()
        super().fail_hang()

    def fail_redirect(self, fault: Fault) -> None:
        self.send_answer(302, Location=self.server.state.url.replace("hooks", "elsewhere"))


class Server(QuietServer):
    """The listening socket."""

    state: State


@contextlib.contextmanager
def webhook() -> Iterator[State]:
    """A webhook that ends with the block."""
    server = Server(Handler)
    server.state = State(f"http://127.0.0.1:{server.port}{PATH}")
    with serving(server, server.state.closing):
        yield server.state
