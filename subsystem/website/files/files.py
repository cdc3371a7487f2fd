"""Files of the site: copies that cost nothing, and files of others, of which a damaged one costs its own part alone."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from tvmdash.common import structured
from tvmdash.errors import DashboardError

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def carry_over(source: str | Path, target: str | Path) -> None:
    """Have the content of `source` at `target` too: a second name of the same file, else a copy.

    Only for files that are replaced and never written into. FileNotFoundError where there is none, or no folder.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except FileExistsError:  # two pages show one picture; what is there may be a name of a file of the old site
        os.unlink(target)
        carry_over(source, target)
    except OSError:  # another filesystem, or one without links, or too many of them, or a file of somebody else
        shutil.copyfile(source, target)


def write_new(path: str, content: bytes) -> None:
    """Write a file of the new site, in place of one that was carried over: that one is the old site's as well.

    Not by way of a temporary file, as nobody sees the new site before it is whole.
    """
    try:
        file = os.open(path, _NEW, 0o666)
    except FileExistsError:
        os.unlink(path)
        file = os.open(path, _NEW, 0o666)
    try:
        while content:  # once, but where a disk is full or a file larger than the system writes at once
            content = content[os.write(file, content) :]
    finally:
        os.close(file)


def write_data(path: str, value: Any) -> None:
    """Write JSON for programs, small and fast, as `write_new` does."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    write_new(path, text.encode("ascii") + b"\n")


def regular_file_bytes(path: Path) -> int | None:
    """Return the size of a regular file, None where `path` is anything else (a link above all)."""
    return path.stat().st_size if path.is_file() and not path.is_symlink() else None


WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""Exceptions raised by a value of another shape than expected while it is taken apart."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Read(Generic[_Kind]):
    """The content of a file; None where there is none, or where it cannot be read, of which `fault` says why."""

    value: _Kind | None = None
    fault: str = ""


def read(kind: type[_Kind], path: Path) -> Read[_Kind]:
    try:
        return Read(structured.read(kind, path))
    except DashboardError as error:
        return Read(fault=fault_of(path, error))


def fault_of(path: Path, error: Exception) -> str:
    """Write a sentence for readers about a file that cannot be used."""
    return f"It could not be read: {reason_of(path, error)}"


def reason_of(path: Path, error: Exception) -> str:
    if isinstance(error, DashboardError):
        return str(error)
    return f"{path.name} has an unexpected structure ({type(error).__name__}: {error})."
