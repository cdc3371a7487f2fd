"""Incidents opened, joined and confirmed by a night's decisions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judging.judge import FleetNight, Judged, Options
from judging.recovery import BACK
from judging.table import Table, finite
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Joined, Moved, Opened
from tvmdash.incidents.ledger import CHANGE, DETECTOR, FALSE_ALARM, FIXED, MACHINE, NEW, Event, Incident, Ledger, iso_of
from tvmdash.judge.history.cause import Cause, of_many
from tvmdash.judge.history.series import Decision, SeriesState

JOIN_NIGHTS = 1
"""Cuts this near to each other, on the same version, are one change: so exact is the culprit's place."""
LATEST_JOIN = 60


@dataclass(frozen=True)
class _Hit:
    """One series that moved tonight."""

    row: int
    decision: Decision
    fleet: FleetNight
    kind: str

    @property
    def cut(self) -> int:
        assert self.decision.cut is not None
        return self.decision.cut

    @property
    def cause(self) -> Cause:
        return self.decision.cause or Cause()

    @property
    def after(self) -> int:
        return self.decision.after if self.decision.after is not None else max(0, self.cut - 1)


def events_of(table: Table, judged: Judged, ledger: Ledger, options: Options) -> list[Event]:
    """Return tonight's events; `ledger` is as before tonight's decisions."""
    at = iso_of(table.stamps[judged.night])
    events: list[Event] = []
    for fleet in judged.fleets:
        if fleet.decided.machine is not None:
            opened = _machine(table, judged.night, fleet)
            events += [opened, *_undone(opened, ledger)]
    hits = [
        _Hit(row, decision, fleet, CHANGE if decision.kind == "alert" else MACHINE)
        for row, decision, fleet in judged.decisions()
        if decision.kind != "quiet" and decision.cut is not None and fleet.decided.machine is None
    ]
    hits.sort(key=lambda hit: (-abs(hit.decision.z or 0), table.rows[hit.row].key))
    known = ledger
    groups: list[tuple[Incident | None, list[_Hit]]] = []
    for hit in hits:
        group = next((members for members in groups if members[0] is None and _alike(table, members[1][0], hit)), None)
        incident = None if group else _to_join(table, judged.night, known, hit)
        if group is None and incident is not None:
            group = next(
                (members for members in groups if members[0] is not None and members[0].id == incident.id), None
            )
        if group is None:
            group = (incident, [])
            groups.append(group)
        group[1].append(hit)
    for incident, members in groups:
        moved = tuple(_moved(table, hit) for hit in members)
        if incident is not None:
            events.append(Event.of(at, DETECTOR, ledgers.JOINED, incident.id, Joined(moved)))
        else:
            events.append(_opened(table, at, members, moved, judged.night))
            events += _confirmed_tonight(events[-1], members, judged.night)
    return events + _confirmations(table, judged, ledger, options)


def _alike(table: Table, first: _Hit, hit: _Hit) -> bool:
    same = table.version(hit.row, first.cut) == table.version(first.row, first.cut)
    return first.kind == hit.kind and abs(first.cut - hit.cut) <= JOIN_NIGHTS and same


def _to_join(table: Table, night: int, ledger: Ledger, hit: _Hit) -> Incident | None:
    """Find the incident that began where this series moved, on the same version."""
    for incident in reversed(list(ledger.incidents.values())):
        is_over = incident.into or incident.state in {FIXED, FALSE_ALARM}
        if incident.kind != hit.kind or incident.size is not None or incident.is_exact or is_over:
            continue
        begin = table.index_of(incident.begin)
        recent = night - table.index_of(incident.found) <= LATEST_JOIN
        if (
            recent
            and abs(begin - hit.cut) <= JOIN_NIGHTS
            and table.version(hit.row, begin) == incident.versions[1]
            and table.rows[hit.row].key not in {moved.series for moved in incident.moved}
        ):
            return incident
    return None


def _moved(table: Table, hit: _Hit) -> Moved:
    series, decision = table.rows[hit.row], hit.decision
    effect = decision.effect or 0.0
    before = _level_before(table, hit)
    relative = decision.state.unit is None
    after = before * (1 + effect) if relative else before + effect * (decision.state.unit or 1.0)
    return Moved(
        series.key, series.name, series.metric, series.unit, series.is_regression(effect, before, after), before, after,
        effect, decision.effect_low, decision.effect_high, relative, z=decision.z, nights=decision.nights,
        again_new=sum(rerun.night >= hit.cut for rerun in decision.reruns),
        again_old=sum(rerun.night < hit.cut for rerun in decision.reruns), kind=series.kind, workload=series.workload,
        experiment=series.experiment, machine=series.machine,
    )  # fmt: skip


