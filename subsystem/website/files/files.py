"""Files of the site: copies that cost nothing."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

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
    """The size of a regular file, None where `path` is anything else (a link above all)."""
    return path.stat().st_size if path.is_file() and not path.is_symlink() else None
