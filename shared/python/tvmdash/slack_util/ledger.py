"""What is known of each night's message: slack.json in a subsystem's output, written before and after each step."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common, structured
from tvmdash.errors import DashboardError
from tvmdash.files import broken, lock
from tvmdash.slack_util.payloads import Message
from tvmdash.structured import Stamp

FILE = "slack.json"


class State(enum.StrEnum):
    """How far a message or a reply is.

    Queued: certainly not in Slack. Sending: it may be there. Refused: Slack does not take this message, ever.
    Given up: not sent again, because it may be there and Slack cannot be asked, or because it is too old.
    """

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    REFUSED = "refused"
    GIVEN_UP = "given up"


QUEUED, SENDING, SENT, REFUSED, GIVEN_UP = State
_KEPT = 60
_UNTRIED_OF_OLD = "nothing is known of it"
"""What `why` said of an untried entry before there was a field for that."""


@dataclass(frozen=True)
class SavedReply:
    """A reply in the thread of a night's message; `message` is there while it waits."""

    state: State
    message: Message | None = None
    why: str = ""

    @property
    def waits(self) -> bool:
        """Whether it is still to be said, or to be looked for in the thread."""
        return self.state in {QUEUED, SENDING} and self.message is not None


@dataclass(frozen=True)
class Entry:
    """One night's message; `since` is when it was first tried (seconds of the epoch), `message` what waits.

    untried: nothing is known of it: it is looked for, but no run is known to have begun to send it.
    replies: by mark.
    """

    stamp: Stamp
    key: str
    since: float
    state: State = QUEUED
    channel: str = ""
    ts: str = ""
    digest: str = ""
    why: str = ""
    attached: tuple[str, ...] = ()
    message: Message | None = None
    replies: Mapping[str, SavedReply] = field(default_factory=dict)
    untried: bool = False

    @property
    def waits(self) -> bool:
        """Whether it is still to be sent, or to be looked for in Slack."""
        return self.state in {QUEUED, SENDING} and self.message is not None


@dataclass(frozen=True)
class Messages:
    """What the file holds."""

    messages: tuple[Entry, ...]


class Ledger:
    """The entries by stamp. `was_broken`: the file was set aside, and of what it knew only what was whole is here."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.was_broken = False
        self.entries: dict[str, Entry] = {}
        if self._path.exists():
            self._read()

    def put(self, entry: Entry) -> Entry:
        """Write `entry` down, for good; DashboardError where that fails, and then nothing may be sent."""
        self.entries[entry.stamp] = entry
        kept = {*sorted(self.entries)[-_KEPT:], entry.stamp}  # tonight's, also by a clock that was turned back
        self.entries = {stamp: self.entries[stamp] for stamp in sorted(kept)}
        value = {"schema_version": 1, **structured.to_json(Messages(tuple(self.entries.values())))}
        try:
            common.write_json(self._path, value)
        except OSError as error:
            raise DashboardError(
                f"{self._path}: could not be written: {error.strerror}. Nothing more was sent to Slack, because it "
                "could not be recorded. Free some space, or fix the folder's permissions."
            ) from error
        return entry

    def change(self, entry: Entry, **changes: Any) -> Entry:
        """Write `entry` down with other values."""
        return self.put(replace(entry, **changes))

    def _read(self) -> None:
        try:
            messages = structured.from_json(Messages, common.read_json(self._path), self._path).messages
        except DashboardError:
            self.was_broken = True
            messages = tuple(_read_intact(self._path))
            broken.set_aside(self._path)
        self.entries = {entry.stamp: _of_today(entry) for entry in messages}


def _read_intact(path: Path) -> Iterator[Entry]:
    """The messages that are whole in a file that is not."""
    value: common.Json = None
    with contextlib.suppress(DashboardError):
        value = common.read_json(path)
    items = value.get("messages") if isinstance(value, dict) else None
    for item in items if isinstance(items, list) else ():
        with contextlib.suppress(DashboardError):
            yield structured.from_json(Entry, item, path)


def _of_today(entry: Entry) -> Entry:
    return replace(entry, untried=True, why="") if entry.why == _UNTRIED_OF_OLD else entry


@contextlib.contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Two runs at the same time would not see what the other one sends: DashboardError for the second."""
    held = lock.take(folder / ".slack.lock")
    if held is None:
        raise DashboardError(f"{folder}: another run is sending to Slack. Try again when it has finished.")
    with held:
        yield
