"""The messages between a night and the worker on a host, and the channel that carries them over two pipes.

A message is a line of JSON, after some of them so many bytes. Each side takes the other for a stranger: a message that
is not as described here cannot be made, and neither can make the other wait, compute or store without a bound.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError

PROTOCOL = 1
MARK = "tvm-dashboard-worker"
"""Begins the line with which a host answers; what its login shell prints before is passed over."""
HAVE, WANT = "have", "want"
"""The words after the mark: the host has the dashboard's code of tonight, or wants it."""
BEAT_S = 15.0
"""Each side says at least this often that it is there."""
SILENCE_S = 120.0
"""A side that says nothing for so long is gone."""
HAND_OVER_S = 2 * 3600.0
"""The time for all that a host hands over in one night; what is left comes with the next."""
_LATEST_UNIX_S = 1e11
_MOST_PARCELS = 10_000
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Hello:
    """The worker is there. unix_s: its clock; free_bytes: of the disk that holds its folder.

    python_tag, machine: as artifacts name what they were built for.
    """

    protocol: int
    node: str
    hw_model: str
    python: str
    python_tag: str
    machine: str
    unix_s: float
    free_bytes: int

    def __post_init__(self) -> None:
        """ValueError where it is no time of a clock or no size."""
        if not 0 <= self.unix_s <= _LATEST_UNIX_S or self.free_bytes < 0:
            raise ValueError("says a time or a free space that there is not")


@dataclass(frozen=True)
class Begin:
    """Measure a night of this stamp with the configs that follow, a tar archive.

    rebuild: get TVMs from where they come from, else only what is at hand counts.
    tvms: the bytes of those that the home has and would copy, by key.
    """

    stamp: str
    host: str
    seed: int
    patience_s: float
    rebuild: bool
    repository: Mapping[str, Any] = field(default_factory=dict)
    tvms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fetch:
    """Copy this TVM of the home to here."""

    key: str


@dataclass(frozen=True)
class Tvm:
    """The TVM that was asked for, a tar archive, follows. id: its SHA-256. why: it is not sent, for people."""

    key: str
    id: str = ""
    why: str = ""


@dataclass(frozen=True)
class Ready:
    """The machine is the worker's, and nothing more needs to be copied."""


@dataclass(frozen=True)
class Beat:
    """Whoever says it is there."""


@dataclass(frozen=True)
class Ended:
    """The night there is over, or could not begin; what there is can be handed over.

    why: it went wrong, for people. interrupted: it had begun; what it has measured comes with the next night.
    """

    why: str = ""
    interrupted: bool = False


@dataclass(frozen=True)
class Refused:
    """The worker cannot go on; `why` is for people."""

    why: str


@dataclass(frozen=True)
class HandOver:
    """Hand over every parcel that was not acknowledged."""


@dataclass(frozen=True)
class Holds:
    """The number of parcels to come, each offered once the one before is acknowledged."""

    parcels: int

    def __post_init__(self) -> None:
        if not 0 <= self.parcels <= _MOST_PARCELS:
            raise ValueError(f"is not 0 to {_MOST_PARCELS} parcels")


@dataclass(frozen=True)
class Offer:
    """A parcel, whose bytes follow; id: their SHA-256, in hexadecimal."""

    id: str
    stamp: Stamp

    def __post_init__(self) -> None:
        if not _HASH.fullmatch(self.id):
            raise ValueError("has an ID that is no SHA-256")


@dataclass(frozen=True)
class Acknowledge:
    """The parcel is kept at home, on its disk; it need not be offered again."""

    id: str


Message = Hello | Begin | Fetch | Tvm | Ready | Beat | Ended | Refused | HandOver | Holds | Offer | Acknowledge
KINDS: Mapping[str, type[Message]] = {
    kind.__name__: kind
    for kind in (Hello, Begin, Fetch, Tvm, Ready, Beat, Ended, Refused, HandOver, Holds, Offer, Acknowledge)
}
MOST_BYTES: Mapping[type[Message], int] = {Begin: 1 << 30, Tvm: 64 << 30, Offer: 16 << 30}
"""The largest number of bytes that may follow a message; nothing follows any other."""


_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 20
_SHOWN = 400
_KIND, _BYTES = "kind", "bytes"


class ChannelError(DashboardError):
    """The other side has gone, is silent, or says what cannot be understood."""


class SilenceError(ChannelError):
    """The other side says nothing for too long."""


