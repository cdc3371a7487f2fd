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
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NoReturn

_MOST_BYTES = 1 << 20
_ENDED, _HEARD = b"ended", b"heard"
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


@dataclass
class Running:
    """A program that was begun in a warm process: what of a Popen its callers use."""

    args: list[str]
    pid: int
    server: socket.socket
    returncode: int | None = None
    stdout: BinaryIO | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code; TimeoutExpired where it has none in so many seconds."""
        if self.returncode is None:
            if not select.select([self.server], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            self.server.recv(_MOST_BYTES)
            self.server.send(_HEARD)
            self.returncode, cpu_s = json.loads(self.server.recv(_MOST_BYTES))
            _spent_s.append(cpu_s)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """End it at once, where it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Warm:
    """A process that has imported `modules`, found in `path`, and runs one program after the other."""

    def __init__(self, modules: Sequence[str], path: Sequence[str | Path]) -> None:
        self._modules, self._path = modules, os.pathsep.join(map(str, path))
        self._server: socket.socket | None = None

    def run(self, order: Order, output: BinaryIO, *, timeout_s: float) -> int:
        """The exit code, as of subprocess; TimeoutExpired where it was ended after so long.

        Both its outputs are written to the file `output`.
        """
        running = self.begin(order, output)
        try:
            code = running.wait(timeout_s)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
            raise
        return code

    def begin(self, order: Order, output: BinaryIO, *, passed: int | None = None) -> Running:
        """The program, begun, with the file of number `passed` open as well; the next begins when it has ended."""
        server = self.start()
        message = json.dumps([*astuple(order), passed]).encode()
        socket.send_fds(server, [message], [output.fileno(), *([] if passed is None else [passed])])
        (pid,) = json.loads(server.recv(_MOST_BYTES))
        return Running(list(order.arguments), pid, server)

    def start(self) -> socket.socket:
        """Start it where it has not been; where it hears orders."""
        self._server = self._server or self._start()
        return self._server

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


class WarmPrograms:
    """Warm processes in place of the module subprocess, as many as run at once; each starts when it is needed."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, count: int, modules: Sequence[str], path: Sequence[str | Path]) -> None:
        self._warm = [Warm(modules, path) for _ in range(count)]
        self._running: list[Running | None] = [None] * count

    def Popen(self, argv: Sequence[str], env: Mapping[str, str], pass_fds: Sequence[int] = ()) -> Running:  # noqa: N802
        """What runs `python ARGV[1:]`, as of subprocess.Popen."""
        free = next(at for at, running in enumerate(self._running) if running is None or running.poll() is not None)
        order, passed = Order(argv[1:], env, os.getcwd()), pass_fds[0] if pass_fds else None
        with tempfile.TemporaryFile() as output:
            running = self._running[free] = self._warm[free].begin(order, output, passed=passed)
        return running

    def run(self, argv: Sequence[str], *, env: Mapping[str, str], check: bool, timeout: float) -> SimpleNamespace:
        """What has run `python ARGV[1:]`, as of subprocess.run."""
        assert not check
        running = self.Popen(argv, env)
        try:
            return SimpleNamespace(returncode=running.wait(timeout))
        finally:
            running.kill()
            running.wait()


def _end(server: socket.socket, process: subprocess.Popen[bytes]) -> None:
    server.close()
    process.wait()


def _serve(server: socket.socket) -> tuple[Order, int] | None:
    """Fork for each order: in the child, the order and the file for its output; None when there will be no more.

    What is passed to the program as well has the number there that the order says.
    """
    while True:
        message, files, _, _ = socket.recv_fds(server, _MOST_BYTES, 2)
        if not message:
            return None
        *order, passed = json.loads(message)
        pid = os.fork()
        if not pid:
            server.close()
            return Order(*order), _output_of(files, passed)
        for file in files:
            os.close(file)
        server.send(json.dumps([pid]).encode())
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # whoever began it asks the system for it by its number
        server.send(_ENDED)
        server.recv(_MOST_BYTES)
        _, status, used = os.wait4(pid, 0)
        server.send(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime]).encode())


def _output_of(files: list[int], passed: int | None) -> int:
    """The file for the output; the other one, if there is one, gets its number."""
    output, *more = files
    if more and passed is not None and more[0] != passed:
        if output == passed:
            output = os.dup(output)
        os.dup2(more[0], passed)
        os.close(more[0])
    elif passed is not None:
        os.set_inheritable(passed, True)
    return output


def _become(order: Order, output: int, base: Sequence[str]) -> None:
    """Go on as that program; base: where the interpreter's own packages lie."""
    os.chdir(order.folder)
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    os.environ.clear()
    os.environ.update(order.environment)
    tempfile.tempdir = None  # found by the variables of whoever asked first
    own = [part for part in order.environment.get("PYTHONPATH", "").split(os.pathsep) if part]
    first, *rest = order.arguments
    if first == "-m":
        sys.path[:], sys.argv = [order.folder, *own, *base], rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[:], sys.argv = [str(Path(first).resolve().parent), *own, *base], [first, *rest]
        runpy.run_path(first, run_name="__main__")


def _end_as(program: Callable[..., None], *arguments: Any) -> NoReturn:
    """Run the program and end as Python does, but for clearing its modules: that takes longer than a short command."""
    code: object = None
    try:
        program(*arguments)
    except SystemExit as stop:
        code = stop.code
    if not isinstance(code, int):
        if code is not None:
            print(code, file=sys.stderr)
        code = int(code is not None)
    threading._shutdown()  # type: ignore[attr-defined]  # joins threads, those of executors too
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def main() -> None:
    """Import what the arguments name, then serve."""
    number, *modules = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    serve(socket.socket(fileno=int(number)))


def serve(server: socket.socket) -> NoReturn:
    """Fork for each order that comes, until none will; the fork ends as its program does."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    base = [part for part in sys.path if part not in (*given, str(Path(__file__).parent))]
    served = _serve(server)
    if not served:
        os._exit(0)
    os.setsid()
    _end_as(_become, *served, base)


def fork(order: Order) -> int:
    """Have a copy of this process, which has no other thread, go on as that program; its number."""
    pid = os.fork()
    if not pid:
        atexit._clear()
        sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
        try:
            _end_as(_become, order, os.dup(1), list(sys.path))
        except BaseException:  # noqa: BLE001 - whatever it is, it must not go on as what it is a copy of
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    return pid


if __name__ == "__main__":
    main()
