"""What stat_alerts left: the verdict on each series, the ledger of incidents, the detector's own error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inputs import parsing
from inputs.parsing import objects
from tvmdash import structured
from tvmdash.contracts.alerts import (
    PAGE_FILE,
    AlertRate,
    AlertsPage,
    SeriesBeside,
    SeriesVerdict,
    StddevPage,
    StddevSeries,
)
from tvmdash.dashboard_info import Home
from tvmdash.detect.reason import Reason
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import MACHINE, OPEN_STATES, SUBSYSTEM, Incident
from tvmdash.verdict import Standing

LEDGER_VIEW = "incidents.json"


@dataclass(frozen=True)
class Verdict:
    """What the detector says of a series. noise: robust standard deviation, as a fraction of the value.

    visible: the smallest relative change that it would tell within a week in four cases of five. effect: of a suspect,
    how far it is from its level, as a fraction. why: None for an exact number, and in files of long ago.
    """

    name: str
    kind: str
    reason: str
    since: str
    grade: str
    noise: float | None
    visible: float | None
    control: bool
    standing: Standing = Standing.STEADY
    effect: float | None = None
    why: Reason | None = None
    beside: SeriesBeside | None = None


@dataclass(frozen=True)
class Rate:
    """How often the detector alerts where nothing happened, in `nights` metric-nights; rates are per 1000."""

    kind: str
    nights: int
    alerts: int
    rate: float | None
    at_most: float | None


@dataclass(frozen=True)
class Note:
    """An annotation, with the night that it is about where one is known."""

    night: str | None
    kind: str
    words: str
    scope: str
    is_break: bool


@dataclass(frozen=True)
class Alerts:
    """Everything of stat_alerts; `night` is the one that was judged last ("" where none was).

    faults: what of it cannot be read, in words. incidents: newest first. silent: the IDs nobody is told about.
    """

    night: str = ""
    series: Mapping[str, Verdict] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    silent: frozenset[str] = frozenset()
    target: float | None = None
    rates: tuple[Rate, ...] = ()
    annotations: tuple[Note, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def open(self) -> list[Incident]:
        """What somebody should still do something about, and is not silenced; worst first."""
        return sorted(
            (incident for incident in self.incidents if incident.is_open and incident.id not in self.silent), key=_rank
        )

    def news(self, tonight: str) -> list[Incident]:
        """The incidents that the night `tonight` found, worst first."""
        return sorted(
            (incident for incident in self.incidents if incident.found == tonight and incident.id not in self.silent),
            key=_rank,
        )

    def open_moves(self) -> dict[str, tuple[Incident, Moved]]:
        """By series: what of it still stands, better or worse; of several incidents the newest."""
        moves: dict[str, tuple[Incident, Moved]] = {}
        for incident in self.incidents:
            if incident.state in OPEN_STATES and incident.kind != MACHINE:
                for moved in incident.moved:
                    if moved.recovered is None:
                        moves.setdefault(moved.series, (incident, moved))
        return moves


def _rank(incident: Incident) -> tuple[bool, float]:
    return not incident.is_worse, -size_of(incident)


def size_of(incident: Incident) -> float:
    """How far its worst series moved, or the machine, as a fraction."""
    moved = [abs(series.effect) for series in incident.moved if series.worse or not incident.is_worse]
    return max(moved, default=abs(incident.size or 0.0))


def read_alerts(home: Home) -> Alerts:
    """What stands there; a file that is missing or damaged costs its own part only."""
    folder = home.output(SUBSYSTEM)
    faults: list[str] = []
    page = _read(folder / PAGE_FILE, faults)
    alerts = Alerts()
    if page is not None:
        try:
            alerts = _parse(page, folder / PAGE_FILE)
        except (*parsing.WRONG, DashboardError) as error:
            faults.append(parsing.fault_of(folder / PAGE_FILE, error))
    view = _read(folder / LEDGER_VIEW, faults)
    incidents = list(_incidents(view, folder / LEDGER_VIEW, faults)) if view is not None else []
    return Alerts(**{**alerts.__dict__, "incidents": tuple(reversed(incidents)), "faults": tuple(faults)})


def _read(path: Path, faults: list[str]) -> Mapping[str, Any] | None:
    try:
        return parsing.read_object(path)
    except DashboardError as error:
        faults.append(parsing.fault_of(path, error))
        return None


def _parse(page: Mapping[str, Any], path: Path) -> Alerts:
    if "rule" in page:
        by_rule = structured.from_json(StddevPage, page, path)
        return Alerts(by_rule.night, {series.id: _by_rule(series) for series in by_rule.series})
    parsed = structured.from_json(AlertsPage, page, path)
    rates = {"shuffled": parsed.honesty.shuffled, "unchanged": parsed.honesty.unchanged}
    return Alerts(
        night=parsed.night,
        series={series.id: _verdict(series) for series in parsed.series},
        silent=frozenset(incident.id for incident in parsed.incidents if incident.silent),
        target=parsed.honesty.target_per_1000,
        rates=tuple(_rate(kind, rate) for kind, rate in rates.items() if rate is not None),
        annotations=tuple(
            Note(note.night, note.kind, note.words, note.scope, note.is_break) for note in parsed.annotations
        ),
    )


def _by_rule(series: StddevSeries) -> Verdict:
    return Verdict(series.name, "alert" if series.alert else "quiet", series.reason, "", "", None, None, control=False)


def _verdict(series: SeriesVerdict) -> Verdict:
    return Verdict(
        series.name,
        series.verdict,
        series.reason,
        series.since,
        series.noise_grade,
        series.noise,
        series.smallest_visible_change,
        series.control,
        series.standing,
        series.effect,
        series.why,
        series.beside,
    )


def _rate(kind: str, rate: AlertRate) -> Rate:
    return Rate(kind, rate.nights, rate.alerts, rate.per_1000, rate.at_most_per_1000)


def _incidents(view: Mapping[str, Any], path: Path, faults: list[str]) -> Sequence[Incident]:
    incidents = []
    try:
        for index, entry in enumerate(objects(view["incidents"])):
            incidents.append(Incident.from_json(entry, path, f"$.incidents[{index}]"))
    except (*parsing.WRONG, DashboardError) as error:  # those before a bad one are kept
        faults.append(parsing.fault_of(path, error))
    return incidents
