"""From what an archive holds to files."""

from __future__ import annotations

import os
from pathlib import Path

from dashboard.archive.chain import State
from dashboard.archive.manifests import Folder, Link, StoredFile
from dashboard.archive.objects import Objects

_FILE_MODE = 0o1777
"""Who restores may be another than who made the file: setuid and setgid would mean something else."""


def lay_out(state: State, objects: Objects, root: Path) -> None:
    """Make all of `state` in the empty folder `root`; DashboardError where a content is broken.

    Files come before links, so that no link can lead one of them out of `root`; the folders' modes come last,
    so that a read-only folder can be filled.
    """
    folders = {path: entry for path, entry in state.items() if isinstance(entry, Folder)}
    for path in folders:
        (root / path).mkdir(parents=True, exist_ok=True)
    for path, entry in state.items():
        if isinstance(entry, StoredFile):
            _write(root / path, entry, objects)
    for path, entry in state.items():
        if isinstance(entry, Link):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(entry.target)
    for path in sorted(folders, reverse=True):
        (root / path).chmod(folders[path].mode)


def _write(path: Path, entry: StoredFile, objects: Objects) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        for piece in objects.content(entry.sha256, entry.size_bytes):
            file.write(piece)
    path.chmod(entry.mode & _FILE_MODE)
    os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns))
