"""The ledger of incidents: events that are only ever appended, and the incidents that follow from them.

A line of incidents.jsonl is one event; `fold` makes the present state of every incident of them. Nothing is ever
taken out: what turned out to be false stays, with who said so and when.
"""

from __future__ import annotations

import datetime
import fnmatch
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp, written_as
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import (
    BisectionAnswer,
    Joined,
    Merged,
    Moved,
    Noted,
    Opened,
    Recovered,
    Separated,
    Silenced,
    StateSet,
    Unsilenced,
)
from tvmdash.judge.history.cause import Cause
from tvmdash.records import metrics
from tvmdash.records.metrics import Direction, FleetKind, Way, is_worse, way
from tvmdash.trials.trial import Trial

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_T = TypeVar("_T")
SUBSYSTEM = "stat_alerts"
LEDGER_FILE = "incidents.jsonl"
DETECTOR = "detector"
NEW, CONFIRMED, ACKNOWLEDGED, EXPECTED, FIXED, FALSE_ALARM = (
    "new", "confirmed", "acknowledged", "expected", "fixed", "false_alarm",
)  # fmt: skip
OPEN_STATES = frozenset({NEW, CONFIRMED, ACKNOWLEDGED})
SETTLED = frozenset({EXPECTED, FIXED, FALSE_ALARM})
STATES = (NEW, CONFIRMED, ACKNOWLEDGED, EXPECTED, FIXED, FALSE_ALARM)
if TYPE_CHECKING:
    # No literal is made of a variable for a type checker; at run time it is what files are checked by.
    _State = str
else:
    _State = Literal[STATES]
CHANGE, MACHINE, CREEP = "change", "machine", "creep"
COMPILER = "compiler"
NOT_TVMS = frozenset({"experiment", "machine"})
"""Whose doing a change of an exact number can be beside TVM's, where that is known."""
OPENED, JOINED, RECOVERED, STATE, SILENCED = "opened", "joined", "recovered", "state", "silenced"
UNSILENCED, BISECTED, NOTED = "unsilenced", "bisected", "noted"
MERGED, SEPARATED = "merged", "separated"
_MOST_SUSPECTS = 20


@dataclass(frozen=True)
class Change:
    """One change of an incident's state: when (ISO 8601 UTC), by whom, to what, in which words."""

    at: str
    who: str
    state: str
    words: str = ""


@dataclass(frozen=True)
class Remark:
    """A note on an incident: when (ISO 8601 UTC), by whom, in which words."""

    at: str
    who: str
    words: str


