"""What stat_alerts left: the verdict on each series, the ledger of incidents, the detector's own error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inputs import parsing
from inputs.parsing import number, objects, stamp, text
from tvmdash.dashboard_info import Home
from tvmdash.detect.reason import Reason
from tvmdash.errors import DashboardError
from tvmdash.incidents.ledger import MACHINE, OPEN_STATES, SUBSYSTEM, Incident, Moved
from tvmdash.verdict import Standing

PAGE_FILE, LEDGER_VIEW = "page.json", "incidents.json"


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
        return sorted((one for one in self.incidents if one.is_open and one.id not in self.silent), key=_rank)

    def news(self, tonight: str) -> list[Incident]:
        """The incidents that the night `tonight` found, worst first."""
        return sorted((one for one in self.incidents if one.found == tonight and one.id not in self.silent), key=_rank)

    def open_moves(self) -> dict[str, tuple[Incident, Moved]]:
        """By series: what of it still stands, better or worse; of several incidents the newest."""
        found: dict[str, tuple[Incident, Moved]] = {}
        for one in self.incidents:
            if one.state in OPEN_STATES and one.kind != MACHINE:
                for moved in one.moved:
                    if moved.recovered is None:
                        found.setdefault(moved.series, (one, moved))
        return found


def _rank(incident: Incident) -> tuple[bool, float]:
    return not incident.is_worse, -size_of(incident)


def size_of(incident: Incident) -> float:
    """How far its worst series moved, or the machine, as a fraction."""
    moved = [abs(one.effect) for one in incident.moved if one.worse or not incident.is_worse]
    return max(moved, default=abs(incident.size or 0.0))


def read_alerts(home: Home) -> Alerts:
    """What stands there; a file that is missing or damaged costs its own part only."""
    folder = home.output(SUBSYSTEM)
    faults: list[str] = []
    page = _read(folder / PAGE_FILE, faults)
    alerts = Alerts()
    if page is not None:
        try:
            alerts = _parse(page)
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


def _parse(page: Mapping[str, Any]) -> Alerts:
    if "rule" in page:  # the ancestor's rule has no verdict on noise, and keeps no ledger
        kinds = {True: "alert", False: "quiet"}
        series = {
            text(one["id"]): Verdict(
                text(one["name"]), kinds[bool(one["alert"])], text(one["reason"]), "", "", None, None, control=False
            )
            for one in objects(page["series"])
        }
        return Alerts(stamp(page["night"]), series)
    honesty: Mapping[str, Any] = page["honesty"]
    return Alerts(
        night=stamp(page["night"]),
        series={text(one["id"]): _verdict(one) for one in objects(page["series"])},
        silent=frozenset(text(one["id"]) for one in objects(page["incidents"]) if one.get("silent")),
        target=number(honesty.get("target_per_1000")),
        rates=tuple(_rate(kind, one) for kind, one in honesty.items() if isinstance(one, dict)),
        annotations=tuple(map(_note, objects(page["annotations"]))),
    )


def _verdict(one: Mapping[str, Any]) -> Verdict:
    return Verdict(
        text(one["name"]),
        text(one["verdict"]),
        text(one["reason"]),
        stamp(one["since"]),
        text(one["noise_grade"]),
        number(one["noise"]),
        number(one["smallest_visible_change"]),
        control=bool(one["control"]),
        standing=Standing(one["standing"]),
        effect=number(one["effect"]),
        why=Reason.from_json(one["why"]) if one.get("why") else None,
    )


def _rate(kind: str, one: Mapping[str, Any]) -> Rate:
    return Rate(
        text(kind), int(one["nights"]), int(one["alerts"]), number(one["per_1000"]), number(one["at_most_per_1000"])
    )


def _note(one: Mapping[str, Any]) -> Note:
    night = one["night"]
    return Note(
        None if night is None else stamp(night),
        text(one["kind"]),
        text(one["words"]),
        text(one["scope"]),
        is_break=bool(one["break"]),
    )


def _incidents(view: Mapping[str, Any], path: Path, faults: list[str]) -> Sequence[Incident]:
    found = []
    try:
        for place, entry in enumerate(objects(view["incidents"])):
            found.append(Incident.from_json(entry, path, f"$.incidents[{place}]"))
    except (*parsing.WRONG, DashboardError) as error:  # those before a bad one are kept
        faults.append(parsing.fault_of(path, error))
    return found
