"""The server's side of a connection: how many readers at once, how slow, and by which names they may ask for it."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_MOST_CONNECTIONS = 128
_HEAD_S = 10.0
"""Within so many seconds a request must be there whole, and a connection that is kept open must be used again."""
_ANSWER_S = 5.0
"""Where every place is taken by answers, the oldest that has lasted longer makes room."""
_POLL_S = 0.1
_log = logging.getLogger("serve")


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
        """Its thread then reads the end and goes."""
        with contextlib.suppress(OSError):  # the reader has gone
            self._connections.pop(key).socket.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that goes away in the middle is no news."""
        _log.debug("a request from %s ended", client_address, exc_info=True)


def names_of_this_machine(also: Iterable[str]) -> frozenset[str]:
    """The names by which readers may ask for the server, beside addresses: this machine's own and `also`."""
    return frozenset(name.lower().rstrip(".") for name in ("localhost", socket.gethostname(), *also))


def is_asked_for(host: str, names: frozenset[str]) -> bool:
    """Whether a request's Host header names this server.

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
