"""A tracker and a server on 127.0.0.1, for as long as somebody holds the other end of their standard input.

As a script (`loopback.py KEY`) it is the process that keeps them: it says on standard output where the tracker listens,
waits for the end of its input, and ends everything in its process group, TVM's popen_worker processes too. That end
comes when its starter ends, however that happens.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.relax_util.rpc import Address

HOST = "127.0.0.1"
PORTS_TRIED = 100
STARTS_WITHIN_S = 120.0
"""Three processes import TVM."""


@contextlib.contextmanager
def loopback(key: str, environment: Mapping[str, str]) -> Iterator[Address]:
    """Start a tracker that has one device, `key`: this machine. All of its processes end with the context.

    `environment` is theirs. DashboardError where they do not come up within `STARTS_WITHIN_S`.
    """
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).resolve()), key],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,
    )
    try:
        yield _ready(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in filter(None, (process.stdin, process.stdout)):
            pipe.close()


def _ready(process: subprocess.Popen[bytes]) -> Address:
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if not selector.select(STARTS_WITHIN_S):
            raise DashboardError(f"the loopback server did not come up within {STARTS_WITHIN_S:g} s.")
    line = process.stdout.readline()
    if not line:
        raise DashboardError("the loopback server ended before it came up; the log of the run stage says why.")
    port: int = json.loads(line)
    return HOST, port


def serve(key: str) -> None:
    """Keep tracker and server; ends with this process and its group."""
    output = os.dup(1)
    os.dup2(2, 1)  # the workers' words belong into the log
    from tvm.rpc.server import Server
    from tvm.rpc.tracker import Tracker

    tracker = Tracker(HOST, *_ports(), silent=True)
    server = Server(HOST, *_ports(), tracker_addr=(HOST, tracker.port), key=key, silent=True)
    os.write(output, f"{tracker.port}\n".encode())
    os.close(output)
    sys.stdin.read()
    del server
    os.killpg(0, signal.SIGKILL)


def _ports() -> tuple[int, int]:
    """Find a port that is free now, and the end of the range to look for another should it be taken meanwhile."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port, min(port + PORTS_TRIED, 65536)


if __name__ == "__main__":
    serve(sys.argv[1])
