"""What other subsystems left for the page, read as data from a stranger: typed here, or told as a fault in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError

MAX_BYTES = 256 << 20
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a value of another shape than expected raises while it is taken apart."""


def read_object(path: Path) -> Mapping[str, Any] | None:
    """The JSON object in `path`, None where there is no file; DashboardError where it holds anything else."""
    if not path.is_file():
        return None
    value = common.read_json(path, max_bytes=MAX_BYTES)
    if not isinstance(value, dict):
        raise DashboardError(f"{path}: {type(value).__name__} is not an object.")
    return value


def fault_of(path: Path, error: Exception) -> str:
    """A sentence for readers about a file that cannot be used."""
    return f"It could not be read: {reason_of(path, error)}"


def reason_of(path: Path, error: Exception) -> str:
    """Why a file cannot be used."""
    if isinstance(error, DashboardError):
        return str(error)
    return f"{path.name} has an unexpected structure ({type(error).__name__}: {error})."


def text(value: object) -> str:
    """`value` where it is text; TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.60} is not a string")
    return value


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of a list; TypeError where it is none, or holds anything else."""
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.60} is not a list")
    for item in value:
        if not isinstance(item, dict):
            raise TypeError(f"{item!r:.60} is not an object")
        yield item
