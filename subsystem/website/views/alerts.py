"""The output of stat_alerts for the last night that it judged, and people's decisions on incidents and series."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from files.files import fault_of

from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import decisions
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import MACHINE, OPEN_STATES, SUBSYSTEM, Incident, Silence, iso_of
from tvmdash.verdict import Standing
from tvmdash.verdict.page import (
    PAGE_FILE,
    AlertsPage,
    AnnotationNote,
    Honesty,
    SeriesVerdict,
    StddevPage,
    StddevSeries,
)


@dataclass(frozen=True)
class Alerts:
    """Everything of stat_alerts; `night` is the one that was judged last ("" where none was).

    faults: what of it cannot be read, in words. incidents: newest first. silent: the IDs nobody is told about.
    """

    night: str = ""
    series: Mapping[str, SeriesVerdict] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    silent: frozenset[str] = frozenset()
    honesty: Honesty = field(default_factory=Honesty)
    annotations: tuple[AnnotationNote, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def open(self) -> list[Incident]:
        """Incidents that somebody should still do something about, and that are not silenced; worst first."""
        return self._told(incident for incident in self.incidents if incident.is_open)

    def news(self, tonight: str) -> list[Incident]:
        """Return the incidents that the night `tonight` found, worst first."""
        return self._told(incident for incident in self.incidents if incident.found == tonight)

    def _told(self, incidents: Iterable[Incident]) -> list[Incident]:
        told = (incident for incident in incidents if incident.id not in self.silent)
        return sorted(told, key=lambda incident: (not incident.is_worse, -incident.magnitude))

    def open_moves(self) -> dict[str, tuple[Incident, Moved]]:
        """Return by series what of it still stands, better or worse; of several incidents the newest."""
        moves: dict[str, tuple[Incident, Moved]] = {}
        for incident in self.incidents:
            if incident.state in OPEN_STATES and incident.kind != MACHINE:
                for moved in incident.moved:
                    if moved.recovered is None:
                        moves.setdefault(moved.series, (incident, moved))
        return moves


def read_alerts(home: Home, now: datetime.datetime) -> Alerts:
    """Read the last night that stat_alerts judged, and the incidents and silences as they are now."""
    path = home.output(SUBSYSTEM) / PAGE_FILE
    ledger, moment = incident_file.read_ledger(home), f"{now:%Y-%m-%dT%H:%M:%SZ}"
    incidents = tuple(ledger.incidents.values())[::-1]
    silent = frozenset(incident.id for incident in incidents if ledger.silent(incident, moment))
    try:
        page = common.read_json(path, max_bytes=structured.MAX_BYTES) if path.is_file() else None
        if page is None:
            return Alerts(incidents=incidents, silent=silent)
        if isinstance(page, dict) and "rule" in page:
            by_rule = structured.from_json(StddevPage, page, path)
            series = {series.id: _by_rule(series) for series in by_rule.series}
            return Alerts(by_rule.night, series, incidents, silent)
        parsed = structured.from_json(AlertsPage, page, path)
    except DashboardError as error:
        return Alerts(incidents=incidents, silent=silent, faults=(fault_of(path, error),))
    series = {series.id: series for series in parsed.series}
    return Alerts(parsed.night, series, incidents, silent, parsed.honesty, parsed.annotations)


def _by_rule(series: StddevSeries) -> SeriesVerdict:
    said = "alert" if series.alert else "quiet"
    return SeriesVerdict(
        series.id, series.name, said, series.reason, since="", noise_grade="", noise=None,
        smallest_visible_change=None, control=False, standing=Standing.STEADY, effect=None,
    )  # fmt: skip


@dataclass(frozen=True)
class PutAside:
    """One decision: its scope, as it was given, and since or until when, by whom and why."""

    scope: str
    words: str

    def covers(self, experiment: str, series: Iterable[str]) -> bool:
        """Match the experiment, or one of these series of it."""
        return any(fnmatch.fnmatch(name, self.scope) for name in (experiment, *series))


def read_retired(home: Home, stamp: str) -> list[PutAside]:
    """Read what is retired on that night, oldest first."""
    return [
        PutAside(note.scope, f"retired on {common.format_day(note.place)} by {note.who}: {note.words}")
        for note in decisions.list_retired(home)
        if note.kind == "night" and note.place <= stamp
    ]


def read_muted(home: Home, stamp: str) -> list[PutAside]:
    """Read what is muted on that night, oldest first."""
    return [PutAside(each.pattern, _describe_silence(each)) for each in decisions.list_muted(home, iso_of(stamp))]


def _describe_silence(silence: Silence) -> str:
    why = f": {silence.words}" if silence.words else ""
    return f"muted until {common.format_day(silence.until.replace('-', '').replace(':', ''))} by {silence.who}{why}"
