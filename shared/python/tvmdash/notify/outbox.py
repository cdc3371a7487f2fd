"""A route's messages: written down before and after each step, sent once, and kept until they are taken."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import broken, lock
from tvmdash.errors import DashboardError
from tvmdash.notify.message import Entry, Kept, Occasion, State

FILE = "outbox.json"
"""In the output of a subsystem that sends in a channel of its own."""
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
        """The entry of that key."""
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
        """Write it down, for good; DashboardError where that fails, and then nothing may be sent."""
        self._entries[entry.key] = entry
        self._write()
        return entry

    def change(self, entry: Entry, **changes: Any) -> Entry:
        """Write it down with other values."""
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
    """None where there is none, or one that was damaged: it is set aside, and what is intact in it goes on."""
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
    """Two runs at a time would not see what the other one sends: DashboardError for the second."""
    output.mkdir(parents=True, exist_ok=True)
    held = lock.take(output / _LOCK, within_s=_LOCK_S)
    if held is None:
        raise DashboardError("another run is sending messages. Try again when it has finished.", place=output)
    with held:
        yield


def _count_days(first: str, last: str) -> float:
    return (common.parse_stamp(last) - common.parse_stamp(first)).total_seconds() / 86400
