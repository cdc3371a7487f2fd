"""What the deadline subsystem leaves: deadlines.json."""

from __future__ import annotations

from dataclasses import dataclass

from tvmdash.structured import Stamp

DEADLINES_FILE = "deadlines.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class DeadlineAhead:
    """What is due at the moment `utc`; the words say how long is `left` and when the `moment` is, `near`: pinged."""

    title: str
    utc: str
    words: str
    url: str
    near: bool
    name: str = ""
    local: str = ""
    time_zone: str = ""
    seconds_left: int = 0
    left: str = ""
    moment: str = ""


@dataclass(frozen=True)
class DeadlinesAhead:
    """Those that were ahead in that night, nearest first."""

    deadlines: tuple[DeadlineAhead, ...]
    night: Stamp | None = None
