"""Series of open incidents that are back where they were."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from judging.judge import Judged, begun_anew
from judging.memory import ENVIRONMENT, RECOVERED, WHOLE, KnownShift, Memory
from judging.table import Table
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved, Recovered
from tvmdash.incidents.headline import shorten
from tvmdash.incidents.ledger import CHANGE, DETECTOR, Event, Incident, Ledger, iso_of
from tvmdash.judge.history.cause import MEASURED_AGAIN, PAIRED
from tvmdash.judge.history.fleet.fleet import FleetState
from tvmdash.judge.history.series import SeriesState
from tvmdash.judge.home import Decision, interval
from tvmdash.judge.model import FoundStep
from tvmdash.text import format_percent

BACK_NIGHTS, LEAST_BACK = 5, 4
BACK = 0.4
"""Back is who is nearer than this share of the shift to where it was."""


def recoveries(table: Table, night: int, memory: Memory, ledger: Ledger) -> tuple[Memory, list[Event]]:
    """End series of open incidents that are back where they were: their level begins anew, without an alert."""
    events: list[Event] = []
    rows = {series.key: row for row, series in enumerate(table.rows)}
    fleets = dict(memory.fleets)
    steps = {}
    for incident in ledger.open():
        back: dict[str, int] = {}
        for moved in incident.moved:
            lost = moved.worse and not moved.recovered and not moved.is_exact
            in_turn = moved.series in rows and _is_in_turn(table, rows[moved.series], night)
            if incident.kind == CHANGE and lost and moved.series in rows and not in_turn:
                since = _back_since(table, rows[moved.series], night, incident, moved, memory)
                if since is not None:
                    back[moved.series] = since
        for key, since in back.items():
            series = table.rows[rows[key]]
            fleet = fleets.get(series.fleet, FleetState())
            state = fleet.series.get(key, SeriesState())
            if state.start < since:
                anew = begun_anew(table.history(rows[key], night), state, since)
                fleets[series.fleet] = replace(fleet, series={**fleet.series, key: anew})
            effect = next(moved.effect for moved in incident.moved if moved.series == key)
            steps[key] = KnownShift(table.stamps[since], -math.log1p(effect) if effect > -1 else 0.0, RECOVERED)
        if back:
            events += recovered(table, night, incident, back, rows)
    return replace(memory, fleets=fleets).with_steps(steps), events


def _is_in_turn(table: Table, row: int, night: int) -> bool:
    """Tell whether the night's pairs place the row."""
    return row in table.paired and math.isfinite(table.ratios.logs[row, night - table.offset])


def taken_back(table: Table, judged: Judged, ledger: Ledger) -> tuple[Memory, list[Event]]:
    """End the open steps of series measured in turn that are none by now.

    Tonight's pairs take them back, their code is what it was before, or what was measured since is against them.
    """
    rows = {series.key: row for row, series in enumerate(table.rows)}
    back_of: dict[str, dict[str, int]] = {}
    exactly: dict[str, int] = {}
    steps = {}
    withdrawn: dict[str, dict[str, FoundStep]] = {}
    for row, said in judged.beside.items():
        if said.incident not in ledger.incidents or said.found is None:
            continue
        if said.said in {Decision.FIXED, Decision.WITHDRAWN}:
            key = table.rows[row].key
            is_same = said.found.error == 0
            since = judged.night if is_same else said.cut
            back_of.setdefault(said.incident, {})[key] = since
            exactly[said.incident] = exactly.get(said.incident, 0) + is_same
            size = said.found.shift
            if said.said is Decision.WITHDRAWN:
                withdrawn.setdefault(said.incident, {})[key] = said.found
                moved = ledger.incidents[said.incident].moved
                (size,) = (-math.log1p(one.effect) for one in moved if one.series == key)
            steps[key] = KnownShift(table.stamps[since], size, RECOVERED)
    events = list(_reopened(table, judged, ledger))
    for name, back in back_of.items():
        incident = ledger.incidents[name]
        events += recovered(table, judged.night, incident, back, rows, exactly[name], withdrawn.get(name, {}))
    ended = {table.rows[row].key: said.cut for row, said in judged.beside.items() if said.said is Decision.REOPENED}
    return judged.memory.without_ends(ended, table.stamps).with_steps(steps), events


