"""Unreadable files, kept beside their place for inspection."""

from __future__ import annotations

import os
from pathlib import Path


def set_aside(path: Path) -> Path:
    """Rename `x.json` to the first free of `x.broken.json`, `x.broken2.json`, ..., and return the new path."""
    number = 1
    place = path.with_suffix(f".broken{path.suffix}")
    while os.path.lexists(place):
        number += 1
        place = path.with_suffix(f".broken{number}{path.suffix}")
    os.rename(path, place)
    return place
