"""What the servers on this machine have in common that stand in for those of others, and how such a server fails."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler


class QuietServer(socketserver.ThreadingTCPServer):
    """A listening socket on this machine."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, handler: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *arguments: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: QuietServer, closing: threading.Event) -> Iterator[None]:
    """The server answers until the block ends; closing: what requests that hang wait for."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            closing.set()
            server.shutdown()
            thread.join()


def reset(connection: socket.socket) -> None:
    """End a connection as a machine does that goes away."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class FailingHandler(BaseHTTPRequestHandler):
    """An HTTP request, and the ways in which it may fail until `closing` is set."""

    protocol_version = "HTTP/1.1"

    @property
    def closing(self) -> threading.Event:
        raise NotImplementedError

    def log_message(self, *arguments: object) -> None:
        pass

    def send_answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a whole answer; in the names of `headers`, _ stands for -."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail_reset(self, *_: object) -> None:
        reset(self.connection)

    def fail_hang(self, *_: object) -> None:
        self.closing.wait(60)

    def fail_drip_head(self, *_: object) -> None:
        self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 60000)

    def fail_drip_body(self, *_: object) -> None:
        self._send_head(b"Content-Length: 60000\r\n")
        self._drip(b" " * 60000)

    def fail_endless(self, *_: object) -> None:
        self._send_head(b"")
        while not self.closing.is_set():
            self.wfile.write(b" " * 65536)

    def _send_head(self, more: bytes) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + more + b"\r\n")

    def _drip(self, content: bytes) -> None:
        for index in range(len(content)):
            self.wfile.write(content[index : index + 1])
            if self.closing.wait(0.05):
                return
