"""Output files of a writer: whole or not at all, and several where one would be too large for a viewer."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

from tvmdash.errors import DashboardError


@dataclass(frozen=True)
class Written:
    """The result of a writer."""

    paths: tuple[Path, ...]
    slices: int
    counters: int

    def describe(self) -> str:
        """Describe it as part of a sentence."""
        files = "1 file" if len(self.paths) == 1 else f"{len(self.paths)} files, the first {self.paths[0].name}"
        return f"{self.slices} slices and {self.counters} counter values in {files}"


class Files:
    """Files beside their places until `finish` renames them; a context that leaves nothing where it fails."""

    def __init__(self, destination: Path) -> None:
        self._place = destination
        self._made: list[tuple[Path, Path]] = []
        self._open: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        if self._place.exists():
            raise DashboardError(f"{self._place}: already exists. Give a new file name.")
        if not self._place.parent.is_dir():
            raise DashboardError(f"{self._place.parent}: no such folder. Create it first.")
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._open:
            file.close()
        for temporary, _ in self._made:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def new(self) -> IO[bytes]:
        """Open another file: the place itself first, then numbered ones beside it."""
        file = self.temporary().open("wb", buffering=1 << 20)
        self._open.append(file)
        return file

    def temporary(self) -> Path:
        """Return the path of another file, which its writer makes itself."""
        number = f".{len(self._made) + 1}" if self._made else ""
        final = self._place.with_name(self._place.stem + number + self._place.suffix)
        if final.exists():
            raise DashboardError(f"{final}: already exists. Give another file name.")
        descriptor, name = tempfile.mkstemp(prefix=f".{final.name[:100]}.", suffix=".tmp", dir=self._place.parent)
        os.close(descriptor)
        # mkstemp makes a file for its owner alone
        os.chmod(name, 0o644)
        self._made.append((Path(name), final))
        return Path(name)

    def finish(self) -> tuple[Path, ...]:
        """Give all files their names and return these."""
        for file in self._open:
            file.close()
        paths = []
        for temporary, final in self._made:
            os.replace(temporary, final)
            paths.append(final)
        return tuple(paths)
