"""Messages as values, of which each sender makes its own form, and the states of those on their way."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from tvmdash.common.structured import Stamp
from tvmdash.incidents.ledger import Incident
from tvmdash.notify.payloads import Payload
from tvmdash.verdict import Level

OUTBOX_FILE = "outbox.json"
"""In the output of a subsystem that sends in a channel of its own."""
_OPENED = " opened"


class Occasion(enum.StrEnum):
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
    event: Occasion
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
        return f"{self.news}: {self.title}" if self.news else self.title


@dataclass(frozen=True)
class Outgoing(Message):
    """A message on its way. payload: how Slack is to show it, where somebody has made that himself."""

    payload: Payload | None = None


class State(enum.StrEnum):
    """The state of a message on its way.

    waiting: certainly not taken. sending: it may have been taken. given_up: not sent again.
    """

    WAITING = "waiting"
    SENDING = "sending"
    SENT = "sent"
    GIVEN_UP = "given_up"


@dataclass(frozen=True)
class Entry:
    """One message. marks: what it tells, as `plan` calls it; what was told once is not told again.

    night: since which it is tried; at: when it was tried last (ISO 8601 UTC). held: it waits for the end of the quiet
    hours alone. remote: what the other side calls it. message: until it is sent. digest: of what was sent last, where
    that can be edited; attached: the files in its thread.
    """

    key: str
    night: Stamp
    state: State
    marks: tuple[str, ...] = ()
    tries: int = 0
    at: str = ""
    why: str = ""
    held: bool = False
    remote: str = ""
    message: Outgoing | None = None
    digest: str = ""
    attached: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kept:
    """An outbox as kept. since: the first night that the route told; hushed: incidents that wait for a silence."""

    since: Stamp
    hushed: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


def opening_of(incident: str) -> str:
    """The key of the message that tells it first, which is also the mark of that."""
    return f"{incident}{_OPENED}"


def incident_of(mark: str) -> str:
    """The ID of the incident that a message of that key or mark told first; "" where it is another."""
    return mark.removesuffix(_OPENED) if mark.endswith(_OPENED) else ""
