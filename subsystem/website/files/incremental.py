"""Filling a new site: what has not changed is carried over from the old one, the rest is written.

`published.json` in the site says of each such file what it was made from and how large it is. A file that is missing
there, has another size, or was made by other code is made again; so a damaged one costs a full build and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from files.files import carry_over, write_data, write_new
from tvmdash import common
from tvmdash.errors import DashboardError

STATE_FILE = "published.json"
SCHEMA_VERSION = 1
NONE = "none"
_MAKERS = (
    "files/from_disk.py",
    "files/incremental.py",
    "data/catalogue.py",
    "data/code_changes.py",
    "data/counting.py",
    "data/night_columns.py",
    "inputs/raw_points.py",
    "data/receipts.py",
    "data/said.py",
    "data/shards.py",
)


def fingerprint(*parts: str) -> str:
    """Changes when any of the texts does."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()[:20]


def mark(path: Path) -> str:
    """A text that changes when the file does; NONE where there is none."""
    try:
        status = path.stat()
    except OSError:
        return NONE
    return f"{status.st_size}-{status.st_mtime_ns}"


@functools.cache
def library_version() -> str:
    """Changes with the code of the library, which judges and words what pages show."""
    folder = Path(common.__file__).parent
    paths = sorted(path for pattern in ("*.py", "*.json") for path in folder.rglob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


@functools.cache
def code_version() -> str:
    """Changes with the code that makes the data files: then all of them are made anew."""
    digest = hashlib.sha256()
    for name in _MAKERS:
        digest.update(name.encode() + b"\0" + (Path(__file__).resolve().parents[1] / name).read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class IncrementalSite:
    """Puts files into `new`; `old` is the site that readers see meanwhile, and is only read."""

    old: Path
    new: Path
    version: str
    counted: Mapping[str, Any] = field(default_factory=dict)
    known: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    carried: int = 0
    written: int = 0
    files: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def begin(cls, old: Path, new: Path, version: str) -> IncrementalSite:
        """With what the old site says of its files, as far as code of this `version` made them."""
        known, counted = _read(old / STATE_FILE, version)
        return cls(old, new, version, counted, known)

    def folder(self, name: str) -> None:
        """Make a folder that files will be put into."""
        (self.new / name).mkdir(parents=True, exist_ok=True)

    def made_from(self, name: str) -> str:
        """What the old site's file was made from; empty where there is none, or it is not what was published."""
        known = self.known.get(name)
        return known[0] if known is not None and _size(f"{self.old}/{name}") == known[1] else ""

    def carry(self, name: str, made_from: str) -> bool:
        """Whether the old site's file of this name was made from the same, and is now in the new site too."""
        known = self.known.get(name)
        source = f"{self.old}/{name}"
        if known is None or known[0] != made_from or _size(source) != known[1]:
            return False
        carry_over(source, f"{self.new}/{name}")
        self.files[name] = known
        self.carried += 1
        return True

    def write(self, name: str, content: bytes, made_from: str) -> None:
        """Write the file anew."""
        write_new(f"{self.new}/{name}", content)
        self.files[name] = (made_from, len(content))
        self.written += 1

    def part(self) -> IncrementalSite:
        """One to write some of the files with, in a process of its own."""
        return replace(self, carried=0, written=0, files={})

    def take_in(self, part: IncrementalSite) -> None:
        """Know of the files that a part has put into the new site."""
        self.files.update(part.files)
        self.carried += part.carried
        self.written += part.written

    def adopt(self, name: str, made_from: str) -> None:
        """Take in a file that somebody else has written into the new site."""
        self.files[name] = (made_from, (self.new / name).stat().st_size)
        self.written += 1

    def close(self, counted: Mapping[str, Any]) -> None:
        """Leave in the site what the next publish needs to know."""
        value = {"schema_version": SCHEMA_VERSION, "version": self.version, "files": self.files, "counted": counted}
        write_data(f"{self.new}/{STATE_FILE}", value)


def _size(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size
    return None


def _read(path: Path, version: str) -> tuple[dict[str, tuple[str, int]], dict[str, Any]]:
    with contextlib.suppress(DashboardError, KeyError, TypeError, ValueError, AttributeError):
        value = common.read_json(path)
        if value["schema_version"] == SCHEMA_VERSION and value["version"] == version:
            files = {str(name): (str(made_from), int(size)) for name, (made_from, size) in value["files"].items()}
            return files, dict(value["counted"])
    return {}, {}
