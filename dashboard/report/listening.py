"""The server's side of a connection: how many readers at once, and by which names they may ask for it."""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from collections.abc import Iterable
from http.server import ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_MOST_CONNECTIONS = 128
_log = logging.getLogger("serve")


class LimitedServer(ThreadingHTTPServer):
    """One thread a connection, `most_connections` at once; who comes later waits until one of them ends."""

    daemon_threads = True
    request_queue_size = 128  # a browser opens many connections at once; one beyond the queue waits for seconds
    most_connections = _MOST_CONNECTIONS

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._free = threading.Semaphore(self.most_connections)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._free.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

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
