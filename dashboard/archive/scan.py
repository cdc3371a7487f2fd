"""The part of a home that is archived: found, and stored where it is new."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from dashboard.archive.chain import Folder, Link, State, StoredFile
from dashboard.archive.objects import Objects, UnreadableSourceError
from tvmdash.common.files import trees
from tvmdash.common.files.trees import Bounds, Fault, Problem, TreeEntry

CACHE_TAG = "CACHEDIR.TAG"
CACHE_SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"
"""The first bytes of a cache folder's tag (https://bford.info/cachedir/)."""

_GRAPHS = "results/experiments/graph"
_STORE = "results/store.sqlite"
_UNFINISHED = (".tmp", ".new", ".old", ".lock")
_NOTHING: Mapping[str, Path] = MappingProxyType({})
_PLAIN_FOLDER = 0o755
_MOST = Bounds(depth=2_000, entries=10_000_000)
_LARGEST_BYTES = 8 << 30
"""No file of a home comes near it; a sparse one that claims 20 GB would take minutes to read each night."""


@dataclass
class Scan:
    """The contents of a home, by path relative to it; `.` is the home itself.

    `skipped` names in a sentence each what is left out though it is not derived; `complete` is false where
    some of it could not be read. beside: the folders outside the home whose content is here, by where it lies in it.
    """

    files: dict[str, os.stat_result] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folder_modes: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    complete: bool = True
    beside: dict[str, Path] = field(default_factory=dict)

    def source_of(self, home: Path, path: str) -> tuple[Path, str]:
        """Return the source of the archived `path`: the folder that was scanned, and the path in it."""
        outside = ((folder, path[len(place) + 1 :]) for place, folder in self.beside.items() if _is_in(path, place))
        return next(outside, (home, path))

    def add(self, entry: TreeEntry) -> None:
        if entry.is_link:
            self.links[entry.path] = entry.target
        elif entry.is_folder:
            self.folder_modes[entry.path] = stat.S_IMODE(entry.status.st_mode)
        elif entry.status.st_size > _LARGEST_BYTES:
            self.skip_unreadable(entry.path, f"has more than {_LARGEST_BYTES / 1e9:.1f} GB")
        else:
            self.files[entry.path] = entry.status

    def skip(self, problem: Problem) -> None:
        """Note what is in the home and cannot be archived."""
        if problem.fault is Fault.SPECIAL:
            text = f"{trees.show(problem.path)}: {problem.text}; only files, folders and links are archived."
            self.skipped.append(text)
        else:
            self.skip_unreadable(problem.path or ".", problem.text)

    def skip_unreadable(self, path: str, problem: str) -> None:
        """Note that `path` should be here and is not."""
        self.skipped.append(f"{trees.show(path)}: {problem}. It was left out of this archive.")
        self.complete = False


def scan(home: Path, exclude: Collection[Path], beside: Mapping[str, Path] = _NOTHING) -> Scan:
    """Everything under `home` but derived files and the folders of `exclude` that lie inside it.

    Symbolic links are not followed; the home itself is never taken for a derived or excluded folder. `beside`: folders
    that are there as well, by where in the home they are to be, unless the home has something there.
    """
    root = Path(os.path.realpath(home))
    excluded = {os.path.relpath(os.path.realpath(path), root) for path in exclude}
    scanned = Scan()
    scanned.folder_modes["."] = stat.S_IMODE(os.stat(root).st_mode)
    tree = trees.walk(root, _MOST, lambda entry: _is_derived(entry.path, entry.name) or entry.path in excluded)
    caches = tuple(f"{entry.folder}/" for entry in tree.files if entry.name == CACHE_TAG and _is_cache_tag(root, entry))
    for entry in tree.entries:
        if not f"{entry.path}/".startswith(caches):
            scanned.add(entry)
    for problem in tree.problems:
        if not f"{problem.path}/".startswith(caches):
            scanned.skip(problem)
    for place, folder in beside.items():
        if folder.is_dir() and place not in scanned.folder_modes:
            _add_beside(place, folder, scanned)
    return scanned


def _add_beside(place: str, folder: Path, scanned: Scan) -> None:
    """Note what is in the folder as if it lay in the home."""
    there = scan(folder, ())
    for parent in (str(path) for path in PurePosixPath(place).parents if path.name):
        scanned.folder_modes.setdefault(parent, _PLAIN_FOLDER)
    scanned.folder_modes[place] = there.folder_modes.pop(".")
    scanned.folder_modes |= {f"{place}/{path}": mode for path, mode in there.folder_modes.items()}
    scanned.files |= {f"{place}/{path}": status for path, status in there.files.items()}
    scanned.links |= {f"{place}/{path}": target for path, target in there.links.items()}
    scanned.skipped += [f"{place}/{sentence}" for sentence in there.skipped]
    scanned.complete = scanned.complete and there.complete
    scanned.beside[place] = folder


def _is_in(path: str, place: str) -> bool:
    return path.startswith(f"{place}/")


def _is_derived(path: str, name: str) -> bool:
    if name.endswith(_UNFINISHED) and name.startswith("."):
        return True
    if name.endswith(".lock") and path in (name, f"results/{name}"):
        return True
    return path == _GRAPHS or (path.startswith(_STORE) and path == f"results/{name}")


def _is_cache_tag(root: Path, entry: TreeEntry) -> bool:
    """Return True where this tag makes its folder a cache; the home itself is never one."""
    if not entry.folder:
        return False
    try:
        with trees.open_file(root, entry.path) as file:
            return file.read(len(CACHE_SIGNATURE)) == CACHE_SIGNATURE
    except OSError:
        return False  # Then it is archived, which loses nothing.


def store(home: Path, scanned: Scan, before: State, objects: Objects) -> tuple[State, int]:
    """Store the contents that are new since `before`; return the archive's entries, and the bytes written."""
    now: State = {path: Folder(mode) for path, mode in scanned.folder_modes.items()}
    now.update((path, Link(target)) for path, target in scanned.links.items())
    new_bytes = 0
    for path, status in scanned.files.items():
        known = before.get(path)
        if isinstance(known, StoredFile) and _is_unchanged(known, status) and known.sha256 in objects:
            now[path] = known
            continue
        try:
            now[path], written = _store_file(*scanned.source_of(home, path), objects)
        # Removed since the scan: an archive of the home as it is now does without it.
        except FileNotFoundError:
            continue
        except UnreadableSourceError as error:
            scanned.skip_unreadable(path, str(error))
            continue
        new_bytes += written
    return now, new_bytes


def _is_unchanged(known: StoredFile, status: os.stat_result) -> bool:
    return (known.size_bytes, known.mtime_ns, known.mode) == (
        status.st_size,
        status.st_mtime_ns,
        stat.S_IMODE(status.st_mode),
    )


def _store_file(root: Path, path: str, objects: Objects) -> tuple[StoredFile, int]:
    """Store one file. If it changes meanwhile, its noted time is older than it, and the next archive reads it again."""
    try:
        file = trees.open_file(root, path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableSourceError(f"cannot be read: {error.strerror}") from error
    with file:
        status = os.fstat(file.fileno())
        stored = objects.add(file)
    mode = stat.S_IMODE(status.st_mode)
    return StoredFile(stored.sha256, stored.size_bytes, mode, status.st_mtime_ns), stored.new_bytes
