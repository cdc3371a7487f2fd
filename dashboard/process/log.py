"""A log that keeps the beginning and the end of an output of any length."""

from __future__ import annotations

import os
import re
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tvmdash.redaction import redact
from tvmdash.text import clean_lines

HEAD_BYTES = 64 << 10
TAIL_BYTES = 192 << 10
_CHUNK_BYTES = 64 << 10
_END_BYTES = 8192
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A stage may have put a pipe there, which nobody reads, or a link to a file that is not its own."""


class BoundedLog:
    """The first 64 KiB of an output go to the file at once, the last 192 KiB when it ends, the rest is counted."""

    def __init__(self, path: Path) -> None:
        self._file = os.fdopen(os.open(path, _NEW, 0o666), "wb", buffering=0)
        self._head_bytes = 0
        self._chunks: deque[bytes] = deque()
        self._kept_bytes = 0
        self._left_out_bytes = 0
        self._end = b""
        self._fault = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def copy_once(self, source: IO[bytes]) -> bool:
        """Take what `source` offers now; False at its end."""
        chunk = os.read(source.fileno(), _CHUNK_BYTES)
        if chunk:
            self.write(chunk)
        return bool(chunk)

    def write(self, chunk: bytes) -> None:
        """Keep `chunk` where it falls within the bounds."""
        self._end = (self._end + chunk)[-_END_BYTES:]
        head = chunk[: max(0, HEAD_BYTES - self._head_bytes)]
        self._head_bytes += len(head)
        self._put(head)
        rest = chunk[len(head) :]
        if rest:
            self._chunks.append(rest)
            self._kept_bytes += len(rest)
        self._drop(self._kept_bytes - TAIL_BYTES)

    def _drop(self, over_bytes: int) -> None:
        """Leave out the oldest of what is kept."""
        while over_bytes > 0:
            oldest = self._chunks.popleft()
            if len(oldest) > over_bytes:
                self._chunks.appendleft(oldest[over_bytes:])
            dropped = min(len(oldest), over_bytes)
            over_bytes -= dropped
            self._kept_bytes -= dropped
            self._left_out_bytes += dropped

    def close(self) -> None:
        """Write the kept end behind the beginning."""
        if self._left_out_bytes:
            self._put(f"\n[... {self._left_out_bytes} bytes omitted ...]\n".encode())
        self._put(b"".join(self._chunks))
        self._chunks.clear()
        self._file.close()

    def _put(self, content: bytes) -> None:
        if self._fault:
            return
        try:
            self._file.write(content)
        except OSError as error:
            # A full disk must not end the night: the tail still reaches the status.
            self._fault = f"\n[log not written: {error.strerror}]"

    @property
    def left_out_bytes(self) -> int:
        return self._left_out_bytes

    def _cut_to_whole_characters(self) -> bytes:
        """The end of the output from a word's begin on: half a secret could not be told from other text."""
        return self._end if len(self._end) < _END_BYTES else re.sub(rb"^\S*", b"", self._end)

    def tail(self, lines: int = 20) -> str:
        """The last lines of the output, at most 2,000 characters; secrets are hidden, control characters replaced."""
        text = redact(self._cut_to_whole_characters().decode("utf-8", errors="replace")) + self._fault
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return "\n".join(clean_lines(text).strip().split("\n")[-lines:])[-2000:]