@dataclass(frozen=True)
class Incident:
    """Series that moved together. begin: first night of the new level; after: the last one before it.

    The culprit came after version `versions[0]` and not later than `versions[1]`. found: the night that told it.
    artifacts: the builds of these; empty where the data does not say, or in a ledger from before they were kept.
    bisected: what `bisect` found out since. cause: whose doing it was, by
    which evidence; None in an incident of a ledger from before there were causes.
    direction: of the fleet whose `size` it is. fleet: the key of that, fleet_name the same for people. fleet_kind: what
    its series are; None in incidents of long ago, where the key alone tells it. machine: of a whole fleet, where all
    of it is measured on one. owner: who looks after it; issue: where else it is discussed; remarks: what people said.
    into: the incident that a person joined it to, which has its series; origin: the one that was opened, where a
    person split this off.
    """

    id: str
    kind: str
    state: _State
    begin: Stamp
    after: Stamp
    found: Stamp
    versions: tuple[str, str]
    blame: str
    moved: tuple[Moved, ...] = ()
    notes: tuple[str, ...] = ()
    end: str | None = None
    changes: tuple[Change, ...] = ()
    size: float | None = None
    fleet: str = ""
    fleet_name: str = ""
    fleet_kind: FleetKind | None = None
    bisected: BisectionAnswer | None = None
    direction: Direction = "lower"
    cause: Cause | None = None
    machine: str = ""
    artifacts: tuple[str, str] = ("", "")
    owner: str = ""
    issue: str = ""
    remarks: tuple[Remark, ...] = ()
    into: str = ""
    origin: str = ""

    @property
    def history(self) -> list[Change]:
        """Its changes of state and what people said, in their order; a remark changes no state and has none."""
        remarks = (Change(remark.at, remark.who, "", remark.words) for remark in self.remarks)
        return sorted((*self.changes, *remarks), key=lambda change: change.at)

    @property
    def is_rebuilt(self) -> bool:
        """Return True where it came with another build of the same TVM: other options, another toolchain."""
        (version, now), (before, after) = self.versions, self.artifacts
        return bool(version and before and after) and version == now and before != after

    @property
    def is_exact(self) -> bool:
        """Return True where all of its numbers are exact; these are told apart from those with noise."""
        return bool(self.moved) and all(moved.is_exact for moved in self.moved)

    @property
    def is_of_times(self) -> bool:
        """Return True where it is of a fleet of times."""
        return self.fleet_kind == "times" if self.fleet_kind else self.fleet.partition(" ")[0] == "times"

    def moved_on(self, night: str) -> Incident | None:
        """Reduce it to its series of that night: those it began with, or that joined later; None where none did."""
        if self.found == night:
            return replace(self, moved=tuple(moved for moved in self.moved if moved.joined is None))
        joined = tuple(moved for moved in self.moved if moved.joined == night)
        return replace(self, moved=joined, size=None) if joined else None

    @property
    def is_worse(self) -> bool:
        return self.way == metrics.WORSE

    @property
    def worst_first(self) -> list[Moved]:
        """Its series: those that got worse before the rest, each the farthest first."""
        return sorted(self.moved, key=lambda moved: (not moved.worse, -abs(moved.effect)))

    @property
    def magnitude(self) -> float:
        """The change of its worst series, or of the machine, as a fraction."""
        moved = [abs(series.effect) for series in self.moved if series.worse or not self.is_worse]
        return max(moved, default=abs(self.size or 0.0))

    @property
    def way(self) -> Way:
        """Worse where anything got worse, else better where anything got better, else changed."""
        directions = {moved.worse for moved in self.moved} | {is_worse(self.size or 0.0, self.direction)}
        return way(True if True in directions else False if False in directions else None)

    @property
    @written_as("open")
    def is_open(self) -> bool:
        """Return True while somebody should act on it: it got worse, and nobody has settled it."""
        settled_by_itself = self.kind == MACHINE and self.blame == "machine"
        return not settled_by_itself and self.state in OPEN_STATES and self.is_worse

    def to_json(self) -> dict[str, Any]:
        return structured.to_json(self)

    @classmethod
    def from_json(cls, value: common.Json, path: Path, at: str) -> Incident:
        """Parse what `to_json` wrote to `path`, at this JSON path; DashboardError where it is anything else."""
        return structured.from_json(cls, value, path, at=at)


@dataclass(frozen=True)
class Incidents:
    """All incidents of a home as they are now, oldest first; made of the ledger, and only for readers."""

    incidents: tuple[Incident, ...] = ()


@dataclass(frozen=True)
class Silence:
    """Incidents that match `pattern` (ID, series or name, with * and ?) are not told until `until`."""

    pattern: str
    until: str
    at: str
    who: str
    words: str = ""

    def holds(self, now: str) -> bool:
        """Return True while it is in force at the ISO moment `now`."""
        return self.at <= now < self.until

    def covers(self, incident: Incident, now: str) -> bool:
        """Return True where it silences all series of `incident`, or it by its ID, at the ISO moment `now`."""
        if not self.holds(now):
            return False
        if fnmatch.fnmatch(incident.id, self.pattern):
            return True
        names = [(moved.series, moved.name) for moved in incident.moved]
        return bool(names) and all(any(fnmatch.fnmatch(text, self.pattern) for text in pair) for pair in names)


@dataclass(frozen=True)
class Event:
    """One line of the ledger. at: ISO 8601 UTC; the detector's events carry the moment of their night."""

    at: str
    who: str
    event: str
    incident: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, at: str, who: str, event: str, incident: str, data: DataclassInstance) -> Event:
        """The event whose data a class of `events` holds."""
        return cls(at, who, event, incident, structured.to_json(data))

    def read(self, kind: type[_T]) -> _T:
        """Parse its data as a class of `events`; DashboardError where it is anything else."""
        return structured.from_json(kind, self.data, f"{self.event} {self.incident}".strip(), at="$.data")

    @property
    def key(self) -> str:
        """A key that is equal for the same event told twice."""
        return json.dumps([self.at, self.who, self.event, self.incident, self.data.get("state"), self._series()])

    def _series(self) -> list[str]:
        moved = self.data.get("moved", self.data.get("series", ()))
        return sorted(str(series["series"]) if isinstance(series, dict) else str(series) for series in moved)


