"""Typed messages over two pipes: a line of JSON each, after some of them so many bytes."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from typing import IO

from dashboard.hosts.messages import KINDS, Message
from tvmdash import structured
from tvmdash.errors import DashboardError

_CHUNK = 1 << 20
_LONGEST_LINE = 1 << 20
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

    def send(self, message: Message, content: IO[bytes] | None = None, size: int = 0) -> None:
        """Say it; with the `size` bytes of `content`."""
        line = {_KIND: type(message).__name__, _BYTES: size, **structured.to_json(message)}
        with self._sending:
            self._write(json.dumps(line, allow_nan=False).encode() + b"\n")
            self._copy(content, size)

    def send_raw(self, line: str, content: IO[bytes], size: int) -> None:
        """Say a line to what is no worker yet, then the `size` bytes of `content`."""
        with self._sending:
            self._write(line.encode() + b"\n")
            self._copy(content, size)

    def _copy(self, content: IO[bytes] | None, size: int) -> None:
        left = size
        while content is not None and left:
            chunk = content.read(min(_CHUNK, left))
            if not chunk:
                raise ChannelError(
                    f"{self._name}: file was truncated while it was sent; {left} of {size} bytes are missing."
                )
            self._write(chunk)
            left -= len(chunk)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._writer, view) :]
        except OSError as error:
            raise ChannelError(f"{self._name}: connection lost: {error.strerror}.") from error

    def receive(self, within_s: float) -> tuple[Message, int]:
        """The next message, and how many bytes follow it (`receive_bytes`)."""
        line = self.receive_line(within_s)
        try:
            value = json.loads(line)
            kind, size = KINDS[value.pop(_KIND)], int(value.pop(_BYTES))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise ChannelError(f"{self._name}: {line!r:.120} is not a valid worker message.") from None
        try:
            return structured.from_json(kind, value, self._name), size
        except DashboardError as error:
            raise ChannelError(str(error)) from error

    def receive_line(self, within_s: float) -> str:
        """The next line, whoever says it."""
        end = time.monotonic() + within_s
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST_LINE:
                raise ChannelError(f"{self._name}: received an unterminated line.")
            self._buffer += self._read(end - time.monotonic(), within_s)
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = bytearray(rest)
        return line.decode("utf-8", errors="replace")

    def receive_bytes(self, size: int, into: IO[bytes], silence_s: float) -> None:
        """Write the next `size` bytes into `into`."""
        left = size
        while left:
            if not self._buffer:
                self._buffer += self._read(silence_s, silence_s)
            taken = bytes(self._buffer[:left])
            del self._buffer[: len(taken)]
            into.write(taken)
            left -= len(taken)

    def _read(self, left_s: float, within_s: float) -> bytes:
        if left_s <= 0 or not select.select([self._reader], [], [], left_s)[0]:
            raise SilenceError(f"{self._name}: no message received for {within_s:.0f} s.")
        data = os.read(self._reader, _CHUNK)
        if not data:
            raise ChannelError(f"{self._name}: connection closed.")
        return data
