"""A home's website over HTTP, for a look at it: only its own files, of whatever site is there at the moment."""

from __future__ import annotations

import contextlib
import functools
import gzip
import hmac
import ipaddress
import logging
import os
import re
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from dashboard.report import triage
from dashboard.report.triage import Clerk
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".csv": "text/csv; charset=utf-8",
    ".xml": "application/atom+xml; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
}
_UNKNOWN = "application/octet-stream"
_COMPRESSED = (".html", ".css", ".js", ".json", ".csv", ".xml", ".svg")
_POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_POLICY_OF_GRAPHS = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_IDLE_S = 5
"""A connection on which nothing is asked for so long makes room for another."""
_CHUNK = 64 << 10
_BODY_S = 120.0
"""A submission must be there whole within so many seconds."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", re.ASCII)
_log = logging.getLogger("serve")


@dataclass(frozen=True)
class FoundFile:
    """A file of the site: its open descriptor, its name below the site, what the system says of it."""

    descriptor: int
    name: str
    status: os.stat_result

    @property
    def tag(self) -> str:
        """Another text for other content: the site's files are replaced, never written into."""
        return f"{self.status.st_ino:x}-{self.status.st_mtime_ns:x}-{self.status.st_size:x}"

    def read(self) -> bytes:
        with os.fdopen(self.descriptor, "rb", closefd=False) as file:
            return file.read()


def find(root: Path, name: str) -> FoundFile | None:
    """Open the regular file `name` below `root`; None where there is none.

    No part of the name is followed where it is a link, so nothing outside is ever read.
    """
    parts = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in parts):
        return None
    with contextlib.ExitStack() as stack:
        try:
            folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(os.close, folder)
            for part in parts[:-1]:
                folder = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                stack.callback(os.close, folder)
            file = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except (OSError, ValueError):
            return None
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode):
        os.close(file)
        return None
    return FoundFile(file, name, status)


@dataclass(frozen=True)
class Submission:
    """A file that somebody with the token sent: its name, its bytes, and what the query says of it."""

    name: str
    content: bytes
    options: Mapping[str, str]


