"""Removing what nobody needs any more. Nothing here raises: a night is worth more than a tidy disk."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tvmdash.files.lock import try_descriptor

_TRIES = 4
_PAUSE_S = 0.05
_RANDOM = r"[a-z0-9_]{8}"
"""What `tempfile` puts into a name."""
_BESIDE = re.compile(rf"\..+\.{_RANDOM}\.new")
_log = logging.getLogger("files")


def remove_tree(path: Path) -> bool:
    """Remove a file, a link, or a folder with all that is in it; whether it is gone.

    A folder that a script locked is unlocked first. What still stays, perhaps because somebody writes into it, is a
    warning in the log.
    """
    for attempt in range(_TRIES):
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
        if not os.path.lexists(path):
            return True
        _unlock(path)
        time.sleep(_PAUSE_S * attempt)
    _log.warning("%s: could not be removed. It is no longer needed; delete it by hand.", path)
    return False


def _unlock(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.chmod(0o700)
    for root, folders, _ in os.walk(path):
        for name in folders:
            folder = os.path.join(root, name)
            with contextlib.suppress(OSError):
                if not os.path.islink(folder):
                    os.chmod(folder, 0o700)


@contextlib.contextmanager
def new_folder_beside(target: Path) -> Iterator[Path]:
    """A new empty folder on the filesystem of `target`, removed at the end of the block where it is still there.

    It is held while the block lasts; what a killed process left of the same kind is removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(target.parent, target.name)
    new, held = _make_held_folder(target)
    try:
        yield new
    finally:
        if os.path.lexists(new):
            remove_tree(new)
        os.close(held)


def _make_held_folder(target: Path) -> tuple[Path, int]:
    while True:
        new = Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", suffix=".new", dir=target.parent))
        new.chmod(0o755)
        held = _take(new, without_locks=True)
        if held is not None:
            return new, held


def _take(folder: Path, *, without_locks: bool) -> int | None:
    """A descriptor that holds `folder` until it is closed; None where another process holds it or has removed it.

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


def remove_abandoned(parent: Path, name: str | None = None) -> None:
    """Remove the folders in `parent` that a killed process was to rename to `name` (to any name: None).

    Those that a living process fills are held by it, and stay.
    """
    wanted = re.compile(rf"\.{re.escape(name[:100])}\.{_RANDOM}\.new") if name is not None else _BESIDE
    for entry in list_names(parent):
        held = _take(parent / entry, without_locks=False) if wanted.fullmatch(entry) else None
        if held is not None:
            remove_tree(parent / entry)
            os.close(held)


def list_names(folder: Path) -> list[str]:
    """What lies directly in `folder`, sorted; nothing where it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
