"""The folder where artifacts stand side by side, shared by nights that know nothing of each other.

FOLDER/KEY/            an artifact, once its manifest is whole
FOLDER/.building/BASE/ what is being built, or what a killed build left
FOLDER/.locks/         per BASE.building: who builds it; per KEY: which nights use it
"""

from __future__ import annotations

import contextlib
import json
import logging
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from dashboard.artifacts import locks
from dashboard.artifacts.artifact import (
    LAST_USED,
    MANIFEST,
    RUNTIMES,
    Artifact,
    ArtifactError,
    read_artifact,
    runs_here,
)
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.common.files.lock import Lock
from tvmdash.errors import DashboardError

_BUILDING = ".building"
_SIZE = "size.json"
_LOCKS = ".locks"
_WAIT_S = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pruned:
    """The keys that `prune` removed, least recently used first, and the size of the remaining artifacts."""

    removed: tuple[str, ...]
    left_bytes: int


def artifacts_in(folder: Path) -> list[Artifact]:
    """List the artifacts in `folder`; a broken one is logged and left out."""
    artifacts = []
    for path in _list_stored(folder):
        try:
            artifacts.append(read_artifact(path))
        except ArtifactError as error:
            _log.warning("%s", error)
    return artifacts


def _list_stored(folder: Path) -> list[Path]:
    """Folders that have, or once had, a manifest; anything else in the folder is not ours."""
    return sorted(path.parent for path in folder.glob(f"[!.]*/{MANIFEST}"))


def use(artifact: Artifact, deadline: locks.LockDeadline) -> Lock | None:
    """Keep `artifact` from being removed until the lock is released; None where it is already gone."""
    lease = locks.shared(_lock_path(artifact.path.parent, artifact.key), deadline)
    try:
        # Again under the lock: somebody may have removed it since it was found.
        read_artifact(artifact.path)
        (artifact.path / LAST_USED).touch()
    except ArtifactError:
        lease.release()
        return None
    except BaseException:
        lease.release()
        raise
    return lease


def claim(folder: Path, base: str, deadline: locks.LockDeadline) -> Lock:
    """Be the only one who builds `base` in `folder`."""
    return locks.exclusive(_lock_path(folder, _name_build_lock(base)), f"building {base}", deadline)


@contextlib.contextmanager
def workplace(folder: Path, base: str) -> Iterator[Path]:
    """Make a new empty folder to build `base` in, beside the artifacts; removed at the end. Claim `base` first."""
    parent = folder / _BUILDING / base
    trees.remove(parent)
    parent.mkdir(parents=True)
    try:
        # The inner name is new each time: a pip that outlived its killed night must not write into this build.
        new = Path(tempfile.mkdtemp(dir=parent))
        new.chmod(0o755)
        yield new
    finally:
        trees.remove(parent)


def put(new: Path, folder: Path, key: str, deadline: locks.LockDeadline) -> None:
    """Make the proven build in `new` be the artifact `key`, in one step; a broken one there is first let go of."""
    with locks.exclusive(_lock_path(folder, key), f"replacing {key}", deadline):
        common.swap_in(new, folder / key)


def sweep(folder: Path) -> None:
    """Remove what killed builds left in `folder`."""
    for parent in (folder / _BUILDING).glob("*"):
        lock = locks.try_exclusive(_lock_path(folder, _name_build_lock(parent.name)), f"sweeping {parent.name}")
        if lock is not None:
            with lock:
                trees.remove(parent)


def prune(folder: Path, max_bytes: int, keep: Collection[str]) -> Pruned:
    """Remove artifacts until the rest fits in `max_bytes`: broken ones first, then the longest unused.

    Never one whose key is in `keep` or that a running night uses, even where the rest then does not fit.
    """
    sweep(folder)
    sizes_bytes = {path: _size_bytes(path) for path in sorted(_list_stored(folder), key=_last_used)}
    left_bytes = sum(sizes_bytes.values())
    removed = []
    for path, size_bytes in sizes_bytes.items():
        if left_bytes > max_bytes and path.name not in keep and _remove(path):
            removed.append(path.name)
            left_bytes -= size_bytes
    return Pruned(tuple(removed), left_bytes)


def _remove(path: Path) -> bool:
    lock = locks.try_exclusive(_lock_path(path.parent, path.name), f"removing {path.name}")
    if lock is None:
        return False
    with lock:
        # Renamed first: killed in between, no folder with a manifest lacks half of its files.
        grave = path.parent / _BUILDING / path.name
        trees.remove(grave)
        grave.parent.mkdir(exist_ok=True)
        path.rename(grave)
        trees.remove(grave)
    return True


def _last_used(path: Path) -> float:
    try:
        read_artifact(path)
        return (path / LAST_USED).stat().st_mtime
    except (ArtifactError, FileNotFoundError):
        return 0.0


def _size_bytes(path: Path) -> int:
    """Return the artifact's size, counted once and after each runtime added to it: a TVM has thousands of files."""
    runtimes, file = path / RUNTIMES, path / _SIZE
    state = runtimes.stat().st_mtime_ns if runtimes.is_dir() else 0
    with contextlib.suppress(OSError, TypeError, ValueError):
        size_bytes, counted = json.loads(file.read_bytes())
        if counted == state:
            return int(size_bytes)
    size_bytes = trees.walk(path).size_bytes
    with contextlib.suppress(OSError):
        # On a full disk it is counted again the next time.
        file.write_text(json.dumps([size_bytes, state]), encoding="ascii")
    return size_bytes


def _name_build_lock(base: str) -> str:
    """Name the lock on building `base`: never as an artifact's, whose key may be `base` itself."""
    return f"{base}.building"


def _lock_path(folder: Path, name: str) -> Path:
    return folder / _LOCKS / f"{name}.lock"


def take_in(source: Path, folder: Path) -> list[str]:
    """Move the artifacts in `source`, of a restored home, that run here to `folder`; the keys of those that it lacked.

    What is damaged or for another machine stays where it is, and is logged.
    """
    taken = []
    for path in sorted(manifest.parent for manifest in source.glob(f"[!.]*/{MANIFEST}")):
        try:
            if not runs_here(read_artifact(path)):
                raise ArtifactError(f"{path}: was built for another Python version or machine.")
            if not (folder / path.name / MANIFEST).exists():
                _move(path, folder)
                taken.append(path.name)
            trees.remove(path)
        except (DashboardError, OSError) as error:
            _log.warning("ignored a restored artifact: %s", error)
    return taken


def _move(path: Path, folder: Path) -> None:
    with (
        claim(folder, path.name, locks.LockDeadline(_WAIT_S)),
        workplace(folder, path.name) as place,
    ):
        # Copied: the restored home may lie on another disk.
        common.copy_tree(path, place)
        put(place, folder, path.name, locks.LockDeadline(_WAIT_S))
