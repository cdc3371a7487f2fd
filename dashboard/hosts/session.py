"""The conversation of one night with the worker on one host. It ends when this process does, and the worker with it."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TypeVar

from dashboard.hosts import launcher, messages, parcels
from dashboard.hosts.bundle import BundledCode, Copies
from dashboard.hosts.messages import (
    BEAT_S,
    HAND_OVER_S,
    SILENCE_S,
    Acknowledge,
    Beat,
    Begin,
    Channel,
    ChannelError,
    Ended,
    Fetch,
    HandOver,
    Hello,
    Holds,
    Message,
    Offer,
    Ready,
    Refused,
    SilenceError,
    Tvm,
)  # fmt: skip
from dashboard.plan.settings import Host
from dashboard.process import orphans, process
from dashboard.process.process import BoundedLog
from dashboard.process.watchdog import MARK
from tvmdash.errors import DashboardError
from tvmdash.text import elide

_ANSWER_S = 120.0
_ENVIRONMENT_S = 1800.0
"""The worker's Python packages are installed at its first start."""
_PACKING_S = 600.0
_END_S = 10.0
_LAST_WORDS_S = 2.0
_MOST_LINES = 20_000
"""The limit of messages and of lines before the first: more than beats in three days."""
_LONGEST_WHY = 2000
_Wanted = TypeVar("_Wanted", bound=Message)


class _LateError(ChannelError):
    """The host was too slow, but may still be there."""


