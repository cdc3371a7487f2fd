"""Durability: contents first, then names, survive a power cut (fsync(2), syncfs(2)).

A rename alone promises nothing about the content behind the new name. Ext4 often writes it out all the same, XFS does
not, and neither does it for folders that trade places: after a cut, files under the right names are then empty.
What Linux's own filesystems keep of themselves is relied on: a new file's name is kept with its content.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

from tvmdash.common.files import trees

_FEW = trees.Bounds(depth=10, entries=50)
"""Limit for syncing file by file; beyond, or where something odd lies among them, the whole filesystem is synced."""


def sync_file(path: Path) -> None:
    """Return when the content of the file would survive a power cut."""
    _sync(path, os.O_RDONLY)


def sync_folder(folder: Path) -> None:
    """Return when the names in `folder` would survive a power cut."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def sync_tree(folder: Path) -> None:
    """Return when all that lies below `folder` would survive a power cut. OSError where it cannot be written out."""
    tree = trees.walk(folder, _FEW)
    if tree.problems:
        sync_filesystem(folder)
        return
    try:
        for entry in reversed(tree.entries):  # each folder after what is in it
            if not entry.is_link:
                _sync(folder / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        _sync(folder, os.O_RDONLY)
    except PermissionError:  # a script left a file that not even its owner may read
        sync_filesystem(folder)


def sync_filesystem(path: Path) -> None:
    """Return when everything on the filesystem of `path` would survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(descriptor) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(path))
    finally:
        os.close(descriptor)


def _sync(path: Path | str, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
