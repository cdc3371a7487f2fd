"""Artifacts that came back with a restored home: taken into the store again."""

from __future__ import annotations

import logging
from pathlib import Path

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import MANIFEST, ArtifactError, read_artifact, runs_here
from dashboard.artifacts.locks import LockDeadline
from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.files import trees

_WAIT_S = 60.0
_log = logging.getLogger(__name__)


def take_in(source: Path, folder: Path) -> list[str]:
    """Move the artifacts in `source` that run here to `folder`; the keys of those that it did not have.

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
        artifact_store.claim(folder, path.name, LockDeadline(_WAIT_S)),
        artifact_store.workplace(folder, path.name) as place,
    ):
        common.copy_tree(path, place)
        artifact_store.put(place, folder, path.name, LockDeadline(_WAIT_S))
