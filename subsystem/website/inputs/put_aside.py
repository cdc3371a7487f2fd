"""What people took out of what is expected, or out of what is told: `retire` and `mute`, as of a night."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass

from tvmdash.common import parse_stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import decisions
from tvmdash.incidents.ledger import Silence, iso_of


@dataclass(frozen=True)
class PutAside:
    """What one decision is about, as it was given, and what it says: since or until when, by whom and why."""

    scope: str
    words: str

    def covers(self, experiment: str, series: Iterable[str]) -> bool:
        """Whether it is about the experiment, or about one of these series of it."""
        return any(fnmatch.fnmatch(name, self.scope) for name in (experiment, *series))


def read_retired(home: Home, stamp: str) -> list[PutAside]:
    """What is retired on that night, oldest first."""
    return [
        PutAside(note.scope, f"retired on {_day(note.place)} by {note.who}: {note.words}")
        for note in decisions.list_retired(home)
        if note.kind == "night" and note.place <= stamp
    ]


def read_muted(home: Home, stamp: str) -> list[PutAside]:
    """What is muted on that night, oldest first."""
    try:
        silences = decisions.list_muted(home, iso_of(stamp))
    except DashboardError:  # the ledger's own page says what is wrong with it
        return []
    return [PutAside(silence.pattern, _describe_silence(silence)) for silence in silences]


def _describe_silence(silence: Silence) -> str:
    why = f": {silence.words}" if silence.words else ""
    return f"muted until {_day(silence.until.replace('-', '').replace(':', ''))} by {silence.who}{why}"


def _day(stamp: str) -> str:
    return f"{parse_stamp(stamp):%-d %B %Y}"