@dataclass(frozen=True)
class Ledger:
    """All incidents in the order they were opened, and all silences."""

    incidents: Mapping[str, Incident] = field(default_factory=dict)
    silences: tuple[Silence, ...] = ()

    def find(self, name: str) -> Incident:
        """The incident of that ID, or of the only ID that begins so; DashboardError otherwise."""
        matches = [self.incidents[name]] if name in self.incidents else []
        matches = matches or [incident for key, incident in self.incidents.items() if key.startswith(name)]
        if len(matches) > 1:
            raise DashboardError(f"{name!r} may be {', '.join(incident.id for incident in matches)}.")
        if not matches:
            known = ", ".join(list(self.incidents)[-5:]) or "none yet"
            raise DashboardError(f"{name!r} is not an incident. The last ones: {known}.")
        return matches[0]

    def open(self) -> list[Incident]:
        """List the open incidents, oldest first."""
        return [incident for incident in self.incidents.values() if incident.is_open]

    def silences_at(self, now: str) -> list[Silence]:
        """The silences in force at the ISO moment `now`, the oldest first."""
        return [silence for silence in self.silences if silence.holds(now)]

    def is_muted(self, series: str, name: str, now: str) -> bool:
        """Return True where a silence in force covers the series of that key and name."""
        held = self.silences_at(now)
        return any(fnmatch.fnmatch(text, silence.pattern) for silence in held for text in (series, name))

    def silent(self, incident: Incident, now: str) -> Silence | None:
        """Return the silence that covers `incident` now."""
        return next((silence for silence in self.silences if silence.covers(incident, now)), None)


def fold(events: Iterable[Event], ledger: Ledger | None = None) -> Ledger:
    """The ledger after `events`, in their order; an event about an unknown incident changes nothing."""
    ledger = ledger or Ledger()
    incidents, silences = dict(ledger.incidents), list(ledger.silences)
    for event in events:
        if event.event == SILENCED:
            told = event.read(Silenced)
            silences.append(Silence(told.pattern, told.until, event.at, event.who, told.words))
        elif event.event == UNSILENCED:
            silences = [_end_silence(silence, event) for silence in silences]
        elif event.event == OPENED:
            incidents.setdefault(event.incident, _open_incident(event))
        elif event.event == MERGED:
            _merge(incidents, event)
        elif event.event == SEPARATED:
            _separate(incidents, event)
        elif event.incident in incidents:
            incidents[event.incident] = _apply_event(incidents[event.incident], event)
    return Ledger(incidents, tuple(silences))


def check(event: Event) -> None:
    """Raise DashboardError where the event is of no kind that is known here, or its data is not of its kind."""
    kind = _DATA.get(event.event)
    if kind is None:
        raise DashboardError(f"$.event: {event.event!r:.40} is not one of: {', '.join(_DATA)}.")
    told: object = event.read(kind)
    if isinstance(told, StateSet) and told.state not in STATES:
        raise DashboardError(f"$.data.state: {told.state!r:.40} is not one of: {', '.join(STATES)}.")
    # `fold` makes the night of a joined series from it.
    if isinstance(told, Joined):
        _parse_iso(event.at)


_DATA: Mapping[str, type] = {
    OPENED: Opened,
    JOINED: Joined,
    RECOVERED: Recovered,
    STATE: StateSet,
    SILENCED: Silenced,
    UNSILENCED: Unsilenced,
    NOTED: Noted,
    MERGED: Merged,
    SEPARATED: Separated,
    BISECTED: BisectionAnswer,
}
"""Class of the data of each kind of event."""


def _end_silence(silence: Silence, event: Event) -> Silence:
    """The silence after an event that ends those of one pattern."""
    ends = silence.pattern == event.read(Unsilenced).pattern and silence.holds(event.at)
    return replace(silence, until=event.at) if ends else silence


def _open_incident(event: Event) -> Incident:
    opened = event.read(Opened)
    return Incident(id=event.incident, state=NEW, changes=(Change(event.at, event.who, NEW),), **vars(opened))


def _apply_event(incident: Incident, event: Event) -> Incident:
    if event.event == JOINED:
        known = {moved.series for moved in incident.moved}
        night = common.stamp_of(_parse_iso(event.at))
        joined = (moved for moved in event.read(Joined).moved if moved.series not in known)
        more = tuple(replace(moved, joined=night) for moved in joined)
        return replace(incident, moved=incident.moved + more)
    if event.event == RECOVERED:
        back = event.read(Recovered)
        moved = (
            replace(series, recovered=back.since or None) if series.series in back.series else series
            for series in incident.moved
        )
        return replace(incident, moved=tuple(moved))
    if event.event == BISECTED:
        return replace(incident, bisected=event.read(BisectionAnswer))
    if event.event == NOTED:
        return _note(incident, event)
    told = event.read(StateSet)
    change = Change(event.at, event.who, told.state, told.words)
    end = told.end if told.state not in OPEN_STATES else None
    return replace(incident, state=told.state, end=end, changes=(*incident.changes, change))


