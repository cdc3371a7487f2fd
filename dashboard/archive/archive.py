"""Archives of a home: what changed since the last one, verified, and back again."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboard.archive.chain import Chain, Entry, Folder, Link, Manifest, State, StoredFile, load_chain, write_manifest
from dashboard.archive.objects import Objects
from dashboard.archive.scan import Scan, scan, store
from tvmdash import common
from tvmdash.common.files import lock, trees
from tvmdash.common.files.sync import sync_folder
from tvmdash.errors import DashboardError

KEEP = 60
_MOST_NAMED = 100
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class ArchiveResult:
    """An archive just made: files (and links) new or changed in it, the bytes it added to the backup, all its files.

    `skipped` says of each thing left out which and why; `complete` is false where one could not be read.
    """

    name: str
    new_files: int
    new_bytes: int
    total_files: int
    skipped: tuple[str, ...]
    complete: bool


@dataclass(frozen=True)
class ArchiveInfo:
    """An archive in the backup. `broken` says why it cannot be restored, and is empty where it can."""

    name: str
    new_files: int = 0
    total_files: int = 0
    skipped: tuple[str, ...] = ()
    complete: bool = False
    broken: str = ""


def archive(
    home: Path, backup: Path, name: str, *, exclude: Collection[Path], beside: Mapping[str, Path] | None = None
) -> ArchiveResult:
    """Add `home`, as it is now, to the archives in `backup` under `name`; it counts only once verified.

    Left out are derived files (docs/how-to/back-up.md) and the folders of `exclude` that lie inside the home. `beside`:
    folders outside it that are archived with it, by where they come to lie in a home that is restored.
    DashboardError where it cannot be made; the archives before it are untouched then.
    """
    if not home.is_dir():
        raise DashboardError(f"{home}: no such home to archive.")
    objects = Objects(backup / "objects")
    with _name_os_errors(backup), _hold_writer_lock(backup):
        chain = load_chain(backup / "archives")
        chain.refuse_name(name)
        objects.prepare()
        scanned = scan(home, [*exclude, backup / "objects", backup / "archives"], beside or {})
        try:
            return _add(home, scanned, chain, objects, name)
        except (OSError, DashboardError):
            # Once its manifest stands, the archive counts, and its contents must stay.
            if all(link.name != name for link in load_chain(chain.folder).links):
                objects.give_up()
            raise


def _add(home: Path, scanned: Scan, chain: Chain, objects: Objects, name: str) -> ArchiveResult:
    before = chain.state()
    now, new_bytes = store(home, scanned, before, objects)
    objects.settle()
    changed = {path: entry for path, entry in now.items() if before.get(path) != entry}
    parent = chain.links[-1] if chain.links else None
    skipped = _bound_sentences(scanned.skipped)
    new_bytes += write_manifest(
        chain.folder,
        Manifest(
            name=name,
            entries=changed,
            removed=tuple(path for path in before if path not in now),
            skipped=skipped,
            complete=scanned.complete,
            parent=parent.name if parent else None,
            parent_identity=parent.identity if parent else None,
        ),
    )
    return ArchiveResult(name, _count_files(changed), new_bytes, _count_files(now), skipped, scanned.complete)


def archives(backup: Path) -> list[ArchiveInfo]:
    """List every archive in `backup`, oldest first, then the broken ones; DashboardError where there is none."""
    chain = _load_some(backup)
    sound = [
        ArchiveInfo(link.name, _count_files(link.entries), _count_files(state), link.skipped, link.complete)
        for link, state in chain.states()
    ]
    return sound + [ArchiveInfo(name, broken=why) for name, why in chain.broken.items()]


def verify(backup: Path, name: str | None = None) -> None:
    """Read all that the archive `name` (every archive: None) is made of; DashboardError names what is broken."""
    chain = _load_some(backup)
    state = chain.state(name)
    parts = [state] if name is not None else [link.entries for link in chain.links]
    wanted = {
        (entry.sha256, entry.size_bytes): path
        for part in parts
        for path, entry in part.items()
        if isinstance(entry, StoredFile)
    }
    faults = Objects(backup / "objects").find_faults(wanted)
    if faults:
        texts = [f"{path}: {faults[sha256]}" for (sha256, _), path in wanted.items() if sha256 in faults]
        raise DashboardError(
            f"{backup}: {len(faults)} of {len(wanted)} stored files are damaged. {' '.join(texts[:5])}"
        )


def find_damaged(backup: Path) -> tuple[str, ...]:
    """List the files of all archives, by their paths in `backup`, that are missing or not as written."""
    chain, objects = _load_some(backup), Objects(backup / "objects")
    faults = objects.find_faults({content for link in chain.links for content in link.refers_to().items()})
    broken = [chain.folder / f"{name}.json" for name in chain.broken]
    return tuple(str(path.relative_to(backup)) for path in (*broken, *map(objects.path_of, faults)))


def measure(backup: Path) -> int:
    """Return the bytes of all files in the newest archive."""
    return sum(entry.size_bytes for entry in _load_some(backup).state().values() if isinstance(entry, StoredFile))


def restore(backup: Path, name: str | None, target: Path) -> None:
    """Make `target`, which must not exist or be empty, the home that the archive `name` (the newest: None) holds.

    Every content is verified on the way; `target` appears whole or not at all. Folders get their mode back, files
    their mode (without setuid and setgid) and modification time. On return it survives a power
    cut.
    """
    state = _load_some(backup).state(name)
    target = target.resolve()
    with _name_os_errors(target):
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DashboardError(f"{target}: already exists and is not an empty folder. Restore to a new folder.")
        with common.folder_beside(target) as new:
            # Nobody else may look in before each folder has its own mode.
            new.chmod(0o700)
            lay_out(state, Objects(backup / "objects"), new)


def prune(backup: Path, keep: int = KEEP) -> tuple[str, ...]:
    """Squash the oldest archives into the base so that the `keep` newest stay; the names of those given up.

    Nothing happens until there are a quarter more than `keep`, as it rewrites the base. Killed at any instant,
    each archive that stays is restorable, and the next `prune` finishes the work.
    """
    if keep < 1:
        raise DashboardError(f"{backup}: cannot keep {keep} archives. Keep 1 or more.")
    with _name_os_errors(backup), _hold_writer_lock(backup):
        chain = load_chain(backup / "archives")
        chain.require_sound()
        # Each squash rewrites the whole base, so it is done for many archives at once.
        surplus = len(chain.links) - keep if len(chain.links) * 4 > keep * 5 else 0
        if surplus:
            write_manifest(chain.folder, _squash(chain, surplus))
        if surplus or chain.leftover:
            _tidy(load_chain(chain.folder), Objects(backup / "objects"))
    return tuple(link.name for link in chain.links[:surplus])


def _squash(chain: Chain, surplus: int) -> Manifest:
    """Make the base for the `surplus` oldest archives and the next one, whose name it takes."""
    last = chain.links[surplus]
    gone = [link.name for link in chain.links[: surplus + 1]] + [path.stem for path in chain.leftover]
    return Manifest(
        name=last.name,
        entries=chain.state(last.name),
        skipped=last.skipped,
        complete=last.complete,
        squashed=tuple(gone),
        identity=last.identity,
    )


def _tidy(chain: Chain, objects: Objects) -> None:
    # The leftover manifests go last: while one is there, the next prune knows that contents may be left over too.
    objects.keep_only({sha256 for link in chain.links for sha256 in link.refers_to()})
    for path in chain.leftover:
        path.unlink(missing_ok=True)
    sync_folder(chain.folder)


def _load_some(backup: Path) -> Chain:
    chain = load_chain(backup / "archives")
    if not chain.links and not chain.broken:
        raise DashboardError(f"{backup}: no archive found. Give the backup_dir of a home.")
    return chain


def _count_files(entries: Mapping[str, Entry]) -> int:
    return sum(not isinstance(entry, Folder) for entry in entries.values())


def _bound_sentences(sentences: list[str]) -> tuple[str, ...]:
    more = len(sentences) - _MOST_NAMED
    return (*sentences[:_MOST_NAMED], *([f"And {more} more."] if more > 0 else []))


@contextlib.contextmanager
def _hold_writer_lock(backup: Path) -> Iterator[None]:
    """Hold the backup against other writers; the lock ends with the process that holds it."""
    folder = backup / "archives"
    folder.mkdir(parents=True, exist_ok=True)
    held = lock.take(folder / ".lock")
    if held is None:
        raise DashboardError(f"{backup}: another process is archiving here. Use a separate backup_dir for each home.")
    with held:
        common.remove_unfinished(folder)
        yield


@contextlib.contextmanager
def _name_os_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        if error.errno in _FULL:
            message = (
                f"{where}: the disk is full. Earlier archives are intact. Free some space, or keep fewer archives."
            )
        else:
            message = f"{where}: {error.strerror}. Earlier archives are intact."
        raise DashboardError(message) from error


_FILE_MODE = 0o1777
"""Modes are restored without setuid and setgid: the one who restores may be another user than the one who archived."""


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
