"""Messages in Slack as homes kept them before November 2026: slack.json, and a folder for each thread.

They are read once, where there is no outbox yet, so that nothing is said twice and old threads go on. The old files
stay: an older version of the dashboard may come back to the home.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Change, Incident, Ledger
from tvmdash.notify.message import Entry, Kept, Occasion, Outgoing, State, opening_of
from tvmdash.notify.payloads import Payload

FILE, CARRIED = "slack.json", "carried over"
_SHARED = "night-"


class _OldState(enum.StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    REFUSED = "refused"
    GIVEN_UP = "given up"


_STATES = {
    _OldState.QUEUED: State.WAITING,
    _OldState.SENDING: State.SENDING,
    _OldState.SENT: State.SENT,
}


@dataclass(frozen=True)
class _OldMessage:
    """One night's message, or the first one of a thread; since: seconds of the epoch; message: what waits."""

    stamp: Stamp
    key: str
    since: float
    state: _OldState = _OldState.QUEUED
    channel: str = ""
    ts: str = ""
    why: str = ""
    attached: tuple[str, ...] = ()
    message: Payload | None = None


@dataclass(frozen=True)
class _Said:
    """An incident as told in a thread: digests of its changes, and its series."""

    states: tuple[str, ...]
    series: tuple[str, ...]


@dataclass(frozen=True)
class _OldThread:
    stamp: Stamp
    incidents: Mapping[str, _Said | None]


def read_messages(folder: Path) -> list[Entry]:
    """The night's messages of a subsystem, by their stamps; those that are whole, and not given up."""
    return [_make_entry(old, old.stamp) for old in _read(folder / FILE) if old.state in _STATES]


def _read(path: Path) -> Iterator[_OldMessage]:
    value: common.Json = None
    with contextlib.suppress(DashboardError):
        value = common.read_json(path)
    items = value.get("messages") if isinstance(value, dict) else None
    for item in items if isinstance(items, list) else ():
        with contextlib.suppress(DashboardError):
            yield structured.from_json(_OldMessage, item, path)


def _make_entry(old: _OldMessage, key: str, marks: tuple[str, ...] = ()) -> Entry:
    at = ""
    with contextlib.suppress(ValueError, OverflowError):  # of a file that somebody else wrote
        moment = datetime.datetime.fromtimestamp(float(old.ts or old.since), datetime.UTC)
        at = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    message = None
    if old.message is not None:
        message = Outgoing(old.key, Occasion.NIGHT, old.stamp, old.message.text, (), payload=old.message)
    remote = f"{old.channel} {old.ts}".strip() if old.ts else ""
    state, why = _STATES[old.state], old.why or CARRIED
    return Entry(key, old.stamp, state, marks, 0, at, why, remote=remote, message=message, attached=old.attached)


def read_threads(folder: Path, ledger: Ledger, night: str) -> Kept | None:
    """Return the entries for the threads in that folder; None where there are none."""
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    entries = [entry for name in names for entry in _read_thread(folder / name, ledger)]
    return Kept(min((entry.night for entry in entries), default=night), (), tuple(entries)) if entries else None


def _read_thread(folder: Path, ledger: Ledger) -> Iterator[Entry]:
    thread = None
    with contextlib.suppress(DashboardError):
        thread = structured.read(_OldThread, folder / "thread.json")
    if thread is None:
        return
    told = {ledger.incidents[name]: said for name, said in thread.incidents.items() if name in ledger.incidents}
    marks = tuple(mark for incident, said in told.items() for mark in _list_marks(incident, said))
    shared = folder.name.startswith(_SHARED)
    for old in _read(folder / FILE):
        if marks and old.ts and old.state in _STATES:
            key = f"more {thread.stamp}" if shared else opening_of(next(iter(told)).id)
            yield _make_entry(old, key, marks)


def _list_marks(incident: Incident, said: _Said | None) -> Iterator[str]:
    """Yield the marks that were told of it; where that cannot be known, all of them."""
    yield opening_of(incident.id)
    for change in incident.changes[1:]:
        if said is None or _digest(incident, change) in said.states:
            yield f"{incident.id} {change.at} {change.who} {change.state}"
    series = None if said is None else set(said.series)
    for night in sorted({moved.joined for moved in incident.moved if moved.joined}):
        if series is None or all(moved.series in series for moved in incident.moved if moved.joined == night):
            yield f"{incident.id} joined {night}"
    if incident.bisected:
        yield f"{incident.id} bisected"


def _digest(incident: Incident, change: Change) -> str:
    parts: Sequence[object] = [incident.id, change.at, change.who, change.state]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", errors="replace")).hexdigest()[:20]
