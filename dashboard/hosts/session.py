"""The conversation of one night with the worker on one host. It ends when this process does, and the worker with it."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from dashboard.hosts import launcher, messages, parcels
from dashboard.hosts.bundle import Code
from dashboard.hosts.channel import Channel, ChannelError, SilenceError
from dashboard.hosts.copies import Copies
from dashboard.hosts.messages import (
    BEAT_S,
    SILENCE_S,
    Acknowledge,
    Beat,
    Begin,
    Ended,
    Fetch,
    HandOver,
    Hello,
    Holds,
    Message,
    Offer,
    Ready,
    Refused,
    Tvm,
)  # fmt: skip
from dashboard.plan.hosts import Host
from dashboard.process import orphans, process
from dashboard.process.orphans import MARK
from tvmdash.errors import DashboardError

_ANSWER_S = 120.0
_ENVIRONMENT_S = 1800.0
"""The worker's Python packages are installed at its first start."""
_PACKING_S = 600.0
_END_S = 10.0
_TAIL_BYTES = 2000
_Wanted = TypeVar("_Wanted", bound=Message)


class _LateError(ChannelError):
    """What was to be done is not done in time, though the host may be there."""


class Session:
    """What a night says to one host and hears of it. Every method but `close` raises DashboardError, with the name."""

    def __init__(self, host: Host, home: Path, mark: str, log: Path) -> None:
        self._host, self._home, self._mark, self._log = host, home, mark, log
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._sending_beats: threading.Thread | None = None
        self.is_copying = False
        """Whether it was sent a TVM tonight."""

    def open(self, code: Code) -> Hello:
        """Reach the host, see to it that it has the code, and start its worker there."""
        argv = launcher.make_command(self._host, code.hash, self._home)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._clear()
        with self._log.open("wb") as errors:
            self._process = orphans.start(lambda: self._start(argv, errors.fileno()), self._mark)
        assert self._process.stdin
        assert self._process.stdout
        self._channel = Channel(self._process.stdout.fileno(), self._process.stdin.fileno(), self._host.name)
        with self._explained(launcher.make_remedy(self._host)):
            is_wanted = self._wait_for_answer()
        with self._explained():
            if is_wanted:
                self._send_code(code)
            return self._receive((Hello,), _ENVIRONMENT_S)

    def _clear(self) -> None:
        """End what this night or an earlier one, which was killed, may have left there; no other one is alive."""
        argv = launcher.make_clearing(self._host, self._home)
        if argv:
            log = self._log.with_suffix(".clear.log")
            with contextlib.suppress(DashboardError, process.Cancelled):  # who starts the worker says what is wrong
                process.run(argv, cwd=Path("/"), env=os.environ, timeout_s=_ANSWER_S, log=log)

    def _start(self, argv: list[str], errors: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, MARK: self._mark},
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise DashboardError(f"{self._host.name}: could not start {argv[0]}: {error.strerror}.") from error

    def _wait_for_answer(self) -> bool:
        """Whether the host, which is reached then, wants the code."""
        patience_s = self._host.patience_s + _ANSWER_S
        while not (line := self._channel.receive_line(patience_s)).startswith(messages.MARK):
            pass  # what a login shell prints
        return line.split()[1:] == [messages.WANT]

    def _send_code(self, code: Code) -> None:
        with code.file.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._channel.send_raw(str(size), file, size)

    def measure(self, begin: Begin, config: bytes, copies: Copies, tell_ready: Callable[[], None]) -> Ended:
        """Let it measure, with what it lacks of `copies`, and wait until that is over; `tell_ready` once it has all."""
        with self._explained():
            self._channel.send(begin, io.BytesIO(config), len(config))
            self._sending_beats = threading.Thread(target=self._send_beats, name=f"host-{self._host.name}", daemon=True)
            self._sending_beats.start()
            return self._wait_until_measured(copies, tell_ready)

    def _wait_until_measured(self, copies: Copies, tell_ready: Callable[[], None]) -> Ended:
        limit_s, name = self._host.patience_s + self._host.time_limit_s, self._host.name
        end = time.monotonic() + limit_s
        try:
            while not isinstance(message := self._receive((Ended, Fetch, Ready), end - time.monotonic()), Ended):
                if isinstance(message, Fetch):
                    self._send_tvm(message.key, copies)
                else:
                    tell_ready()
        except _LateError as error:
            raise ChannelError(
                f"{name}: stopped after {limit_s / 60:.0f} minutes (patience_minutes plus time_limit_minutes) before "
                f"it had measured everything. Raise $.hosts.{name}.time_limit_minutes if it needs longer."
            ) from error
        return message

    def _send_tvm(self, key: str, copies: Copies) -> None:
        self.is_copying = True
        try:
            path = copies.pack(key)
        except DashboardError as error:
            self._channel.send(Tvm(key, why=str(error)))
            return
        with path.open("rb") as content:
            self._channel.send(Tvm(key, parcels.hash_file(path)), content, path.stat().st_size)

    def _send_beats(self) -> None:
        with contextlib.suppress(ChannelError):  # whoever receives says so
            while not self._closing.wait(BEAT_S):
                self._channel.send(Beat())

    def collect(self, folder: Path, take_in: Callable[[Path, str], None]) -> None:
        """Fetch each parcel into `folder`, and acknowledge it once `take_in` has it; called with its night's stamp."""
        folder.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._channel.send(HandOver())
            for _ in range(self._receive((Holds,), _ANSWER_S).parcels):
                offer = self._receive((Offer,), _PACKING_S, into=folder)
                file = folder / f"{offer.id}.tar"
                take_in(file, offer.stamp)
                file.unlink(missing_ok=True)
                self._channel.send(Acknowledge(offer.id))

    def _receive(self, wanted: tuple[type[_Wanted], ...], within_s: float, into: Path | None = None) -> _Wanted:
        """The next message that is no beat; once the worker is there, no silence may be long."""
        end = time.monotonic() + within_s
        silence_s = within_s if Hello in wanted else SILENCE_S  # it beats from then on
        while True:
            left_s = end - time.monotonic()
            try:
                message, size = self._channel.receive(min(silence_s, left_s))
            except SilenceError as error:
                if left_s <= silence_s and Hello not in wanted:
                    raise _LateError(f"{self._host.name}: timed out after {within_s:.0f} s.") from error
                raise
            if isinstance(message, Offer) and into is not None:
                self._fetch(message, size, into)
            if isinstance(message, wanted):
                return message
            if isinstance(message, Refused):
                raise DashboardError(f"{self._host.name}: {message.why}")
            if not isinstance(message, Beat):
                raise ChannelError(f"{self._host.name}: unexpected reply {type(message).__name__}.")

    def _fetch(self, offer: Offer, size: int, folder: Path) -> None:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp", delete=False) as file:
            self._channel.receive_bytes(size, file, SILENCE_S)
        path = Path(file.name)
        if parcels.hash_file(path) != offer.id:
            path.unlink()
            raise ChannelError(
                f"{self._host.name}: the result archive {offer.id[:12]} was damaged in transit. It is sent again with "
                "the next night."
            )
        os.replace(path, folder / f"{offer.id}.tar")

    @contextlib.contextmanager
    def _explained(self, remedy: str = "") -> Iterator[None]:
        """An error of the conversation with what the host, or what reaches it, said last, and with the remedy."""
        try:
            yield
        except ChannelError as error:
            said = self._read_last_words()
            last = f" Last output: {said}" if said else ""
            raise DashboardError(f"{error}{last} (log: {self._log}){f' {remedy}' if remedy else ''}") from error

    def _read_last_words(self) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
            return " ".join(line.strip() for line in lines[-3:] if line.strip())
        return ""

    def close(self) -> None:
        """End the conversation; the worker ends as well. Safe to be called at any time, from any thread, twice."""
        self._closing.set()
        running, self._process = self._process, None
        if running is None:
            return
        assert running.stdin
        assert running.stdout
        with contextlib.suppress(OSError):
            running.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                orphans.signal_group(running.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(_END_S)
                break
        orphans.end(running.pid, self._mark)
        orphans.forget(running.pid)
        running.stdout.close()
        self._clear()
