"""One hash over all that a process ran while it timed a point: equal hashes mean equal bytes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.measure import prebuilt

FACT = "content"
"""The fact of a trial that holds the hash."""
_MAPPED = Path("/proc/self/maps")
_REPLACED = " (deleted)"
_IMPORTING = "<frozen importlib._bootstrap>"
_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
Code = str | bytes
"""Python code that ran: the path of its file, or its bytes where it was made in the process."""


class FileHashes:
    """SHA-256 of files, kept in `path` for the processes after this one: a compiler library has 250 MB."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.made_here = f"{path.resolve().parent / prebuilt.FOLDER}{os.sep}"
        self._known: dict[str, list[Any]] = self._read()
        self._is_changed = False

    def _read(self) -> dict[str, list[Any]]:
        try:
            value = common.read_json(self._path)
        except DashboardError:  # there is none yet
            return {}
        return value if isinstance(value, dict) else {}

    def find(self, name: str) -> str:
        """Return the hash of the file with that name; OSError where it cannot be read."""
        file = Path(name)
        stat = file.stat()
        state = [stat.st_ino, stat.st_size, stat.st_mtime_ns]
        known = self._known.get(name)
        if known is not None and known[:3] == state:
            return str(known[3])
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        self._known[name] = [*state, digest]
        self._is_changed = True
        return digest

    def save(self) -> None:
        """Write the hashes for the processes after this one."""
        if self._is_changed:
            common.write_json(self._path, self._known, durable=False)


@contextlib.contextmanager
def watch_python(ran: set[Code]) -> Iterator[None]:
    """Add to `ran` the Python code that this thread calls in the block.

    Left out: what importing a module does, once; and Python's own and installed packages, whose mapped libraries
    stand for them.
    """
    importing: FrameType | None = None

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal importing
        if importing is not None:
            if event == "return" and frame is importing:
                importing = None
        elif event == "call":
            code = frame.f_code
            if code.co_filename == _IMPORTING:
                importing = frame
            elif code.co_filename.startswith("<"):
                ran.add(code.co_code)
            elif not code.co_filename.startswith(_INSTALLED):
                ran.add(code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def hash_content(program: str, ran: Iterable[Code], facts: Mapping[str, Any], hashes: FileHashes) -> str | None:
    """Return the hash over a program, the Python code that ran, `facts`, and every file whose code is mapped.

    TVM's libraries are among these; not those that the run compiled, its other points' too: a program's hash says what
    is in its own. None where one of the files is gone.
    """
    try:
        mapped = sorted(hashes.find(name) for name in _list_mapped() if not name.startswith(hashes.made_here))
        python = {code.hex() if isinstance(code, bytes) else hashes.find(code) for code in ran}
    except OSError:
        return None
    text = json.dumps([program, mapped, sorted(python), facts], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()


def _list_mapped() -> set[str]:
    """Return the files of which this process may execute something."""
    names = set()
    for line in _MAPPED.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) > 5 and "x" in fields[1] and fields[5].startswith("/"):
            names.add(fields[5])
    # the kernel marks a mapped file that was removed or replaced: its bytes can no longer be hashed
    replaced = [name for name in names if name.endswith(_REPLACED)]
    if replaced:
        raise FileNotFoundError(replaced[0])
    return names
