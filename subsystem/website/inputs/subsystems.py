"""What other subsystems and people left for the page: a file that is damaged costs its own part."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from tvmdash import common, structured
from tvmdash.common import parse_stamp
from tvmdash.contracts import alerts, deadlines, scores, telemetry
from tvmdash.contracts.alerts import AlertsPage, AnnotationNote, Honesty, SeriesVerdict, StddevPage, StddevSeries
from tvmdash.contracts.deadlines import DeadlineAhead, DeadlinesAhead
from tvmdash.contracts.scores import LeftOut, ScoredNight, ScoreHistory, ScorePage, ScoreTonight
from tvmdash.contracts.telemetry import TelemetryPage, TelemetryRun
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import decisions
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import MACHINE, OPEN_STATES, SUBSYSTEM, Incident, Silence, iso_of
from tvmdash.verdict import Standing

SCORE, TELEMETRY, DEADLINE = "score", "telemetry", "deadline"
WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)
"""What a value of another shape than expected raises while it is taken apart."""
_Kind = TypeVar("_Kind")


def fault_of(path: Path, error: Exception) -> str:
    """A sentence for readers about a file that cannot be used."""
    return f"It could not be read: {reason_of(path, error)}"


def reason_of(path: Path, error: Exception) -> str:
    """Why a file cannot be used."""
    if isinstance(error, DashboardError):
        return str(error)
    return f"{path.name} has an unexpected structure ({type(error).__name__}: {error})."


def _read(kind: type[_Kind], path: Path, faults: list[str]) -> _Kind | None:
    """What the file holds, None where there is none or where it is damaged, which `faults` tells."""
    try:
        return structured.read(kind, path)
    except DashboardError as error:
        faults.append(fault_of(path, error))
        return None


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
        """What somebody should still do something about, and is not silenced; worst first."""
        return self._told(incident for incident in self.incidents if incident.is_open)

    def news(self, tonight: str) -> list[Incident]:
        """The incidents that the night `tonight` found, worst first."""
        return self._told(incident for incident in self.incidents if incident.found == tonight)

    def _told(self, incidents: Iterable[Incident]) -> list[Incident]:
        told = (incident for incident in incidents if incident.id not in self.silent)
        return sorted(told, key=lambda incident: (not incident.is_worse, -size_of(incident)))

    def open_moves(self) -> dict[str, tuple[Incident, Moved]]:
        """By series: what of it still stands, better or worse; of several incidents the newest."""
        moves: dict[str, tuple[Incident, Moved]] = {}
        for incident in self.incidents:
            if incident.state in OPEN_STATES and incident.kind != MACHINE:
                for moved in incident.moved:
                    if moved.recovered is None:
                        moves.setdefault(moved.series, (incident, moved))
        return moves


def size_of(incident: Incident) -> float:
    """How far its worst series moved, or the machine, as a fraction."""
    moved = [abs(series.effect) for series in incident.moved if series.worse or not incident.is_worse]
    return max(moved, default=abs(incident.size or 0.0))


def read_alerts(home: Home, now: datetime.datetime) -> Alerts:
    """What stat_alerts left of the last night it judged, and the incidents and silences as they are now."""
    path = home.output(SUBSYSTEM) / alerts.PAGE_FILE
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
class Scores:
    """All of them; `stamp` is the night that they are of ("" where there are none).

    `told` are the faults of the config that the subsystem told, `faults` what of its files cannot be read.
    history: every score that ever was.
    """

    stamp: str = ""
    scores: tuple[ScoreTonight, ...] = ()
    told: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    faults: tuple[str, ...] = ()
    history: tuple[ScoreHistory, ...] = ()

    def points(self, score: str) -> tuple[ScoredNight, ...]:
        """The nights of the score with this ID."""
        return next((history.points for history in self.history if history.id == score), ())


def read_scores(home: Home) -> Scores:
    """What the score subsystem left: tonight's scores, and their points over all nights."""
    faults: list[str] = []
    stored = _read(scores.Scores, home.output(SCORE) / scores.SCORES_FILE, faults)
    page = _read(ScorePage, home.output(SCORE) / scores.PAGE_FILE, faults) or ScorePage("", (), ())
    history = stored.scores if stored else ()
    return Scores(page.stamp, page.scores, page.faults, page.left_out, tuple(faults), history)


@dataclass(frozen=True)
class TelemetryRuns:
    """The runs of one night ("" where there is none)."""

    stamp: str = ""
    runs: tuple[TelemetryRun, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def disturbed(self) -> list[str]:
        """The experiments in whose run something was abnormal."""
        return [run.experiment for run in self.runs if run.abnormal]

    def of(self, experiment: str) -> TelemetryRun | None:
        return next((run for run in self.runs if run.experiment == experiment), None)


def read_telemetry(home: Home) -> TelemetryRuns:
    """What telemetry left."""
    faults: list[str] = []
    page = _read(TelemetryPage, home.output(TELEMETRY) / telemetry.PAGE_FILE, faults)
    return TelemetryRuns(page.stamp, page.runs, page.faults) if page else TelemetryRuns(faults=tuple(faults))


@dataclass(frozen=True)
class Deadlines:
    """Those that were ahead when they were written, nearest first."""

    coming: tuple[DeadlineAhead, ...] = ()
    faults: tuple[str, ...] = ()


def read_deadlines(home: Home, now: datetime.datetime) -> Deadlines:
    """Those that are still ahead of `now`, with a `url` only where it leads to a web page."""
    path = home.output(DEADLINE) / deadlines.DEADLINES_FILE
    faults: list[str] = []
    parsed = _read(DeadlinesAhead, path, faults)
    try:
        coming = [_shown(deadline) for deadline in (parsed.deadlines if parsed else ()) if _moment_of(deadline) > now]
    except ValueError as error:
        return Deadlines(faults=(fault_of(path, error),))
    return Deadlines(tuple(coming), tuple(faults))


def _moment_of(ahead: DeadlineAhead) -> datetime.datetime:
    return datetime.datetime.strptime(ahead.utc, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.UTC)


def _shown(ahead: DeadlineAhead) -> DeadlineAhead:
    """`left` as in "in 11 days", `words` its moment; of one that has no parts, `left` is all of its words."""
    safe = ahead.url if ahead.url.startswith(("https://", "http://")) else ""
    return replace(ahead, left=ahead.left or ahead.words, words=ahead.moment, url=safe)


@dataclass(frozen=True)
class PutAside:
    """What one decision is about, as it was given, and what it says: since or until when, by whom and why."""

    scope: str
    words: str

    def covers(self, experiment: str, series: Iterable[str]) -> bool:
        """Whether it is about the experiment, or about one of these series of it."""
        return any(fnmatch.fnmatch(name, self.scope) for name in (experiment, *series))


def read_retired(home: Home, stamp: str) -> list[PutAside]:
    """What is retired on that night, oldest first."""
    return [
        PutAside(note.scope, f"retired on {_day(note.place)} by {note.who}: {note.words}")
        for note in decisions.list_retired(home)
        if note.kind == "night" and note.place <= stamp
    ]


def read_muted(home: Home, stamp: str) -> list[PutAside]:
    """What is muted on that night, oldest first."""
    return [PutAside(each.pattern, _describe_silence(each)) for each in decisions.list_muted(home, iso_of(stamp))]


def _describe_silence(silence: Silence) -> str:
    why = f": {silence.words}" if silence.words else ""
    return f"muted until {_day(silence.until.replace('-', '').replace(':', ''))} by {silence.who}{why}"


def _day(stamp: str) -> str:
    return f"{parse_stamp(stamp):%-d %B %Y}"
