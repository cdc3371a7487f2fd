"""Folders that are filled beside their place, and leftovers of killed processes."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tvmdash.common.files import trees
from tvmdash.common.files.lock import try_descriptor

_RANDOM = r"[a-z0-9_]{8}"
"""The random part of `tempfile`'s names."""
_BESIDE = re.compile(rf"\..+\.{_RANDOM}\.new")


@contextlib.contextmanager
def new_folder_beside(target: Path) -> Iterator[Path]:
    """Make an empty folder on the filesystem of `target`; the end of the block removes it if it is still there.

    It is held while the block lasts; what a killed process left of the same kind is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent, target.name)
    new, held = _make_held_folder(target)
    try:
        yield new
    finally:
        if os.path.lexists(new):
            trees.remove(new)
        os.close(held)


def _make_held_folder(target: Path) -> tuple[Path, int]:
    while True:
        new = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".new", dir=target.parent))
        new.chmod(0o755)
        held = _take(new, without_locks=True)
        if held is not None:
            return new, held


def _take(folder: Path, *, without_locks: bool) -> int | None:
    """Lock `folder` and return the descriptor; None where another process holds it or has removed it.

    without_locks: what to assume where the filesystem knows no locks, as some network mounts do not.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        held = try_descriptor(descriptor) and os.path.isdir(folder)
    except OSError:
        held = without_locks
    if not held:
        os.close(descriptor)
    return descriptor if held else None


def remove_abandoned(parent: Path, name: str | None = None) -> list[Path]:
    """Remove the folders in `parent` that a killed process was to rename to `name` (to any name: None).

    Those that a living process fills are held by it, and stay. Returned are those that could not be removed.
    """
    stuck = []
    wanted = re.compile(rf"\.{re.escape(name[:100])}\.{_RANDOM}\.new") if name is not None else _BESIDE
    for entry in list_names(parent):
        held = _take(parent / entry, without_locks=False) if wanted.fullmatch(entry) else None
        if held is not None:
            if not trees.remove(parent / entry):
                stuck.append(parent / entry)
            os.close(held)
    return stuck


def list_names(folder: Path) -> list[str]:
    """Return the names in `folder`, sorted; nothing where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
