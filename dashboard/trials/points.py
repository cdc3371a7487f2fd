"""The points of an experiment as TVMDASH_POINTS and the file of a rerun name them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tvmdash import records

Point = Mapping[str, Any]
IDENTITY = tuple(name for name in records.IDENTITY if name not in {"env_name", "hw_model"})
"""The columns that name a point in TVMDASH_POINTS: a record's identity without the machine."""
PATH = "path"
"""What names a number of a foreign experiment."""


def point_of(labels: Mapping[str, Any]) -> dict[str, Any]:
    """What names the point of a series with these labels."""
    return {PATH: labels[PATH]} if PATH in labels else {name: labels.get(name) for name in IDENTITY}


def key_of(point: Point) -> str:
    """A text that is the same for equal points and for no others."""
    return json.dumps(point, sort_keys=True)
