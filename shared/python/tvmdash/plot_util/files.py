"""A folder of pictures kept up to date: only what changed since the last time is drawn."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.plot_util.courses import Course
from tvmdash.plot_util.specs import Plot

_DIGESTS_FILE = "drawn.json"


@dataclass(frozen=True)
class DrawnFile:
    """Names of the pictures that were drawn now, left as they were, removed."""

    drawn: tuple[str, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]


def draw_changed(plots: Mapping[str, Plot | Course], folder: Path) -> DrawnFile:
    """Make `folder` hold NAME.svg for each of `plots` and no other picture of an earlier call.

    The renderer, a second of imports, is loaded only where something is to be drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    before = _read_digests(folder / _DIGESTS_FILE)
    digests = {name: _digest(plot) for name, plot in plots.items()}
    stale = [
        name
        for name, digest in digests.items()
        if before.get(name) != digest or not _find_picture(folder, name).is_file()
    ]
    for name in stale:
        from tvmdash.plot_util import drawing

        drawing.draw(plots[name], _find_picture(folder, name))
    removed = [name for name in before if name not in plots]
    for name in removed:
        _find_picture(folder, name).unlink(missing_ok=True)
    if stale or removed:
        common.write_json(folder / _DIGESTS_FILE, digests)
    return DrawnFile(tuple(stale), tuple(name for name in plots if name not in stale), tuple(removed))


def _find_picture(folder: Path, name: str) -> Path:
    return folder / f"{name}.svg"


def _digest(plot: Plot | Course) -> str:
    return hashlib.sha256(f"{_renderer()} {plot!r}".encode(errors="replace")).hexdigest()[:16]


@functools.cache
def _renderer() -> str:
    """Return a digest that changes with the code that draws."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _read_digests(path: Path) -> dict[str, str]:
    """Read the last call's digests; empty where they are not known, and all is drawn."""
    try:
        value = common.read_json(path)
    except DashboardError:
        return {}
    return {str(name): str(digest) for name, digest in value.items()} if isinstance(value, dict) else {}
