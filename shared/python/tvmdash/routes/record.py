"""What is known of each message of a route: one file a route, written before and after each step."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, structured
from tvmdash.errors import DashboardError
from tvmdash.files import broken
from tvmdash.routes.message import Event, Message
from tvmdash.structured import Stamp

_MAX_BYTES = 64 << 20
_KEPT_DAYS = 400
"""An incident that changes later than so long after it was told is not followed any more."""
_KEPT_LEAST = 1000
"""So many of the last messages stay known however old they seem: the clock may be wrong for a night."""
LATE_DAYS = 7
"""How old what was not taken may be to be sent, and an incident to be told as new."""


class State(enum.StrEnum):
    """How far a message is.

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
    hours alone. remote: what the other side calls it. message: until it is sent.
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
    message: Message | None = None


@dataclass(frozen=True)
class Kept:
    """What the file holds. since: the first night that the route told; hushed: incidents that wait for a silence."""

    since: Stamp
    hushed: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()


class Record:
    """A route's messages by their keys."""

    def __init__(self, path: Path, night: str) -> None:
        self._path = path
        kept = _read(path) or Kept(night)
        self.since, self.hushed = min(kept.since, night), kept.hushed  # the clock may have been ahead at first
        self._entries = {entry.key: entry for entry in kept.entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def find(self, key: str) -> Entry | None:
        """The entry of that key."""
        return self._entries.get(key)

    @property
    def told(self) -> frozenset[str]:
        """The marks of all that was told, or may have been."""
        entries = (entry for entry in self if entry.state is not State.WAITING)
        return frozenset(mark for entry in entries for mark in entry.marks)

    def put(self, entry: Entry) -> Entry:
        """Write it down, for good; DashboardError where that fails, and then nothing may be sent."""
        self._entries[entry.key] = entry
        self._write()
        return entry

    def change(self, entry: Entry, **changes: Any) -> Entry:
        """Write it down with other values."""
        return self.put(replace(entry, **changes))

    def begin(self, due: Sequence[Entry], hushed: tuple[str, ...], night: str) -> list[str]:
        """What is due now takes the place of what waited; sentences about what is too old to be sent.

        A night whose message was missed stays until another message tells it.
        """
        new, notes = {entry.key: entry for entry in due}, list[str]()
        kept = dict[str, Entry]()
        last = {entry.key for entry in [entry for entry in self if entry.state is not State.WAITING][-_KEPT_LEAST:]}
        for entry in self:
            days = _count_days(entry.night, night)
            if entry.state is not State.WAITING:
                if days <= _KEPT_DAYS or entry.key in last:
                    kept[entry.key] = entry
            elif entry.key in new:
                continue
            elif days > LATE_DAYS:
                kept[entry.key] = replace(entry, state=State.GIVEN_UP, why="too old", message=None)
                notes.append(f"{entry.key} was never delivered and is now too old")
            elif entry.message is not None and entry.message.event is Event.NIGHT:
                kept[entry.key] = entry
        self._entries, self.hushed = {**kept, **new}, hushed
        self._write()
        return notes

    def _write(self) -> None:
        kept = Kept(self.since, self.hushed, tuple(self._entries.values()))
        try:
            common.write_json(self._path, {"schema_version": 1, **structured.to_json(kept)})
        except OSError as error:
            problem = f"could not be written: {error.strerror}. Nothing was sent, because it could not be recorded."
            raise DashboardError(
                problem, place=self._path, remedy="Free some space, or fix the folder's permissions."
            ) from error


def _read(path: Path) -> Kept | None:
    """None where there is none, or one that was damaged: it is set aside, and what is intact in it goes on."""
    try:
        return structured.read(Kept, path, max_bytes=_MAX_BYTES)
    except DashboardError:
        intact = _read_intact(path)
        broken.set_aside(path)
        return intact


def _read_intact(path: Path) -> Kept | None:
    """What is left of a file that is not whole; None where nothing says since when the route tells."""
    try:
        value = common.read_json(path, max_bytes=_MAX_BYTES)
        kept = structured.from_json(Kept, {**value, "hushed": [], "entries": []}, path)
    except (DashboardError, TypeError):
        return None
    hushed, items = (value[name] if isinstance(value.get(name), list) else [] for name in ("hushed", "entries"))
    entries = list[Entry]()
    for item in items:
        with contextlib.suppress(DashboardError):
            entries.append(structured.from_json(Entry, item, path))
    return replace(kept, hushed=tuple(name for name in hushed if isinstance(name, str)), entries=tuple(entries))


def _count_days(first: str, last: str) -> float:
    return (common.parse_stamp(last) - common.parse_stamp(first)).total_seconds() / 86400
