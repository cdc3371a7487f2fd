"""Delivery to a route: each message is written down before and after it is sent, sent once, and kept until taken."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import broken, lock
from tvmdash.errors import DashboardError
from tvmdash.notify.errors import Budget, BusyError, DeliveryError, IncompleteError, RefusedError, UnfitError
from tvmdash.notify.message import Entry, Item, Kept, Message, Occasion, Outgoing, State, opening_of
from tvmdash.notify.payloads import Payload
from tvmdash.notify.senders import Sender
from tvmdash.text import clean_message
from tvmdash.verdict import Level

LATE_DAYS = 7
"""Days after which a message that was not taken is given up, and an incident is no longer told as new."""
_MAX_BYTES = 64 << 20
_KEPT_DAYS = 400
"""An incident that changes later than so long after it was told is not followed any more."""
_KEPT_LEAST = 1000
"""Number of last messages that are kept whatever their age: the clock may be wrong for a night."""
_LOCK, _LOCK_S = ".routes.lock", 10.0


def make_identity(output: Path, route: str, key: str) -> str:
    """Return the ID of a message, unique among all homes and routes of this machine."""
    identity = [os.uname().nodename, str(output.resolve()), route, key]
    return hashlib.sha256(json.dumps(identity).encode("utf-8", errors="replace")).hexdigest()[:32]


class Outbox:
    """A route's messages by their keys."""

    def __init__(self, path: Path, night: str, find_older: Callable[[], Kept | None] | None = None) -> None:
        """find_older: what is known from before there was this file."""
        self._path = path
        kept = _read(path) or (find_older and find_older()) or Kept(night)
        self.since, self.hushed = min(kept.since, night), kept.hushed  # the clock may have been ahead at first
        self._entries = {entry.key: entry for entry in kept.entries}

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def find(self, key: str) -> Entry | None:
        return self._entries.get(key)

    @property
    def told(self) -> frozenset[str]:
        """The marks of all that was told, or may have been."""
        entries = (entry for entry in self if entry.state is not State.WAITING)
        return frozenset(mark for entry in entries for mark in entry.marks)

    def find_remote(self, marks: Sequence[str]) -> str:
        """Return the other side's name for the message that told one of these marks first, "" without one."""
        return next((entry.remote for entry in self if entry.remote and not set(marks).isdisjoint(entry.marks)), "")

    def put(self, entry: Entry) -> Entry:
        """Write the entry down, for good; DashboardError where that fails, and then nothing may be sent."""
        self._entries[entry.key] = entry
        self._write()
        return entry

    def change(self, entry: Entry, **changes: Any) -> Entry:
        """Write the entry down with other values."""
        return self.put(replace(entry, **changes))

    def begin(self, due: Sequence[Entry], hushed: tuple[str, ...], night: str) -> list[str]:
        """Put what is due in place of what waited; return sentences about what is too old to be sent.

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
            elif entry.message is not None and entry.message.event is Occasion.NIGHT:
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
    """Read the outbox; None where there is none. A damaged one is set aside, and what is intact in it goes on."""
    try:
        return structured.read(Kept, path, max_bytes=_MAX_BYTES)
    except DashboardError:
        intact = _read_intact(path)
        broken.set_aside(path)
        return intact


def _read_intact(path: Path) -> Kept | None:
    """Return the intact entries of a damaged file; None where nothing says since when the route tells."""
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


@contextlib.contextmanager
def hold(output: Path) -> Iterator[None]:
    """Lock the routes: two runs at a time would not see what the other one sends. DashboardError for the second."""
    output.mkdir(parents=True, exist_ok=True)
    held = lock.take(output / _LOCK, within_s=_LOCK_S)
    if held is None:
        raise DashboardError("another run is sending messages. Try again when it has finished.", place=output)
    with held:
        yield


def _count_days(first: str, last: str) -> float:
    return (common.parse_stamp(last) - common.parse_stamp(first)).total_seconds() / 86400


_FAILURES = 2
"""Messages that were not taken, after which no other is tried that time."""


@dataclass(frozen=True)
class Due:
    """A message that is to be sent, or shown in place of the one of its key that was.

    key: of it among the route's; marks: what it tells; levels: of that.
    """

    key: str
    message: Message
    marks: tuple[str, ...] = ()
    levels: frozenset[Level] = frozenset()


@dataclass
class Delivery:
    """One time of telling one route, in the night `night` and at the moment `at` (ISO 8601 UTC).

    sender: None where it cannot be opened, and all is only kept.
    until: the end of the quiet hours, "" outside of them; wake: levels that are told in them. known: secrets, which
    are hidden in what is kept and sent. Afterwards: how many were sent and edited, the first fault, whether that was a
    refusal, and what must be said besides.
    """

    sender: Sender | None
    outbox: Outbox
    night: str
    at: str
    budget: Budget
    until: str = ""
    wake: frozenset[Level] = frozenset()
    known: tuple[str, ...] = ()
    sent: int = 0
    edited: int = 0
    fault: str = ""
    is_refused: bool = False
    notes: list[str] = field(default_factory=list)
    _failures: int = 0

    def tell(self, due: Sequence[Due], hushed: tuple[str, ...] = ()) -> None:
        """Send these, then of what was not taken before what still counts, and bring up to date what was sent."""
        there = {item.key: item for item in due if self._is_there(item.key)}
        entries = [self._make_entry(item) for item in due if item.key not in there]
        self.notes += self.outbox.begin(entries, hushed, self.night)
        if self.sender is None:
            return
        uncertain = [entry for entry in self.outbox if entry.state is State.SENDING and not self.is_held(entry)]
        waiting = [entry for entry in self.outbox if entry.state is State.WAITING and not entry.held]
        # Tonight's go first: the budget may end, or the route fail twice, before the old ones are sent.
        waiting.sort(key=lambda entry: entry.night != self.night)
        for entry in (*uncertain, *(entry for entry in waiting if not self._is_folded(entry))):
            if self._failures < _FAILURES:
                self._send(self.sender, entry)
        for key, item in there.items():
            sent = self.outbox.find(key)
            if sent is not None and sent.state is State.SENT and self._failures < _FAILURES:
                self._edit(self.sender, sent, item.message)

    def _is_there(self, key: str) -> bool:
        entry = self.outbox.find(key)
        return entry is not None and entry.state in (State.SENT, State.GIVEN_UP)

    def _make_entry(self, due: Due) -> Entry:
        entry = self.outbox.find(due.key) or Entry(due.key, self.night, State.WAITING)
        held = bool(self.until) and not due.levels & self.wake
        return replace(entry, marks=due.marks, message=make_outgoing(due.message, self.known), held=held)

    def is_held(self, entry: Entry) -> bool:
        """Return True while quiet hours hold it back."""
        return bool(self.until) and entry.message is not None and entry.message.level not in self.wake

    def _is_folded(self, entry: Entry) -> bool:
        """Return True where another message tells it, as the next night's does for one that was missed."""
        return any(entry.key in other.marks for other in self.outbox if other.key != entry.key)

    def _send(self, sender: Sender, entry: Entry) -> None:
        message, is_again = entry.message, entry.state is State.SENDING
        if message is None or (is_again and not sender.safe_twice):
            self._give_up(entry, "an earlier run ended while sending it")
            return
        if entry.night < self.night and message.event is Occasion.NIGHT and not is_again:
            message = mark_late(message)
        remote = self.outbox.find_remote([opening_of(message.incident.id)] if message.incident else entry.marks)
        entry = self.outbox.change(entry, state=State.SENDING, tries=entry.tries + 1, at=self.at)
        tries = itertools.count(int(is_again))
        try:
            name = self.budget.spend(
                lambda limit_s: sender.send(message, limit_s, remote, again=next(tries) > 0),
                again=sender.safe_twice,
            )
        except IncompleteError as error:
            self.notes.append(str(error))
            self._settle(sender, entry, "")
        except UnfitError as error:
            self._fail(entry, error, State.GIVEN_UP)
        except (BusyError, RefusedError) as error:
            self._fail(entry, error, State.SENDING if is_again else State.WAITING)
        except DeliveryError as error:
            if sender.safe_twice:
                self._fail(entry, error, State.SENDING)
            else:
                self._give_up(entry, str(error))
        else:
            self._settle(sender, entry, name)

    def _settle(self, sender: Sender, entry: Entry, remote: str) -> None:
        self.sent += 1
        digest = make_digest(entry.message) if sender.edits and entry.message else ""
        self.outbox.change(entry, state=State.SENT, why="", remote=remote, message=None, digest=digest)
        for other in self.outbox:
            # A night's message that names one that was missed tells it as well.
            if other.state is State.WAITING and other.key in entry.marks:
                self.outbox.change(other, state=State.SENT, why=f"told by {entry.key}", message=None)

    def _edit(self, sender: Sender, entry: Entry, message: Message) -> None:
        """Show what is known by now; where that fails, the next night does."""
        outgoing = make_outgoing(message, self.known)
        digest = make_digest(outgoing)
        if not sender.edits or not entry.remote or entry.digest == digest:
            return
        try:
            self.budget.spend(lambda limit_s: sender.edit(outgoing, limit_s, entry.remote), again=True)
        except IncompleteError as error:
            self.notes.append(str(error))
        except DeliveryError as error:
            self._failures += 1
            self.notes.append(f"{entry.key} was not brought up to date: {error}")
            return
        else:
            self.edited += 1
        self.outbox.change(entry, digest=digest)

    def _fail(self, entry: Entry, error: DashboardError, state: State) -> None:
        self._failures += 1
        self.fault = self.fault or str(error)
        self.is_refused = self.is_refused or isinstance(error, RefusedError)
        message = None if state is State.GIVEN_UP else entry.message
        self.outbox.change(entry, state=state, why=str(error), message=message)

    def _give_up(self, entry: Entry, why: str) -> None:
        self.notes.append(f"unknown whether {entry.key} was delivered ({why}); it is not sent again")
        self.outbox.change(entry, state=State.GIVEN_UP, why=why, message=None)


def make_outgoing(message: Message, known: tuple[str, ...]) -> Outgoing:
    """Strip the message of secrets, to be kept and sent."""
    values = {each.name: getattr(message, each.name) for each in fields(message)}
    outgoing = Outgoing(**values)
    cleaned: Mapping[str, Any] = clean_message(structured.to_json(outgoing), known)
    return structured.from_json(Outgoing, cleaned, "message")


def make_digest(message: Message) -> str:
    """Make a digest that is the same for messages that are shown alike."""
    return hashlib.sha256(json.dumps(structured.to_json(message), sort_keys=True).encode()).hexdigest()[:16]


def mark_late(message: Outgoing) -> Outgoing:
    """Put a line in front of the message that says of which night it is."""
    note = f"Late: from the night of {common.format_day(message.night)}, when it could not be sent."
    payload: Payload | None = message.payload.marked(note) if message.payload else None
    return replace(message, items=(Item("", (note,)), *message.items), payload=payload)
