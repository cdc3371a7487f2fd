"""What is known of each night's message: slack.json in a subsystem's output, written before and after each step."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.files import lock
from tvmdash.slack_util.payloads import Message

FILE = "slack.json"
QUEUED, SENDING, SENT, REFUSED, GIVEN_UP = "queued", "sending", "sent", "refused", "given up"
"""Queued: certainly not in Slack. Sending: it may be there. Refused: Slack does not take this message, ever.
Given up: not sent again, because it may be there and Slack cannot be asked, or because it is too old."""
_KEPT = 60


@dataclass(frozen=True)
class Entry:
    """One night's message; `since` is when it was first tried (seconds of the epoch), `message` what waits.

    replies: by mark, each with its `state` and, while it waits, its `message`.
    """

    stamp: str
    key: str
    since: float
    state: str = QUEUED
    channel: str = ""
    ts: str = ""
    digest: str = ""
    why: str = ""
    attached: tuple[str, ...] = ()
    message: Mapping[str, Any] | None = None
    replies: Mapping[str, Any] = field(default_factory=dict)

    @property
    def waits(self) -> bool:
        """Whether it is still to be sent, or to be looked for in Slack."""
        return self.state in {QUEUED, SENDING} and self.message is not None


class Ledger:
    """The entries by stamp. `was_broken`: the file could not be read and was set aside; what it knew is lost."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self.was_broken = False
        self.entries: dict[str, Entry] = {}
        if self._path.exists():
            self._read()

    def put(self, entry: Entry) -> Entry:
        """Write `entry` down, for good; DashboardError where that fails, and then nothing may be sent."""
        self.entries[entry.stamp] = entry
        kept = sorted(self.entries)[-_KEPT:]
        self.entries = {stamp: self.entries[stamp] for stamp in kept}
        value = {"schema_version": 1, "messages": [asdict(self.entries[stamp]) for stamp in kept]}
        try:
            common.write_json(self._path, value)
        except OSError as error:
            raise DashboardError(
                f"{self._path}: cannot be written: {error.strerror}. Nothing more was sent to Slack: it could not be"
                " remembered. Make room, or mend the folder's mode."
            ) from error
        return entry

    def change(self, entry: Entry, **changes: Any) -> Entry:
        """Write `entry` down with other values."""
        return self.put(replace(entry, **changes))

    def _read(self) -> None:
        try:
            value = common.read_json(self._path)
            items = [Entry(**{**item, "attached": tuple(item["attached"])}) for item in value["messages"]]
            for item in items:
                common.parse_stamp(item.stamp)
                if item.message is not None:
                    Message.from_json(item.message)
                for reply in item.replies.values():
                    if reply["message"] is not None:
                        Message.from_json(reply["message"])
            self.entries = {item.stamp: item for item in items}
        except (DashboardError, KeyError, TypeError, AttributeError):
            self.was_broken = True
            os.replace(self._path, self._path.with_suffix(".broken.json"))


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Two runs at the same time would not see what the other one sends: DashboardError for the second."""
    held = lock.take(folder / ".slack.lock")
    if held is None:
        raise DashboardError(f"{folder}: another run is speaking to Slack. Start this one again when it has ended.")
    with held:
        yield
