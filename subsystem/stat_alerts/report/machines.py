"""On which machines an incident's points moved, and on which they did not although that would have been seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from judging.table import Table

from report.standings import SeriesStanding
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Incident
from tvmdash.series import across
from tvmdash.stats.student import mean_interval
from tvmdash.verdict import OverMachines, Standing

FEWEST_COMBINED = 5
"""One number over machines is told from so many on."""
_MEASURED = {Standing.STEADY, Standing.BLIND, Standing.UNCHANGED, Standing.YOUNG, Standing.SUSPECT, Standing.MOVED}


def compare(table: Table, stands: Mapping[int, SeriesStanding], incidents: Sequence[Incident]) -> list[OverMachines]:
    """One for each incident whose points more than one machine measures tonight."""
    points: dict[str, list[int]] = {}
    for row, series in enumerate(table.rows):
        if series.machine:
            points.setdefault(across.point_of(series.experiment, series.metric, series.labels), []).append(row)
    rows = {series.key: row for row, series in enumerate(table.rows)}
    point_of = {row: rows_of for rows_of in points.values() for row in rows_of}
    found = (_compare(table, stands, incident, rows, point_of) for incident in incidents)
    return [item for item in found if item is not None]


def _compare(
    table: Table,
    stands: Mapping[int, SeriesStanding],
    incident: Incident,
    rows: Mapping[str, int],
    point_of: Mapping[int, Sequence[int]],
) -> OverMachines | None:
    moved = {
        rows[part.series]: part for part in incident.moved if part.series in rows and rows[part.series] in point_of
    }
    alike = dict.fromkeys(row for own in moved for row in point_of[own])
    on = _names(table, moved)
    least = min((abs(part.effect) for part in moved.values()), default=0.0)
    others = [row for row in alike if row in stands and stands[row].kind in _MEASURED and _name(table, row) not in on]
    calm = _names(table, [row for row in others if _would_show(stands[row], least)])
    unknown = [name for name in _names(table, others) if name not in calm]
    if len(on) + len(calm) + len(unknown) < 2:
        return None
    effects = _list_effects(moved, table)
    is_everywhere = not calm and not unknown
    combined = map(math.expm1, _combine(effects)) if len(effects) >= FEWEST_COMBINED and is_everywhere else ()
    name = ""
    if len({id(point_of[row]) for row in moved}) == 1:
        name = across.strip_host(table.rows[next(iter(moved))].name)
    return OverMachines(incident.id, tuple(on), tuple(calm), tuple(unknown), name, *combined)


def _would_show(stand: SeriesStanding, effect: float) -> bool:
    """Whether it did not move, and a change of this size would have been told."""
    return stand.kind is Standing.UNCHANGED or (
        stand.kind is Standing.STEADY and stand.visible is not None and stand.visible <= effect
    )


def _list_effects(moved: Mapping[int, Moved], table: Table) -> list[float]:
    """The mean logarithm of the change on each machine."""
    by_machine: dict[str, list[float]] = {}
    for row, part in moved.items():
        if part.relative and part.effect > -1:
            by_machine.setdefault(_name(table, row), []).append(math.log1p(part.effect))
    return [float(np.mean(logs)) for logs in by_machine.values()]


def _combine(effects: Sequence[float]) -> tuple[float, float, float]:
    """Their mean with the 95 % interval of Student's t: machines are drawn, so that they are what scatters."""
    low, high = mean_interval(effects)
    return float(np.mean(effects)), low, high


def _names(table: Table, rows: Sequence[int] | Mapping[int, object]) -> list[str]:
    return sorted({_name(table, row) for row in rows})


def _name(table: Table, row: int) -> str:
    return table.rows[row].machine
