"""Files of the site: names that no stranger's text can bend, and copies that cost nothing."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path

_NOT_PLAIN = re.compile(r"[^a-z0-9]+")


def safe_name(text: str) -> str:
    """A file name for any text: its letters and digits, as far as they are ASCII, and a hash that tells it apart."""
    digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:10]
    slug = _NOT_PLAIN.sub("-", text.lower())[:40].strip("-")
    return f"{slug}-{digest}" if slug else digest


def carry_over(source: Path, place: Path) -> None:
    """Have the content of `source` at `place` too: a second name of the same file, else a copy.

    Only for files that are replaced and never written into.
    """
    try:
        os.link(source, place, follow_symlinks=False)
    except FileNotFoundError:
        place.parent.mkdir(parents=True, exist_ok=True)
        _link_or_copy(source, place)
    except OSError:
        _link_or_copy(source, place)


def _link_or_copy(source: Path, place: Path) -> None:
    with contextlib.suppress(OSError):  # another filesystem, or one without links, or a file of somebody else
        os.link(source, place, follow_symlinks=False)
        return
    shutil.copyfile(source, place)


def regular_file_bytes(path: Path) -> int | None:
    """The size of a regular file, None where `path` is anything else (a link above all)."""
    return path.stat().st_size if path.is_file() and not path.is_symlink() else None
