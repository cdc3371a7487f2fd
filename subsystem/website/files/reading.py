"""Files that others left for the site: one that is damaged costs its own part of it, and says why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from tvmdash.common import structured
from tvmdash.errors import DashboardError

WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""Exceptions raised by a value of another shape than expected while it is taken apart."""
_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Read(Generic[_Kind]):
    """The content of a file; None where there is none, or where it cannot be read, of which `fault` says why."""

    value: _Kind | None = None
    fault: str = ""


def read(kind: type[_Kind], path: Path) -> Read[_Kind]:
    try:
        return Read(structured.read(kind, path))
    except DashboardError as error:
        return Read(fault=fault_of(path, error))


def fault_of(path: Path, error: Exception) -> str:
    """Write a sentence for readers about a file that cannot be used."""
    return f"It could not be read: {reason_of(path, error)}"


def reason_of(path: Path, error: Exception) -> str:
    if isinstance(error, DashboardError):
        return str(error)
    return f"{path.name} has an unexpected structure ({type(error).__name__}: {error})."
