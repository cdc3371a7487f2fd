"""Slow creep: tonight's level against that of the last release and of 30, 90 and 365 nights ago.

Steps that were told, breaks and what the whole fleet did are taken out first. Tested every seventh night, and a series
that was told is compared with nothing older than that, so that one creep is told again only when it has gone on.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from judging.judge import Options
from judging.memory import BREAK, KnownShift, Memory
from judging.table import Table
from tvmdash.incidents.events import Moved, Opened
from tvmdash.incidents.ledger import CREEP, DETECTOR, OPENED, Event, Incident, Ledger, iso_of
from tvmdash.judge.history.noise import MAD_TO_SD, FloatArray, row_medians

ANCHORS = (30, 90, 365)
EVERY, WINDOW, LEAST = 7, 20, 12
ERRORS = 6.0
LEAST_FLEET = 8
REACH = ANCHORS[-1] + WINDOW + EVERY


@dataclass(frozen=True)
class _Drift:
    """The distance (logarithm) of a series from its level at an anchor, beyond its steps, with its standard error."""

    row: int
    anchor: int
    size: float
    error: float
    level: float


def events_of(table: Table, night: int, memory: Memory, ledger: Ledger, options: Options) -> list[Event]:
    """Open at most one incident a fleet about series that creep, and one about a fleet that creeps as a whole."""
    if night % EVERY:
        return []
    events = []
    for name, rows in table.fleets(night).items():
        largest: dict[int, _Drift] = {}
        whole: tuple[int, float] | None = None
        for anchor in _anchors(table, night, options):
            judged = [row for row in rows if row not in table.chained]
            drifts = list(_drifts(table, judged, anchor, night, memory, ledger))
            common = float(np.median([drift.size for drift in drifts])) if len(drifts) >= LEAST_FLEET else 0.0
            if abs(common) >= options.creep and not _was_reported(ledger, name, table, anchor):
                whole = (anchor, common)
            for drift in drifts:
                own = drift.size - common
                sure = min(abs(own), abs(drift.size)) >= options.creep and abs(own) >= ERRORS * drift.error
                # the first of a row is compared with itself, hence the small number
                if sure and own * drift.size > 0 and abs(drift.size) > abs(largest.get(drift.row, drift).size) - 1e-12:
                    largest[drift.row] = drift
        if whole is not None:
            events.append(_event(table, night, name, whole[0], (), whole[1]))
        if largest:
            moved = [_moved(table, drift) for _, drift in sorted(largest.items())]
            events.append(_event(table, night, name, min(drift.anchor for drift in largest.values()), moved, None))
    return events


def _anchors(table: Table, night: int, options: Options) -> list[int]:
    releases = [
        annotation.night(dict.fromkeys(table.stamps, ""))
        for annotation in options.annotations
        if annotation.kind == "release"
    ]
    known = [table.index_of(stamp) for stamp in releases if stamp and table.index_of(stamp) <= night - 30]
    back = [night - nights for nights in ANCHORS]
    return sorted({anchor for anchor in (*back, *known[-1:]) if anchor - table.offset >= WINDOW // 2})


def _drifts(
    table: Table, rows: Sequence[int], anchor: int, night: int, memory: Memory, ledger: Ledger
) -> Iterator[_Drift]:
    """Measure each row that can be compared with the anchor."""
    reported = _reported_since(ledger, table, anchor)
    steps = {row: _steps_since(table, row, anchor, memory) for row in rows if table.rows[row].key not in reported}
    whole = [row for row, known in steps.items() if not any(step.kind == BREAK for step in known)]
    then = _windows(table, whole, anchor - WINDOW // 2, anchor + WINDOW // 2, steps)
    now = _windows(table, whole, night + 1 - WINDOW, night + 1, steps)
    counts = [np.isfinite(part).sum(axis=1) for part in (then, now)]
    levels = [row_medians(part) for part in (then, now)]
    residual = np.concatenate([part - level[:, None] for part, level in zip((then, now), levels, strict=True)], axis=1)
    scale = np.maximum(MAD_TO_SD * row_medians(np.abs(residual)), 0.0005)
    for at in ((counts[0] >= LEAST) & (counts[1] >= LEAST)).nonzero()[0]:
        error = 1.25 * float(scale[at]) * math.sqrt(2 * (1 / counts[0][at] + 1 / counts[1][at]))
        yield _Drift(whole[at], anchor, float(levels[1][at] - levels[0][at]), error, float(levels[0][at]))


def _reported_since(ledger: Ledger, table: Table, anchor: int) -> set[str]:
    """Return the series of which a creep was told after the anchor."""
    recent = (
        incident
        for incident in ledger.incidents.values()
        if incident.kind == CREEP and table.index_of(incident.found) > anchor
    )
    return {moved.series for incident in recent for moved in incident.moved}


def _steps_since(table: Table, row: int, anchor: int, memory: Memory) -> list[KnownShift]:
    known = memory.steps.get(table.rows[row].key, ())
    return [step for step in known if table.index_of(step.stamp) > anchor - WINDOW // 2]


def _windows(
    table: Table, rows: Sequence[int], first: int, stop: int, steps: Mapping[int, Sequence[KnownShift]]
) -> FloatArray:
    """Return the logarithms of the nights first..stop-1 without the known steps, a line a row; NaN for none.

    A row with a value that is not positive has none at all.
    """
    nights = np.arange(max(first, table.offset), stop)
    values = table.values[np.ix_(np.array(rows, np.int64), nights - table.offset)]
    values = np.where(np.isfinite(values), values, np.nan)
    values[(values <= 0).any(axis=1)] = np.nan
    x = np.log(values)
    for at, row in enumerate(rows):
        for step in steps[row]:
            x[at, nights >= table.index_of(step.stamp)] -= step.size
    return np.asarray(x)


def _was_reported(ledger: Ledger, fleet: str, table: Table, anchor: int) -> bool:
    def same(incident: Incident) -> bool:
        return incident.kind == CREEP and incident.fleet == fleet and incident.size is not None

    return any(same(incident) and table.index_of(incident.found) > anchor for incident in ledger.incidents.values())


def _moved(table: Table, drift: _Drift) -> Moved:
    series = table.rows[drift.row]
    before, effect = math.exp(drift.level), math.expm1(drift.size)
    after = before * (1 + effect)
    worse = series.is_regression(effect, before, after)
    low, high = math.expm1(drift.size - 1.96 * drift.error), math.expm1(drift.size + 1.96 * drift.error)
    return Moved(
        series.key, series.name, series.metric, series.unit, worse, before, after, effect, low, high,
        z=drift.size / drift.error, kind=series.kind, workload=series.workload,
        experiment=series.experiment, machine=series.machine,
    )  # fmt: skip


def _event(table: Table, night: int, fleet: str, anchor: int, moved: Sequence[Moved], size: float | None) -> Event:
    rows = [index for index, series in enumerate(table.rows) if series.fleet == fleet]
    row = rows[0]
    opened = Opened(
        kind=CREEP,
        begin=table.stamps[anchor],
        after=table.stamps[anchor],
        found=table.stamps[night],
        versions=(table.version(row, anchor), table.version(row, night)),
        blame="unknown",
        moved=tuple(moved),
        size=None if size is None else math.expm1(size),
        fleet=fleet,
        fleet_name=table.rows[row].fleet_name,
        fleet_kind=table.rows[row].fleet_kind,
        direction=table.direction(rows),
        machine=table.machine(rows),
    )
    digest = hashlib.sha256(f"{fleet} {size is None}".encode()).hexdigest()[:4]
    name = f"c{table.stamps[night][:8]}-{digest}"
    return Event.of(iso_of(table.stamps[night]), DETECTOR, OPENED, name, opened)
