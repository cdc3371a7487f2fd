"""Filling a new site: what has not changed is carried over from the old one, the rest is written.

`published.json` in the site says by what it was made, and of each such file from what, and how large it is. A file that
is missing there, has another size, or was made by another code is made again; so a damaged one costs a full build and
nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from files.files import carry_over, write_data, write_new
from tvmdash import common
from tvmdash.errors import DashboardError

STATE_FILE = "published.json"
SCHEMA_VERSION = 1
NONE = "none"
_MAKERS = (Path(__file__).resolve().parents[1], Path(common.__file__).resolve().parents[1])
"""The website and the library, which judges and words what pages show. No file of them is left out by hand: a list of
those that matter was wrong whenever code moved, and a full build takes seconds."""


def fingerprint(*parts: str) -> str:
    """Return a text that changes when any of the texts does."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", errors="surrogatepass"))
    return digest.hexdigest()[:20]


def mark(path: Path) -> str:
    """Return a text that changes when the file does; NONE where there is none."""
    try:
        status = path.stat()
    except OSError:
        return NONE
    return f"{status.st_size}-{status.st_mtime_ns}"


@functools.cache
def code_version() -> str:
    """Return a text that changes with any file of the website or the library: then all of the site is made anew."""
    digest = hashlib.sha256()
    for folder in _MAKERS:
        for path in sorted(folder.rglob("*")):
            if path.parent.name != "__pycache__" and path.is_file():
                content = path.read_bytes()
                digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


@dataclass
class IncrementalSite:
    """Puts files into `new`; `old` is the site that readers see meanwhile, and is only read.

    is_same_code: whether the old site was made by this `version`; of another one's files nothing is carried over.
    """

    old: Path
    new: Path
    version: str
    is_same_code: bool = False
    known: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    files: dict[str, tuple[str, int]] = field(default_factory=dict)

    @classmethod
    def begin(cls, old: Path, new: Path, version: str) -> IncrementalSite:
        """Read what the old site says of its files; `version` changes with all that makes them but their sources."""
        made_by, known = _read(old / STATE_FILE)
        return cls(old, new, version, made_by == version, known)

    def folder(self, name: str) -> None:
        (self.new / name).mkdir(parents=True, exist_ok=True)

    def made_from(self, name: str) -> str:
        """Return what the old site's file was made from; empty where there is none, or it is not what was published."""
        known = self.known.get(name)
        return known[0] if known is not None and _size(f"{self.old}/{name}") == known[1] else ""

    def carry(self, name: str, made_from: str) -> bool:
        """Carry over the old site's file of this name, if it was made from the same; tell whether it was."""
        known = self.known.get(name)
        source = f"{self.old}/{name}"
        if not self.is_same_code or known is None or known[0] != made_from or _size(source) != known[1]:
            return False
        carry_over(source, f"{self.new}/{name}")
        self.files[name] = known
        return True

    def write(self, name: str, content: bytes, made_from: str) -> None:
        write_new(f"{self.new}/{name}", content)
        self.files[name] = (made_from, len(content))

    def adopt(self, name: str, made_from: str) -> None:
        """Record a file that somebody else has written into the new site."""
        self.files[name] = (made_from, (self.new / name).stat().st_size)

    def close(self) -> None:
        """Leave in the site what the next publish needs to know."""
        value = {"schema_version": SCHEMA_VERSION, "version": self.version, "files": self.files}
        write_data(f"{self.new}/{STATE_FILE}", value)


def _size(path: str) -> int | None:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size
    return None


def _read(path: Path) -> tuple[str, dict[str, tuple[str, int]]]:
    with contextlib.suppress(DashboardError, KeyError, TypeError, ValueError, AttributeError):
        value = common.read_json(path)
        if value["schema_version"] == SCHEMA_VERSION:
            files = {str(name): (str(made_from), int(size)) for name, (made_from, size) in value["files"].items()}
            return str(value["version"]), files
    return "", {}
