"""A night on a host, as the home on another machine orders it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NightOrder:
    """The stamp that the night gets, which `repository` the code is of, and how long to wait for the machine.

    get_ready: called once the machine is this night's, before it gets its TVMs; returns notes for its record.

    Such a night ends once its measurements are analyzed: all that follows is done at home, as are archives.
    """

    stamp: str
    repository: Mapping[str, Any]
    patience_s: float
    get_ready: Callable[[], Sequence[str]]