class Session:
    """A night's conversation with one host. Every method but `close` raises DashboardError, with the name."""

    def __init__(self, host: Host, home: Path, mark: str, log: Path) -> None:
        self._host, self._home, self._mark, self._log = host, home, mark, log
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()
        self._sending_beats: threading.Thread | None = None
        self._lines = 0
        self.is_copying = False
        """True once a TVM was sent to it tonight."""

    def open(self, code: BundledCode) -> Hello:
        """Reach the host, see to it that it has the code, and start its worker there."""
        argv = launcher.make_command(self._host, code.hash, self._home)
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._clear()
        self._process = orphans.start(lambda: self._start(argv), self._mark)
        assert self._process.stderr
        self._errors = BoundedLog(self._log)
        self._keeping = threading.Thread(target=self._keep_errors, args=(self._process.stderr,), daemon=True)
        self._keeping.start()
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

    def _keep_errors(self, source: IO[bytes]) -> None:
        """Keep what the host, or what reaches it, prints, within the bounds of a log."""
        with source, self._errors:
            while self._errors.copy_once(source):
                pass

    def _start(self, argv: list[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, MARK: self._mark},
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise DashboardError(f"{self._host.name}: could not start {argv[0]}: {error.strerror}.") from error

    def _wait_for_answer(self) -> bool:
        """Wait until the host is reached; return True where it wants the code."""
        end = time.monotonic() + self._host.patience_s + _ANSWER_S
        while not (line := self._channel.receive_line(end - time.monotonic())).startswith(messages.MARK):
            self._count_line()  # what a login shell prints
        return line.split()[1:] == [messages.WANT]

    def _count_line(self) -> None:
        self._lines += 1
        if self._lines > _MOST_LINES:
            raise ChannelError(f"{self._host.name}: sent more than {_MOST_LINES} lines, which no worker does.")

    def _send_code(self, code: BundledCode) -> None:
        with code.file.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._channel.send_raw(str(size), file, size, _ENVIRONMENT_S)

    def measure(self, begin: Begin, config: bytes, copies: Copies, tell_ready: Callable[[], None]) -> Ended:
        """Let it measure, with what it lacks of `copies`, and wait until that is over; `tell_ready` once it has all."""
        with self._explained():
            self._channel.send(begin, io.BytesIO(config), len(config), _ENVIRONMENT_S)
            self._sending_beats = threading.Thread(target=self._send_beats, name=f"host-{self._host.name}", daemon=True)
            self._sending_beats.start()
            return self._wait_until_measured(copies, tell_ready)

    def _wait_until_measured(self, copies: Copies, tell_ready: Callable[[], None]) -> Ended:
        limit_s, name = self._host.patience_s + self._host.time_limit_s, self._host.name
        end = time.monotonic() + limit_s
        try:
            while not isinstance(message := self._receive((Ended, Fetch, Ready), end - time.monotonic()), Ended):
                if isinstance(message, Fetch):
                    self._send_tvm(message.key, copies, end)
                else:
                    tell_ready()
        except _LateError as error:
            raise ChannelError(
                f"{name}: stopped after {limit_s / 60:.0f} minutes (patience_minutes plus time_limit_minutes) before "
                f"it had measured everything. Raise $.hosts.{name}.time_limit_minutes if it needs longer."
            ) from error
        return message

    def _send_tvm(self, key: str, copies: Copies, end: float) -> None:
        self.is_copying = True
        try:
            path = copies.pack(key)
        except DashboardError as error:
            self._channel.send(Tvm(key, why=str(error)))
            return
        with path.open("rb") as content:
            size, left_s = path.stat().st_size, end - time.monotonic()
            self._channel.send(Tvm(key, parcels.hash_file(path)), content, size, left_s)

    def _send_beats(self) -> None:
        with contextlib.suppress(ChannelError):  # whoever receives says so
            while not self._closing.wait(BEAT_S):
                self._channel.send(Beat())

    def collect(self, folder: Path, least_free_bytes: int, take_in: Callable[[Path, str], None]) -> None:
        """Fetch each parcel into `folder`, and acknowledge it once `take_in` has it; called with its night's stamp.

        None is fetched that could leave less than `least_free_bytes` free.
        """
        folder.mkdir(parents=True, exist_ok=True)
        end, stamps = time.monotonic() + HAND_OVER_S, set[str]()
        with self._explained():
            if self._closing.is_set():
                raise ChannelError(f"{self._host.name}: connection closed.")
            self._channel.send(HandOver())
            for _ in range(self._receive((Holds,), _ANSWER_S).parcels):
                within_s = min(_PACKING_S, end - time.monotonic())
                offer, size = self._receive_with_size((Offer,), within_s)
                # Else a host could keep this night busy with one parcel for ever.
                if offer.stamp in stamps:
                    raise ChannelError(f"{self._host.name}: offered the night {offer.stamp} twice.")
                stamps.add(offer.stamp)
                file = self._fetch(offer, size, folder, least_free_bytes, end)
                take_in(file, offer.stamp)
                file.unlink(missing_ok=True)
                self._channel.send(Acknowledge(offer.id))

    def _receive(self, wanted: tuple[type[_Wanted], ...], within_s: float) -> _Wanted:
        return self._receive_with_size(wanted, within_s)[0]

    def _receive_with_size(self, wanted: tuple[type[_Wanted], ...], within_s: float) -> tuple[_Wanted, int]:
        """Return the next message that is no beat; once the worker is there, no silence may be long."""
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
            self._count_line()
            if isinstance(message, wanted):
                return message, size
            if isinstance(message, Refused):
                raise DashboardError(f"{self._host.name}: {elide(message.why, _LONGEST_WHY)}")
            if not isinstance(message, Beat):
                raise ChannelError(f"{self._host.name}: unexpected reply {type(message).__name__}.")

    def _fetch(self, offer: Offer, size: int, folder: Path, least_free_bytes: int, end: float) -> Path:
        """Fetch the parcel into a file; OSError where there is no room for it and for what is in it."""
        if shutil.disk_usage(folder).free < 2 * size + least_free_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".", suffix=".tmp", delete=False) as file:
            path = Path(file.name)
            try:
                self._channel.receive_bytes(size, file, SILENCE_S, end - time.monotonic())
                file.flush()
                if parcels.hash_file(path) != offer.id:
                    raise ChannelError(
                        f"{self._host.name}: the result archive {offer.id[:12]} was damaged in transit. It is sent "
                        "again with the next night."
                    )
            except BaseException:
                path.unlink()
                raise
        return path.replace(folder / f"{offer.id}.tar")

    @contextlib.contextmanager
    def _explained(self, remedy: str = "") -> Iterator[None]:
        """Complete an error of the conversation with the host's last output, and with the remedy."""
        try:
            yield
        except ChannelError as error:
            said = self._read_last_words()
            last = f" Last output: {said}" if said else ""
            raise DashboardError(f"{error}{last} (log: {self._log}){f' {remedy}' if remedy else ''}") from error

    def _read_last_words(self) -> str:
        self._keeping.join(_LAST_WORDS_S)  # what was printed before the connection ended may still be on its way
        return " ".join(line.strip() for line in self._errors.tail(3).splitlines() if line.strip())

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
        # A worker ends by itself once its input is closed, and saves what it has; signals are for one that hangs.
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