def _reopened(table: Table, judged: Judged, ledger: Ledger) -> Iterator[Event]:
    """Reopen incidents of series that were called back and, as was measured since, are not."""
    series_of: dict[str, list[str]] = {}
    for row, said in judged.beside.items():
        if said.said is Decision.REOPENED:
            series_of.setdefault(said.incident, []).append(table.rows[row].key)
    at = iso_of(table.stamps[judged.night])
    for name, series in series_of.items():
        incident = ledger.incidents[name]
        yield Event.of(at, DETECTOR, ledgers.RECOVERED, name, Recovered(tuple(sorted(series)), ""))
        if not incident.is_open:
            before = next(change.state for change in reversed(incident.changes) if change.state in ledgers.OPEN_STATES)
            words = f"not back after all: {len(series)} of {len(incident.moved)} series still are where it moved them"
            yield ledgers.changed(name, before, at=at, who=DETECTOR, words=words)


def _back_since(table: Table, row: int, night: int, incident: Incident, moved: Moved, memory: Memory) -> int | None:
    """Find the night since which the last values are near to where the series was before the incident."""
    begin = table.index_of(incident.begin)
    first = max(begin, table.offset, night + 1 - 3 * BACK_NIGHTS)
    nights = np.arange(first, night + 1)
    values = table.values[row, nights - table.offset]
    nights, values = nights[np.isfinite(values)][-BACK_NIGHTS:], values[np.isfinite(values)][-BACK_NIGHTS:]
    if len(values) < LEAST_BACK or nights[-1] != night:
        return None
    steps = memory.steps.get(moved.series, ())
    machine = sum(step.size for step in steps if step.kind in (ENVIRONMENT, WHOLE) and step.stamp > incident.begin)
    factor = math.exp(machine) if moved.relative else 1.0
    factor = table.scale_since(row, begin, moved.before) if row in table.paired else factor
    shift = (moved.after - moved.before) * factor
    if shift == 0:
        return None
    share = (values - moved.before * factor) / shift
    near = share < 0.5
    if near[-LEAST_BACK:].all() and float(np.median(share[-LEAST_BACK:])) < BACK:
        return int(nights[len(near) - LEAST_BACK if not near.all() else 0])
    return None


def recovered(
    table: Table,
    night: int,
    incident: Incident,
    back: Mapping[str, int],
    rows: Mapping[str, int],
    exactly: int = 0,
    withdrawn: Mapping[str, FoundStep] | None = None,
) -> Iterator[Event]:
    """Tell that series of an incident are `back` since a night each; end it where none is left.

    exactly: how many of them run byte for byte what they ran before it. withdrawn: what all pairs by now say of
    those that never moved; where that is all of them, the incident was none.
    """
    at, since = iso_of(table.stamps[night]), min(back.values())
    series = sorted(back)
    back_again = Recovered(tuple(series), table.stamps[since])
    yield Event.of(at, DETECTOR, ledgers.RECOVERED, incident.id, back_again)
    left = [moved for moved in incident.moved if moved.worse and not moved.recovered and moved.series not in back]
    if left:
        return
    row = rows[series[0]]
    measured = incident.cause is not None and incident.cause.evidence in {MEASURED_AGAIN, PAIRED}
    same = None if measured else table.same(table.rows[row].experiment, [max(0, since - 1), since])
    what = "artifact" if same is not None and same.recorded else "TVM"
    day, version = iso_of(table.stamps[since])[:10], shorten(table.version(row, since) or "unknown")
    reason = (
        f"went back in the night {day} on the same {what}, {version}: it was not TVM's"
        if same
        else f"back where it was since the night {day}, TVM {version}"
    )
    if exactly:
        reason += f"; {exactly} of {len(back)} series run exactly the code of before"
    never = withdrawn or {}
    was_none = never.keys() >= {moved.series for moved in incident.moved if moved.worse}
    if was_none:
        found = max(never.values(), key=lambda found: abs(found.shift))
        low, high = interval(found)
        reason = (
            f"it was none: all pairs by now say {format_percent(found.effect)} "
            f"({format_percent(low)} to {format_percent(high)}) since it began"
        )
    state = ledgers.FALSE_ALARM if same or was_none else ledgers.FIXED
    yield ledgers.changed(incident.id, state, at=at, who=DETECTOR, words=reason, end=table.stamps[since])
