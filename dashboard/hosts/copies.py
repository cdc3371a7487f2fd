"""Tonight's TVMs as they are here, for hosts that lack them: the same bits are then measured everywhere."""

from __future__ import annotations

import contextlib
import os
import tarfile
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path

from dashboard.artifacts.artifact import Artifact
from tvmdash import common
from tvmdash.common.files import trees
from tvmdash.errors import DashboardError


class Copies:
    """The artifacts, each packed once, when the first host asks for it. Safe to be used from several threads."""

    def __init__(self, artifacts: Iterable[Artifact], folder: Path) -> None:
        self._artifacts = {artifact.key: artifact for artifact in artifacts}
        self._folder = folder
        self._packing = threading.Lock()

    def list_for(self, wanted: Iterable[str], python_tag: str, machine: str) -> Mapping[str, int]:
        """The bytes that each of the keys `wanted` takes, where it was built for this Python and kind of machine."""
        there = {"python": python_tag, "machine": machine}
        items = (self._artifacts[key] for key in dict.fromkeys(wanted))
        return {item.key: trees.walk(item.path).size_bytes for item in items if there.items() <= item.facts.items()}

    def pack(self, key: str) -> Path:
        """The artifact as a tar archive; DashboardError where there is no such artifact or no room."""
        if key not in self._artifacts:
            raise DashboardError(f"{key!r:.120} is not one of tonight's TVM artifacts.")
        path = self._folder / f"tvm-{key}.tar"
        with self._packing:
            if not path.exists():
                self._write(key, path)
        return path

    def _write(self, key: str, path: Path) -> None:
        new = path.with_name(f".{path.name}")
        try:
            tree = common.walk_whole(self._artifacts[key].path)
            with tarfile.open(new, "w", format=tarfile.PAX_FORMAT) as archive:
                trees.pack(tree, archive, key)
            os.replace(new, path)
        except OSError as error:
            raise DashboardError(
                f"{error.filename or new}: {error.strerror or error}. The TVM artifact was not sent."
            ) from error
        finally:
            new.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the archives."""
        with contextlib.suppress(OSError):
            for path in self._folder.glob("tvm-*.tar"):
                path.unlink()
