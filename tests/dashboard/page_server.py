"""A server of a page of wheels that wants a password, looks who else could have read it, and may be very slow."""

from __future__ import annotations

import base64
import contextlib
import os
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from tests.dashboard.homes import pids
from tests.local_server import QuietServer, serving


class PageServer(QuietServer):
    """It serves the folder `page`. dripping: what begins so is sent a byte a second.

    seen_in: lists of arguments, and files below `watched`, that had a secret while somebody asked.
    """

    def __init__(self, page: Path, password: str, *secrets: str) -> None:
        super().__init__(_Handler)
        self.page, self.password, self.secrets = page, password, (password, *secrets)
        self.dripping, self.watched, self.seen_in, self.asked = "", page, set[str](), 0
        self.closing = threading.Event()

    @property
    def address(self) -> str:
        return f"http://me:{self.password}@127.0.0.1:{self.port}/"

    def look_around(self) -> None:
        """Look who else could read a secret now."""
        logs = (Path(folder) / name for folder, _, names in os.walk(self.watched) for name in names)
        for place in (*(Path(f"/proc/{pid}/cmdline") for pid in pids()), *logs):
            with contextlib.suppress(OSError):  # it is gone
                text = place.read_bytes().decode(errors="replace")
                self.seen_in.update(f"{place}: {text}" for secret in self.secrets if secret in text)


@contextlib.contextmanager
def serve(page: Path, password: str, *secrets: str) -> Iterator[PageServer]:
    """The server, until the block ends."""
    server = PageServer(page, password, *secrets)
    with serving(server, server.closing):
        yield server


class _Handler(SimpleHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        server = self.server
        server.asked += 1
        server.look_around()
        if self.headers["Authorization"] != "Basic " + base64.b64encode(f"me:{server.password}".encode()).decode():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="wheels"')
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif server.dripping and self.path.startswith(server.dripping):
            self._drip()
        else:
            super().do_GET()

    def _drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        while not self.server.closing.wait(1.0):
            self.server.look_around()
            self.wfile.write(b" ")
            self.wfile.flush()

    def translate_path(self, path: str) -> str:
        name = path.partition("?")[0].strip("/")
        return str(self.server.page / name) if name else str(self.server.page)

    def log_message(self, *arguments: object) -> None:
        pass