@dataclass(frozen=True)
class Desk:
    """The place for submissions: who knows the token may send so many bytes, and `accept` says what became of it."""

    token: str
    max_bytes: int
    accept: Callable[[Submission], tuple[HTTPStatus, str]]


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD, and POST where there is a desk; everything else is refused."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a kept connection waits 40 ms between the head of an answer and its content
    server_version = "dashboard"
    sys_version = ""
    timeout = _IDLE_S
    root: Path
    names: frozenset[str]
    desk: Desk | None = None
    clerk: Clerk | None = None

    def do_POST(self) -> None:
        assert isinstance(self.server, LimitedServer)
        with self.server.answering(self.connection):
            is_triage = self.clerk is not None and urlsplit(self.path).path == f"/{triage.PREFIX}act"
            status, text = self._triage() if is_triage else self._take_submission()
            self.close_connection = True  # what was refused was not read
            self._respond(status, text, Connection="close")

    def _take_submission(self) -> tuple[HTTPStatus, str]:
        """Take a submission. Nothing of it is read before its sender and its size are known."""
        parts, desk = urlsplit(self.path), self.desk or Desk("", 0, lambda _: (HTTPStatus.NOT_IMPLEMENTED, ""))
        name, length = unquote(parts.path).removeprefix("/submit/"), self.headers.get("Content-Length", "")
        size = int(length) if re.fullmatch(r"[0-9]{1,12}", length) and "Transfer-Encoding" not in self.headers else -1
        token = self.headers.get("Authorization", "").encode(errors="replace")
        host, is_named = self.headers.get("Host", ""), parts.path.startswith("/submit/") and _NAME.fullmatch(name)
        refusals = (
            (self.desk is None, HTTPStatus.NOT_IMPLEMENTED, "This server takes no submissions without --token-file."),
            (not is_asked_for(host, self.names), HTTPStatus.MISDIRECTED_REQUEST, "This server has another name."),
            (not hmac.compare_digest(token, f"Bearer {desk.token}".encode()), HTTPStatus.UNAUTHORIZED, "Wrong token."),
            (not is_named, HTTPStatus.NOT_FOUND, "Post to /submit/NAME, a name of letters, digits, - _ and dots."),
            (size < 0, HTTPStatus.LENGTH_REQUIRED, "Content-Length is missing."),
            (size > desk.max_bytes, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"More than {desk.max_bytes} bytes."),
        )
        for holds, status, text in refusals:
            if holds:
                return status, text
        if (content := self._read_body(size)) is None:
            return HTTPStatus.REQUEST_TIMEOUT, "The body was cut off or too slow."
        return desk.accept(Submission(name, content, dict(parse_qsl(parts.query))))

    def _triage(self) -> tuple[HTTPStatus, str]:
        """Have the clerk perform an act on an incident."""
        assert self.clerk is not None
        length = self.headers.get("Content-Length", "")
        size = int(length) if re.fullmatch(r"[0-9]{1,6}", length) else -1
        if not is_asked_for(self.headers.get("Host", ""), self.names):
            return HTTPStatus.MISDIRECTED_REQUEST, "This server has another name."
        if refusal := self.clerk.find_refusal(self.headers):
            return HTTPStatus.FORBIDDEN, refusal
        if not 0 <= size <= triage.MAX_BYTES:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"More than {triage.MAX_BYTES} bytes."
        if (content := self._read_body(size)) is None:
            return HTTPStatus.REQUEST_TIMEOUT, "The body was cut off or too slow."
        return self.clerk.act(content, self.headers)

    def _read_body(self, size: int) -> bytes | None:
        """Read the body; None where it is cut off or too slow."""
        content, end = bytearray(), time.monotonic() + _BODY_S
        with contextlib.suppress(TimeoutError):
            while (left := size - len(content)) and time.monotonic() < end:
                if not (chunk := self.rfile.read1(min(_CHUNK, left))):
                    break
                content += chunk
        return None if left else bytes(content)

    def do_GET(self) -> None:
        assert isinstance(self.server, LimitedServer)
        with self.server.answering(self.connection):
            self._answer()

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self) -> None:
        host = self.headers.get("Host", "")
        if not is_asked_for(host, self.names):
            own = "an address or one of " + ", ".join(sorted(self.names))
            return self._respond(
                HTTPStatus.MISDIRECTED_REQUEST,
                f"This server does not answer to the host name {host!r}, only to {own}. Use serve --name to add one.",
            )
        try:
            path = unquote(urlsplit(self.path).path, errors="strict")
        except ValueError:
            return self._respond(HTTPStatus.BAD_REQUEST, "This is not the address of a page.")
        name = path.lstrip("/")
        if self.clerk is not None and (found := self.clerk.read(name, self.headers)):
            kind, content = found
            return self._respond(HTTPStatus.OK, content, kind)
        return self._answer_with_file(name)

    def _answer_with_file(self, name: str) -> None:
        file = find(self.root, name + "index.html" if name.endswith("/") or not name else name)
        if file is not None:
            try:
                return self._send(file)
            finally:
                os.close(file.descriptor)
        page = find(self.root, f"{name}/index.html")
        if page is not None:
            os.close(page.descriptor)
            return self._respond(HTTPStatus.MOVED_PERMANENTLY, "This is a folder.", Location=quote(f"/{name}/"))
        first = find(self.root, "index.html")
        if first is not None:
            os.close(first.descriptor)
            return self._respond(HTTPStatus.NOT_FOUND, "Page not found.")
        return self._respond(
            HTTPStatus.NOT_FOUND, "There is no site yet. The subsystem `website` writes it during a night."
        )

    def _send(self, file: FoundFile) -> None:
        suffix = Path(file.name).suffix.lower()
        zipped = suffix in _COMPRESSED and _accepts_gzip(self.headers.get("Accept-Encoding", ""))
        tag = f'"{file.tag}{"-gz" if zipped else ""}{"-t" if self.clerk else ""}"'
        headers = {
            "ETag": tag,
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY_OF_GRAPHS if file.name.startswith("graphs/") else _POLICY,
            **({"Vary": "Accept-Encoding"} if suffix in _COMPRESSED else {}),
        }
        if tag in [known.strip().removeprefix("W/") for known in self.headers.get("If-None-Match", "").split(",")]:
            return self._head(HTTPStatus.NOT_MODIFIED, headers)
        content = file.read()
        if self.clerk is not None and suffix == ".html":
            content = self.clerk.add_script(file.name, content)
        if zipped:
            content = _zip(content)
            headers["Content-Encoding"] = "gzip"
        headers |= {"Content-Type": _TYPES.get(suffix, _UNKNOWN), "Content-Length": str(len(content))}
        self._head(HTTPStatus.OK, headers)
        if self.command != "HEAD":
            for start in range(0, len(content), _CHUNK):  # the time-out is for a write, not for the whole file
                self.wfile.write(content[start : start + _CHUNK])
        return None

    def _respond(
        self, status: HTTPStatus, text: str | bytes, kind: str = "text/plain; charset=utf-8", **headers: str
    ) -> None:
        content = text if isinstance(text, bytes) else f"{text}\n".encode()
        sent = {"Content-Type": kind, "Content-Length": str(len(content)), "Cache-Control": "no-cache", **headers}
        self._head(status, sent)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(self, status: HTTPStatus, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class's name
        """Requests are no news."""
        _log.debug(format, *arguments)


@functools.lru_cache(maxsize=256)
def _zip(content: bytes) -> bytes:
    # Without a time in it, equal pages have equal bytes.
    return gzip.compress(content, 5, mtime=0)


def _accepts_gzip(header: str) -> bool:
    for part in header.lower().split(","):
        coding, _, quality = part.strip().partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


def make_server(
    home: Home,
    bind: str,
    port: int,
    names: Sequence[str] = (),
    desk: Desk | None = None,
    clerk: Clerk | None = None,
) -> LimitedServer:
    """Make a server of the website on `bind`, at a free port with 0; DashboardError where that cannot be.

    It answers who asks for an address, for this machine's own name, or for one of `names`.
    """
    if not home.root.is_dir():
        raise DashboardError(f"{home.root}: no such folder.")
    known = names_of_this_machine([bind, *names])
    handler = type(
        "HomeHandler", (Handler,), {"root": home.output("website"), "names": known, "desk": desk, "clerk": clerk}
    )
    server = type(
        "HomeServer", (LimitedServer,), {"address_family": socket.AF_INET6 if ":" in bind else socket.AF_INET}
    )
    try:
        made: LimitedServer = server((bind, port), handler)
    except (OSError, OverflowError) as error:
        raise DashboardError(
            f"--bind {bind} --port {port}: cannot listen on this address: {error}. Try --port 0."
        ) from error
    return made


def serve(
    home: Home, bind: str, port: int, names: Sequence[str], desk: Desk | None = None, clerk: Clerk | None = None
) -> None:
    """Serve until Ctrl-C; the address is said first, and whether there is a website yet."""
    with make_server(home, bind, port, names, desk, clerk) as server:
        shows = f"{_address_of(server)} serves the website of {home.root}."
        if home.page() is None:
            made = "The subsystem `website` writes it during a night; it will then be served at"
            shows = f"{home.root} has no website yet. {made} {_address_of(server)}"
        sys.stdout.write(f"{shows} Press Ctrl-C to stop.\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def _address_of(server: LimitedServer) -> str:
    host, port = str(server.server_address[0]), server.server_address[1]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


_MOST_CONNECTIONS = 128
_HEAD_S = 10.0
"""Within so many seconds a request must be there whole, and a connection that is kept open must be used again."""
_ANSWER_S = 5.0
"""An answer that has lasted longer makes room where every place is taken."""
_POLL_S = 0.1


@dataclass
class _Connection:
    """is_answered: its request is there; since: when that, or the waiting for one, began, by the monotonic clock."""

    socket: socket.socket
    since: float
    is_answered: bool = False


class LimitedServer(ThreadingHTTPServer):
    """One thread a connection, `most_connections` at once. Who comes later takes the place of the slowest.

    That is the connection that has waited longest for a whole request, dripping or idle, then the longest answer.
    """

    daemon_threads = True
    request_queue_size = 128  # a browser opens many connections at once; one beyond the queue waits for seconds
    most_connections = _MOST_CONNECTIONS
    head_s = _HEAD_S
    answer_s = _ANSWER_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._connections: dict[int, _Connection] = {}
        self._changing = threading.Condition()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changing:
            while len(self._connections) >= self.most_connections and not self._shed_slowest():
                self._changing.wait(_POLL_S)
            self._connections[id(request)] = _Connection(request, time.monotonic())
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._forget(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._forget(request)

    def _forget(self, request: Any) -> None:
        with self._changing:
            self._connections.pop(id(request), None)
            self._changing.notify()

    @contextlib.contextmanager
    def answering(self, request: Any) -> Iterator[None]:
        """While the block runs, the request on this connection is there and is answered."""
        self._note(request, is_answered=True)
        try:
            yield
        finally:
            self._note(request, is_answered=False)

    def _note(self, request: Any, *, is_answered: bool) -> None:
        with self._changing:
            if id(request) in self._connections:  # else it was shed
                self._connections[id(request)] = _Connection(request, time.monotonic(), is_answered)

    def service_actions(self) -> None:
        """Close the connections whose request does not come."""
        super().service_actions()
        with self._changing:
            latest = time.monotonic() - self.head_s
            for key, connection in list(self._connections.items()):
                if not connection.is_answered and connection.since < latest:
                    self._shed(key)

    def _shed_slowest(self) -> bool:
        """Close the slowest connection, if any is slow; whether there is room."""
        slowest = min(
            self._connections, key=lambda key: (self._connections[key].is_answered, self._connections[key].since)
        )
        connection = self._connections[slowest]
        if connection.is_answered and time.monotonic() - connection.since < self.answer_s:
            return False
        self._shed(slowest)
        return True

    def _shed(self, key: int) -> None:
        """Close the connection: its thread then reads the end and goes."""
        with contextlib.suppress(OSError):  # the reader has gone
            self._connections.pop(key).socket.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a reader that goes away in the middle, which is no news."""
        _log.debug("a request from %s ended", client_address, exc_info=True)


def names_of_this_machine(also: Iterable[str]) -> frozenset[str]:
    """Return the names under which readers may ask for the server: this machine's own and `also`."""
    return frozenset(name.lower().rstrip(".") for name in ("localhost", socket.gethostname(), *also))


def is_asked_for(host: str, names: frozenset[str]) -> bool:
    """Return True where a request's Host header names this server.

    A page of another site can have its own name point here (DNS rebinding), and would then be let read what is
    served; it cannot make a browser send another name than its own. An address is no such name.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name.rstrip(".") in names
    return True
