"""From what an archive holds to files."""

from __future__ import annotations

from pathlib import Path

from dashboard.archive.chain import State
from dashboard.archive.manifests import Folder, Link, StoredFile
from dashboard.archive.objects import Objects
from tvmdash.files import trees

_FILE_MODE = 0o1777
"""Who restores may be another than who made the file: setuid and setgid would mean something else."""


def lay_out(state: State, objects: Objects, root: Path) -> None:
    """Make all of `state` in the empty folder `root`; DashboardError where a content is broken.

    Files come before links, so that no link can lead one of them out of `root`; the folders' modes come last,
    so that a read-only folder can be filled.
    """
    folders = {"" if path == "." else path: entry for path, entry in state.items() if isinstance(entry, Folder)}
    parents = {path.rpartition("/")[0] for path, entry in state.items() if not isinstance(entry, Folder)}
    for path in sorted(folders.keys() | parents):
        trees.make_folder(root, path)
    for path, entry in state.items():
        if isinstance(entry, StoredFile):
            _write(root, path, entry, objects)
    for path, entry in state.items():
        if isinstance(entry, Link):
            trees.make_link(root, path, entry.target)
    for path in sorted(folders, reverse=True):
        trees.change_mode(root, path, folders[path].mode)


def _write(root: Path, path: str, entry: StoredFile, objects: Objects) -> None:
    with trees.make_file(root, path) as file:
        for piece in objects.content(entry.sha256, entry.size_bytes):
            file.write(piece)
        trees.finish_file(file, entry.mode & _FILE_MODE, entry.mtime_ns)
