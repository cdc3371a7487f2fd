"""The messages between a night and the worker on a host.

Each side takes the other for a stranger: a message that is not as described here cannot be made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tvmdash.common.structured import Stamp

PROTOCOL = 1
MARK = "tvm-dashboard-worker"
"""Begins the line with which a host answers; what its login shell prints before is passed over."""
HAVE, WANT = "have", "want"
"""The words after the mark: the host has the dashboard's code of tonight, or wants it."""
BEAT_S = 15.0
"""Each side says at least this often that it is there."""
SILENCE_S = 120.0
"""A side that says nothing for so long is gone."""
HAND_OVER_S = 2 * 3600.0
"""For all that a host hands over in one night; what is left comes with the next."""
_LATEST_UNIX_S = 1e11
_MOST_PARCELS = 10_000
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Hello:
    """The worker is there. unix_s: its clock; free_bytes: of the disk that holds its folder.

    python_tag, machine: as artifacts name what they were built for.
    """

    protocol: int
    node: str
    hw_model: str
    python: str
    python_tag: str
    machine: str
    unix_s: float
    free_bytes: int

    def __post_init__(self) -> None:
        """ValueError where it is no time of a clock or no size."""
        if not 0 <= self.unix_s <= _LATEST_UNIX_S or self.free_bytes < 0:
            raise ValueError("says a time or a free space that there is not")


@dataclass(frozen=True)
class Begin:
    """Measure a night of this stamp with the configs that follow, a tar archive.

    rebuild: get TVMs from where they come from, else only what is at hand counts.
    tvms: the bytes of those that the home has and would copy, by key.
    """

    stamp: str
    host: str
    seed: int
    patience_s: float
    rebuild: bool
    repository: Mapping[str, Any] = field(default_factory=dict)
    tvms: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Fetch:
    """Copy this TVM of the home to here."""

    key: str


@dataclass(frozen=True)
class Tvm:
    """The TVM that was asked for, a tar archive, follows. id: its SHA-256. why: it is not sent, for people."""

    key: str
    id: str = ""
    why: str = ""


@dataclass(frozen=True)
class Ready:
    """The machine is the worker's, and nothing more needs to be copied."""


@dataclass(frozen=True)
class Beat:
    """Whoever says it is there."""


@dataclass(frozen=True)
class Ended:
    """The night there is over, or could not begin; what there is can be handed over.

    why: it went wrong, for people. interrupted: it had begun; what it has measured comes with the next night.
    """

    why: str = ""
    interrupted: bool = False


@dataclass(frozen=True)
class Refused:
    """The worker cannot go on; `why` is for people."""

    why: str


@dataclass(frozen=True)
class HandOver:
    """Hand over every parcel that was not acknowledged."""


@dataclass(frozen=True)
class Holds:
    """The number of parcels to come, each offered once the one before is acknowledged."""

    parcels: int

    def __post_init__(self) -> None:
        """ValueError where no host holds so many."""
        if not 0 <= self.parcels <= _MOST_PARCELS:
            raise ValueError(f"is not 0 to {_MOST_PARCELS} parcels")


@dataclass(frozen=True)
class Offer:
    """A parcel, whose bytes follow; id: their SHA-256, in hexadecimal."""

    id: str
    stamp: Stamp

    def __post_init__(self) -> None:
        """ValueError where the ID is no SHA-256."""
        if not _HASH.fullmatch(self.id):
            raise ValueError("has an ID that is no SHA-256")


@dataclass(frozen=True)
class Acknowledge:
    """The parcel is kept at home, on its disk; it need not be offered again."""

    id: str


Message = Hello | Begin | Fetch | Tvm | Ready | Beat | Ended | Refused | HandOver | Holds | Offer | Acknowledge
KINDS: Mapping[str, type[Message]] = {
    kind.__name__: kind
    for kind in (Hello, Begin, Fetch, Tvm, Ready, Beat, Ended, Refused, HandOver, Holds, Offer, Acknowledge)
}
MOST_BYTES: Mapping[type[Message], int] = {Begin: 1 << 30, Tvm: 64 << 30, Offer: 16 << 30}
"""The largest number of bytes that may follow a message; nothing follows any other."""
