"""Python programs that need not import anything: forked from a process that did, and waits for what to run.

They do what `python ARGUMENTS` does, in a session of their own. What depends on how a Python starts, or on what /proc
says of its environment, starts one.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import BinaryIO

_MOST_BYTES = 1 << 20
_spent_s: list[float] = []


def spent_s() -> float:
    """The CPU seconds of all programs that have ended so, with their children."""
    return sum(_spent_s)


@dataclass(frozen=True)
class Order:
    """`arguments` as after `python`: a script or -m and a module, then its own."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str


class Warm:
    """A process that has imported `modules`, found in `path`, and runs one program after the other."""

    def __init__(self, modules: Sequence[str], path: Sequence[str | Path]) -> None:
        self._modules, self._path = modules, os.pathsep.join(map(str, path))
        self._server: socket.socket | None = None

    def run(self, order: Order, output: BinaryIO, *, timeout_s: float) -> int:
        """The exit code, as of subprocess; TimeoutExpired where it was ended after so long.

        Both its outputs are written to the file `output`.
        """
        server = self._server = self._server or self._start()
        socket.send_fds(server, [json.dumps(astuple(order)).encode()], [output.fileno()])
        (pid,) = json.loads(server.recv(_MOST_BYTES))
        is_late = not select.select([server], [], [], timeout_s)[0]
        if is_late:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        code, cpu_s = json.loads(server.recv(_MOST_BYTES))
        if is_late:
            raise subprocess.TimeoutExpired(list(order.arguments), timeout_s)
        _spent_s.append(cpu_s)
        return code

    def _start(self) -> socket.socket:
        from dashboard.process import orphans  # here: what is started so is to import what it is asked to

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno()), *self._modules],
            env={**os.environ, "PYTHONPATH": self._path, "OPENBLAS_NUM_THREADS": "1"},  # no threads: it will fork
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        orphans.spare(process.pid)  # else tests of what a night ends would end it, as a child of their own process
        atexit.register(_end, ours, process)
        return ours


def _end(server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    server.close()
    process.wait()


def _serve(server: socket.socket) -> tuple[Order, int] | None:
    """Fork for each order: in the child, the order and the file for its output; None when there will be no more."""
    while True:
        message, files, _, _ = socket.recv_fds(server, _MOST_BYTES, 1)
        if not message:
            return None
        pid = os.fork()
        if not pid:
            return Order(*json.loads(message)), files[0]
        os.close(files[0])
        server.send(json.dumps([pid]).encode())
        _, status, used = os.wait4(pid, 0)
        server.send(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]).encode())


def _become(order: Order, output: int, base: Sequence[str]) -> None:
    """Go on as that program; base: where the interpreter's own packages lie."""
    os.setsid()
    os.chdir(order.folder)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    os.environ.clear()
    os.environ.update(order.environment)
    own = [part for part in order.environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    first, *rest = order.arguments
    if first == "-m":
        sys.path[:], sys.argv = [order.folder, *own, *base], rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[:], sys.argv = [str(Path(first).resolve().parent), *own, *base], [first, *rest]
        runpy.run_path(first, run_name="__main__")


def main() -> None:
    """Import what the arguments name, then serve."""
    number, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    base = [part for part in sys.path if part not in (*given, str(Path(__file__).parent))]
    gc.collect()
    gc.freeze()
    server = socket.socket(fileno=int(number))
    served = _serve(server)
    if served:
        server.close()
        _become(*served, base)


if __name__ == "__main__":
    main()
