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
    AlertsPage,
    AnnotationNote,
    Honesty,
    SeriesVerdict,
    StddevPage,
    StddevSeries,
)
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import MACHINE, OPEN_STATES, SUBSYSTEM, Incident
from tvmdash.verdict import Standing

LEDGER_VIEW = "incidents.json"


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
    return Alerts(
        night=parsed.night,
        series={series.id: series for series in parsed.series},
        silent=frozenset(incident.id for incident in parsed.incidents if incident.silent),
        honesty=parsed.honesty,
        annotations=parsed.annotations,
    )


def _by_rule(series: StddevSeries) -> SeriesVerdict:
    said = "alert" if series.alert else "quiet"
    return SeriesVerdict(
        series.id, series.name, said, series.reason, since="", noise_grade="", noise=None,
        smallest_visible_change=None, control=False, standing=Standing.STEADY, effect=None,
    )  # fmt: skip


def _incidents(view: Mapping[str, Any], path: Path, faults: list[str]) -> Sequence[Incident]:
    incidents = []
    try:
        for index, entry in enumerate(objects(view["incidents"])):
            incidents.append(Incident.from_json(entry, path, f"$.incidents[{index}]"))
    except (*parsing.WRONG, DashboardError) as error:  # those before a bad one are kept
        faults.append(parsing.fault_of(path, error))
    return incidents
