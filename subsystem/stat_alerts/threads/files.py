"""What is remembered of the threads, in a folder for each; a file that is lost costs a look-up in Slack."""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from threads.text import mark_of
from tvmdash import common, structured
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import Incident, Ledger
from tvmdash.structured import Stamp

FOLDER = "threads"
_FILE, _MEMORY, _SHARED = "thread.json", "threads.json", "night-"
_NAME = re.compile(r"i[0-9A-Za-z]+-[0-9A-Za-z]+")
_FOLDERS_NAME = re.compile(r"[0-9A-Za-z-]{1,80}")


@dataclass(frozen=True)
class ToldInThread:
    """What was said of an incident: the marks of its changes of state, and its series."""

    states: tuple[str, ...]
    series: tuple[str, ...]

    @classmethod
    def of(cls, incident: Incident) -> ToldInThread:
        """All of it, as it is now."""
        states = tuple(mark_of(incident, change) for change in incident.changes)
        return cls(states, tuple(moved.series for moved in incident.moved))

    @classmethod
    def at(cls, incident: Incident, posted: float) -> ToldInThread:
        """What a message told that was posted at that moment (seconds of the epoch); all of the series."""
        changes = [change for change in incident.changes if moment(change.at) <= posted]
        return replace(cls.of(incident), states=tuple(mark_of(incident, change) for change in changes))


@dataclass(frozen=True)
class Thread:
    """One thread, of one incident, or (`shared`) of the rest of a night: by ID, what was said; None: not known."""

    name: str
    stamp: str
    incidents: Mapping[str, ToldInThread | None]
    shared: bool = False

    def telling(self, reported: Mapping[str, ToldInThread]) -> Thread:
        """The thread after more was said."""
        return replace(self, incidents={**self.incidents, **reported})


@dataclass(frozen=True)
class _ThreadFile:
    """What a thread's own file holds."""

    stamp: Stamp
    incidents: Mapping[str, ToldInThread | None]


@dataclass(frozen=True)
class ThreadMemory:
    """The night up to which new incidents have their threads; those that get none until a silence ends.

    placed: the thread of each incident, once more, for where a thread's own file is lost.
    """

    night: str
    hushed: tuple[str, ...] = ()
    placed: Mapping[str, str] = field(default_factory=dict)


def name_of(incident: str) -> str:
    """The folder's name for an incident's ID, whatever stands in the ledger."""
    return incident if _NAME.fullmatch(incident) and len(incident) < 60 else _digest(incident)


def shared_name(stamp: str) -> str:
    """The folder's name for what is told together of a night."""
    return f"{_SHARED}{stamp}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="replace")).hexdigest()[:20]


def moment(iso: str) -> float:
    """Seconds of the epoch of an ISO moment of the ledger; the beginning of time for what is none."""
    try:
        parsed = datetime.datetime.strptime(iso, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)
    except ValueError:
        return 0.0
    return parsed.timestamp()


def read(folder: Path, ledger: Ledger, memory: ThreadMemory | None) -> Iterator[Thread]:
    """The threads there are. Of one whose file is lost, it is known whose it was, and not what it said."""
    places = memory.placed if memory else {}
    places = {incident: name for incident, name in places.items() if _FOLDERS_NAME.fullmatch(name)}
    lost: dict[str, list[str]] = {}
    for incident in ledger.incidents:
        name = name_of(incident)
        placed = places.get(incident)
        lost.setdefault(placed or name, []).append(incident)
    names = {path.name for path in folder.iterdir() if path.is_dir()} if folder.is_dir() else set()
    for name in sorted(names | set(places.values())):
        thread = _read(folder / name)
        if thread is None and name in lost:
            shared = name.startswith(_SHARED)
            stamp = name.removeprefix(_SHARED) if shared else ledger.incidents[lost[name][0]].found
            thread = Thread(name, stamp, dict.fromkeys(lost[name]), shared)
        if thread is not None:
            yield thread


def _read(path: Path) -> Thread | None:
    try:
        kept = structured.read(_ThreadFile, path / _FILE)
    except DashboardError:
        return None
    return Thread(path.name, kept.stamp, kept.incidents, path.name.startswith(_SHARED)) if kept else None


def write(folder: Path, thread: Thread) -> Thread:
    """Leave the thread; it."""
    own_folder = folder / thread.name
    own_folder.mkdir(parents=True, exist_ok=True)
    kept = _ThreadFile(thread.stamp, thread.incidents)
    common.write_json(own_folder / _FILE, {"schema_version": 1, **structured.to_json(kept)})
    return thread


def read_memory(folder: Path) -> ThreadMemory | None:
    """What the last night left; None on the first, or where it was lost."""
    try:
        return structured.read(ThreadMemory, folder / _MEMORY)
    except DashboardError:
        return None


def write_memory(folder: Path, memory: ThreadMemory) -> None:
    """Leave it for the next night."""
    folder.mkdir(parents=True, exist_ok=True)
    common.write_json(folder / _MEMORY, {"schema_version": 1, **structured.to_json(memory)})
