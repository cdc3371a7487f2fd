"""A dead man's switch on this machine, stricter than healthchecks.io or Cronitor, that fails when it is told to."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from tests.local_server import FailingHandler, QuietServer, serving

CHECK = "/ping/5b1d1a6e-0c0e-4b8a-9f0e-7a2d1f6f3c11"
MONITOR = "/p/0123456789abcdef/nightly"
_EVENTS = {"/start": "start", "": "success", "/fail": "fail"}
_STATES = {"run": "start", "complete": "success", "fail": "fail"}
_MAX_BYTES, _MAX_MESSAGE = 10_000, 2_000


@dataclass(frozen=True)
class Ping:
    """What was taken: start, success or fail of a run; `text` says more."""

    event: str
    run: str
    text: str = ""


@dataclass
class State:
    """What was taken, in its order. faults: how the next requests go: a status, or 0, which is never answered."""

    url: str = ""
    pings: list[Ping] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    faults: list[int] = field(default_factory=list)
    requests: int = 0
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def events(self) -> list[str]:
        return [ping.event for ping in self.pings]

    def find_wrong(self, ping: Ping) -> str:
        """What is wrong with a run's order; empty where nothing is."""
        open_runs = {known.run for known in self.pings if known.event == "start"}
        open_runs -= {known.run for known in self.pings if known.event != "start"}
        if ping.event != "fail" and not ping.run:
            return f"{ping.event} of no run"
        if ping.run and (ping.run in open_runs) == (ping.event == "start"):
            return f"{ping.event} of the run {ping.run}, which {'is' if ping.event == 'start' else 'is not'} open"
        return ""


class Handler(FailingHandler, BaseHTTPRequestHandler):
    """One request."""

    server: Server

    @property
    def closing(self) -> threading.Event:
        return self.server.state.closing

    def do_GET(self) -> None:
        self.take(b"")

    def do_POST(self) -> None:
        self.take(self.rfile.read(int(self.headers["Content-Length"])))

    def take(self, body: bytes) -> None:
        state = self.server.state
        state.requests += 1
        fault = state.faults.pop(0) if state.faults else 200
        if not fault:
            self.close_connection = True
            self.fail_hang()
            return
        try:
            ping = self.read(body)
            wrong = state.find_wrong(ping) if fault == 200 else ""
        except (ValueError, KeyError) as error:
            ping, wrong = None, f"{self.path}: {error!r}"
        if wrong:
            state.violations.append(wrong)
        elif ping and fault == 200:
            state.pings.append(ping)
        self.send_answer(400 if wrong else fault, Location=state.url)

    def read(self, body: bytes) -> Ping:
        """What it tells; ValueError or KeyError where it tells nothing."""
        parts = urlsplit(self.path)
        fields = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=bool(parts.query)).items()}
        if self.headers["Authorization"] or not self.headers["User-Agent"].startswith("tvm-dashboard"):
            raise ValueError("headers")
        if len(body) > _MAX_BYTES:
            raise ValueError(f"{len(body)} bytes")
        text = body.decode("utf-8")
        if parts.path == MONITOR:
            if len(fields.get("message", "")) > _MAX_MESSAGE or set(fields) - {"state", "series", "message"}:
                raise ValueError("its parameters")
            return Ping(_STATES[fields["state"]], fields.get("series", ""), fields.get("message", ""))
        if not parts.path.startswith(CHECK) or set(fields) - {"rid"}:
            raise ValueError("no such check")
        run = str(uuid.UUID(fields["rid"])) if "rid" in fields else ""
        return Ping(_EVENTS[parts.path.removeprefix(CHECK)], run, text)


class Server(QuietServer):
    """The listening socket."""

    state: State


@contextlib.contextmanager
def switch() -> Iterator[State]:
    """A switch that ends with the block; its `url` is the check's."""
    server = Server(Handler)
    server.state = State(f"http://127.0.0.1:{server.port}{CHECK}")
    with serving(server, server.state.closing):
        yield server.state