class Channel:
    """One side of the conversation. Its methods raise ChannelError; sending is safe from several threads."""

    def __init__(self, reader: int, writer: int, name: str) -> None:
        self._reader, self._writer, self._name = reader, writer, name
        self._buffer = bytearray()
        self._sending = threading.Lock()
        os.set_blocking(writer, False)  # else a write lasts for as long as the other side does not read

    def send(
        self, message: Message, content: IO[bytes] | None = None, size: int = 0, within_s: float = SILENCE_S
    ) -> None:
        """Send the message, with the `size` bytes of `content`."""
        line = {_KIND: type(message).__name__, _BYTES: size, **structured.to_json(message)}
        self.send_raw(json.dumps(line, allow_nan=False), content, size, within_s)

    def send_raw(self, line: str, content: IO[bytes] | None, size: int, within_s: float = SILENCE_S) -> None:
        """Say a line, perhaps to what is no worker yet, then the `size` bytes of `content`."""
        end = time.monotonic() + within_s
        with self._sending:
            self._write(line.encode() + b"\n", end)
            self._copy(content, size, end)

    def _copy(self, content: IO[bytes] | None, size: int, end: float) -> None:
        left = size
        while content is not None and left:
            chunk = content.read(min(_CHUNK, left))
            if not chunk:
                raise ChannelError(
                    f"{self._name}: file was truncated while it was sent; {left} of {size} bytes are missing."
                )
            self._write(chunk, end)
            left -= len(chunk)

    def _write(self, data: bytes, end: float) -> None:
        view = memoryview(data)
        try:
            while view:
                if not _wait_for(self._writer, select.POLLOUT, min(SILENCE_S, end - time.monotonic())):
                    raise SilenceError(f"{self._name}: does not read what is sent to it.")
                try:
                    # A pipe takes as much as it has room for.
                    view = view[os.write(self._writer, view) :]
                except BlockingIOError:
                    continue
        except OSError as error:
            raise ChannelError(f"{self._name}: connection lost: {error.strerror}.") from error

    def receive(self, within_s: float) -> tuple[Message, int]:
        """Return the next message, and the number of bytes that follow it (`receive_bytes`)."""
        line = self._receive_line(within_s)
        try:
            return self._parse(common.parse_json(line, self._name))
        except DashboardError as error:
            shown = line[:_SHOWN].decode("utf-8", errors="replace")
            raise ChannelError(
                f"{self._name}: {shown!r:.120} is not a valid worker message: {error.problem or error}"
            ) from error

    def _parse(self, value: common.Json) -> tuple[Message, int]:
        if not isinstance(value, dict):
            raise DashboardError("it is not an object.")
        name, size = value.pop(_KIND, None), value.pop(_BYTES, None)
        kind = KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise DashboardError(f"there is no kind {name!r:.40}.")
        if type(size) is not int or not 0 <= size <= MOST_BYTES.get(kind, 0):
            raise DashboardError(f"{size!r:.40} is not 0 to {MOST_BYTES.get(kind, 0)} bytes.")
        return structured.from_json(kind, value, self._name), size

    def receive_line(self, within_s: float) -> str:
        """Return the next line, whoever wrote it."""
        return self._receive_line(within_s).decode("utf-8", errors="replace")

    def _receive_line(self, within_s: float) -> bytes:
        end, searched = time.monotonic() + within_s, 0
        while (at := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > _LONGEST_LINE:
                raise ChannelError(f"{self._name}: received an unterminated line.")
            self._buffer += self._read(end - time.monotonic(), within_s)
        line = bytes(self._buffer[:at])
        del self._buffer[: at + 1]
        return line

    def receive_bytes(self, size: int, into: IO[bytes], silence_s: float, within_s: float = math.inf) -> None:
        """Write the next `size` bytes into `into`."""
        left, end = size, time.monotonic() + within_s
        while left > 0:
            if not self._buffer:
                self._buffer += self._read(min(silence_s, end - time.monotonic()), silence_s)
            taken = bytes(self._buffer[:left])
            del self._buffer[: len(taken)]
            into.write(taken)
            left -= len(taken)

    def _read(self, left_s: float, within_s: float) -> bytes:
        try:
            if not _wait_for(self._reader, select.POLLIN, left_s):
                raise SilenceError(f"{self._name}: no message received for {within_s:.0f} s.")
            data = os.read(self._reader, _CHUNK)
        except OSError as error:  # the night has closed it
            raise ChannelError(f"{self._name}: connection closed.") from error
        if not data:
            raise ChannelError(f"{self._name}: connection closed.")
        return data


def _wait_for(descriptor: int, event: int, left_s: float) -> bool:
    """Return True once it can be read or written, or has an error to tell; False where the time is over."""
    poll = select.poll()
    poll.register(descriptor, event)
    return left_s > 0 and bool(poll.poll(left_s * 1000))