def _merge(incidents: dict[str, Incident], event: Event) -> None:
    """Give the incident's series to the one that it is joined to; it stays, without them."""
    merged = event.read(Merged)
    one, other = incidents.get(event.incident), incidents.get(merged.into)
    if one is None or other is None or one.id == other.id:
        return
    night = one.found if one.found != other.found else None
    moved = (replace(each, part=each.part or one.id, joined=each.joined or night) for each in one.moved)
    others = {name: replace(each, into=other.id) for name, each in incidents.items() if each.into == one.id}
    incidents.update(others)
    said = _remark(event, f"joined to {other.id}", merged.words)
    incidents[one.id] = replace(one, moved=(), into=other.id, remarks=(*one.remarks, said))
    said = _remark(event, f"{one.id} joined", merged.words)
    incidents[other.id] = replace(other, moved=(*other.moved, *moved), remarks=(*other.remarks, said))


def _separate(incidents: dict[str, Incident], event: Event) -> None:
    """Give the incident some series of another one: those that it was joined with, or others where it is new."""
    told = event.read(Separated)
    source = incidents.get(told.source)
    if source is None or event.incident == source.id:
        return
    chosen = [each for each in source.moved if each.series in told.series]
    left = tuple(each for each in source.moved if each not in chosen)
    said = _remark(event, f"{event.incident} split off", told.words)
    incidents[source.id] = replace(source, moved=left, remarks=(*source.remarks, said))
    change = Change(event.at, event.who, source.state)
    origin = source.origin or source.id
    new = replace(source, moved=(), remarks=(), changes=(change,), origin=origin, owner="", issue="", bisected=None)
    own = incidents.get(event.incident, replace(new, id=event.incident))
    night = own.found if own.found != source.found else None
    moved = (
        replace(
            each, part="" if each.part == own.id else each.part, joined=None if each.joined == night else each.joined
        )
        for each in chosen
    )
    said = _remark(event, f"split from {source.id}", told.words)
    incidents[own.id] = replace(own, into="", moved=(*own.moved, *moved), remarks=(*own.remarks, said))


def _remark(event: Event, *said: str) -> Remark:
    return Remark(event.at, event.who, "; ".join(filter(None, said)))


def _note(incident: Incident, event: Event) -> Incident:
    noted = event.read(Noted)
    said = (noted.words, noted.owner and f"assigned to {noted.owner}", noted.issue and f"see {noted.issue}")
    remark = _remark(event, *said)
    owner, issue = noted.owner or incident.owner, noted.issue or incident.issue
    return replace(incident, owner=owner, issue=issue, remarks=(*incident.remarks, remark))


def changed(incident: str, state: str, *, at: str, who: str, words: str = "", end: str | None = None) -> Event:
    """The event that sets an incident's state; `end` is the night that ended it."""
    if state not in STATES:
        raise DashboardError(f"unknown state {state!r}. Use one of: {', '.join(STATES)}.")
    return Event.of(at, who, STATE, incident, StateSet(state, words, end))


def bisected_by(incident: str, done: Trial, *, at: str, who: str) -> Event:
    """The event that tells the answer of `bisect`; DashboardError where it has none."""
    found = done.bisection
    if found is None:
        raise DashboardError(f"This is the result of a {done.kind}. Give the file that bisect wrote.")
    change = done.series[0].change
    if not found.is_answered or change is None:
        raise DashboardError(f"the bisection has no result yet; its state is {done.outcome!r}.")
    answer = BisectionAnswer(
        done.series[0].id, done.series[0].name, change.effect, change.low, change.high, found.probability,
        found.suspects[-_MOST_SUSPECTS:], found.builds, found.measurements, done.measured_s, len(found.suspects),
    )  # fmt: skip
    return Event.of(at, who, BISECTED, incident, answer)


def _parse_iso(moment: str) -> datetime.datetime:
    return common.parse_stamp(moment.replace("-", "").replace(":", ""))


def iso_of(stamp: str) -> str:
    """Format the stamp's moment as ISO 8601 in UTC, as the ledger writes moments."""
    return f"{common.parse_stamp(stamp):%Y-%m-%dT%H:%M:%SZ}"
