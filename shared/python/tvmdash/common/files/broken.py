"""Files that cannot be read are kept beside, for whoever wants to look what was in them."""

from __future__ import annotations

import os
from pathlib import Path


def set_aside(path: Path) -> Path:
    """Rename `x.json` to `x.broken.json`, or `x.broken2.json` and so on where there is one already; its new place."""
    number = 1
    place = path.with_suffix(f".broken{path.suffix}")
    while os.path.lexists(place):
        number += 1
        place = path.with_suffix(f".broken{number}{path.suffix}")
    os.rename(path, place)
    return place
