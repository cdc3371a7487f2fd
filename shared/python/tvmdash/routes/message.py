"""What a route tells at a time, as a value: every way of sending it makes its own form of this."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tvmdash.incidents.ledger import Incident
from tvmdash.structured import Stamp
from tvmdash.verdict import Level


class Event(enum.StrEnum):
    """Why it is told: an incident opened, changed or was settled; a night in one message; nights stopped; a test."""

    OPENED = "opened"
    UPDATED = "updated"
    CLOSED = "closed"
    NIGHT = "night"
    QUIET = "quiet"
    RUNS_AGAIN = "runs_again"
    TEST = "test"


@dataclass(frozen=True)
class Item:
    """One thing in it. address: of the website, where there is one; commands: to copy, with what each is for."""

    title: str
    lines: tuple[str, ...] = ()
    address: str = ""
    commands: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Message:
    """One message. id: the same for each try, and of no other message; first: that of the one that it answers.

    title: what it is about; news: what is new of that, "" where all of it is; is_minor: only that more series moved.
    people: who is pinged by it, as the route knows them; owners: what they are called. incident: as it is now, of its
    series the worst; series: how many there are.
    """

    id: str
    event: Event
    night: Stamp
    title: str
    items: tuple[Item, ...]
    level: Level | None = None
    news: str = ""
    is_minor: bool = False
    first: str = ""
    people: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    home: str = ""
    incident: Incident | None = None
    series: int = 0

    @property
    def headline(self) -> str:
        """What is new, and of what."""
        return f"{self.news}: {self.title}" if self.news else self.title