def _level_before(table: Table, hit: _Hit) -> float:
    """Return the median of the last 60 nights of the level before the cut."""
    state = hit.fleet.before.series.get(table.rows[hit.row].key, SeriesState())
    first = max(state.start, hit.cut - 60, table.offset)
    values = finite(table.values[hit.row, first - table.offset : hit.cut - table.offset])
    if not len(values):  # another step ended where this one begins
        own = finite(table.values[hit.row, hit.cut - table.offset :])
        return float(np.median(own)) / (1 + (hit.decision.effect or 0.0))
    return float(np.median(values))


def _opened(table: Table, at: str, members: Sequence[_Hit], moved: tuple[Moved, ...], night: int) -> Event:
    first = members[0]
    cause = of_many([hit.cause for hit in members])
    opened = Opened(
        kind=first.kind,
        begin=table.stamps[first.cut],
        after=table.stamps[first.after],
        found=table.stamps[night],
        versions=(table.version(first.row, first.after), table.version(first.row, first.cut)),
        artifacts=(table.artifact(first.row, first.after), table.artifact(first.row, first.cut)),
        blame=cause.blame,
        cause=cause,
        moved=moved,
        fleet=first.fleet.name,
    )
    name = _name(opened.begin, [table.rows[hit.row].key for hit in members])
    return Event.of(at, DETECTOR, ledgers.OPENED, name, opened)


def _confirmed_tonight(opened: Event, members: Sequence[_Hit], night: int) -> Iterator[Event]:
    """Confirm an incident whose shift re-runs found the same night."""
    again = [hit.decision for hit in members if hit.decision.is_reproduced]
    if opened.data["kind"] == CHANGE and again:
        reason = f"{len(again)} of {len(members)} series measured again the same night: the difference is there"
        yield ledgers.changed(opened.incident, ledgers.CONFIRMED, at=opened.at, who=DETECTOR, words=reason)


def _machine(table: Table, night: int, fleet: FleetNight) -> Event:
    machine, cut = fleet.decided.machine, fleet.decided.cut
    assert machine is not None
    assert cut is not None
    row = next(iter(fleet.rows.values()))
    after = max(0, cut - 1)
    opened = Opened(
        kind=MACHINE,
        begin=table.stamps[cut],
        after=table.stamps[after],
        found=table.stamps[night],
        versions=(table.version(row, after), table.version(row, cut)),
        artifacts=(table.artifact(row, after), table.artifact(row, cut)),
        blame=machine.blame,
        cause=machine.cause,
        notes=(f"{100 * machine.share:.0f} % of {machine.series} series went the same way",),
        size=math.expm1(machine.shift),
        fleet=fleet.name,
        fleet_name=table.rows[row].fleet_name,
        fleet_kind=table.rows[row].fleet_kind,
        direction=table.direction(fleet.rows.values()),
        machine=table.machine(fleet.rows.values()),
    )
    return Event.of(iso_of(table.stamps[night]), DETECTOR, ledgers.OPENED, _name(opened.begin, [fleet.name]), opened)


def _undone(opened: Event, ledger: Ledger) -> Iterator[Event]:
    """End the open incidents of the same fleet that this move of all its series takes back."""
    for incident in ledger.open():
        same = incident.kind == MACHINE and incident.fleet == opened.data["fleet"]
        if same and incident.size and abs(incident.size + opened.data["size"]) < BACK * abs(incident.size):
            reason, end = f"everything moved back: {opened.incident}", opened.data["begin"]
            yield ledgers.changed(incident.id, ledgers.FIXED, at=opened.at, who=DETECTOR, words=reason, end=end)


def _name(begin: object, keys: Sequence[str]) -> str:
    digest = hashlib.sha256(json.dumps([begin, sorted(keys)]).encode()).hexdigest()[:4]
    return f"i{str(begin)[:8]}-{digest}"


def _confirmations(table: Table, judged: Judged, ledger: Ledger, options: Options) -> list[Event]:
    """Confirm new incidents whose level still stands after `confirm_nights`."""
    at, events = iso_of(table.stamps[judged.night]), []
    rows = {series.key: row for row, series in enumerate(table.rows)}
    for incident in ledger.incidents.values():
        if incident.kind != CHANGE or incident.state != NEW:
            continue
        begin = max(table.index_of(incident.begin), table.offset)
        for moved in incident.moved:
            if moved.series not in rows or moved.recovered:
                continue
            values = finite(table.values[rows[moved.series], begin - table.offset : judged.night + 1 - table.offset])
            scale = table.scale_since(rows[moved.series], begin, moved.before)
            shift = (moved.after - moved.before) * scale
            if (
                len(values) >= options.confirm_nights
                and (np.median(values) - moved.before * scale) / (shift or 1) >= 0.5
            ):
                reason = f"it still stands after {len(values)} nights"
                events.append(ledgers.changed(incident.id, ledgers.CONFIRMED, at=at, who=DETECTOR, words=reason))
                break
    return events
