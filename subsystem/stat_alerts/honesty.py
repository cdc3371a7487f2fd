"""How often the detector alerts where nothing happened: on this home's own shuffled and known-unchanged history."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from judging import Judged
from memory import BREAK, WHOLE
from table import Table

from tvmdash import common
from tvmdash.change_noise import FloatArray
from tvmdash.change_points import change_points
from tvmdash.change_series import History, Settings
from tvmdash.errors import DashboardError

HONESTY_FILE = "honesty.json"
TARGET = 0.2
KEPT_NIGHTS = 90
LEAST, MOST = 60, 200
SHUFFLED, UNCHANGED = "shuffled", "unchanged"


@dataclass(frozen=True)
class Rate:
    """`alerts` in so many metric-nights without any change; rates are per 1000."""

    nights: int = 0
    alerts: int = 0

    @property
    def rate(self) -> float | None:
        return 1000 * self.alerts / self.nights if self.nights else None

    @property
    def at_most(self) -> float | None:
        """What the true rate is below, with 95 % confidence, if alerts are independent."""
        return 1000 * _poisson_limit(self.alerts) / self.nights if self.nights else None

    def to_json(self) -> dict[str, Any]:
        return {"nights": self.nights, "alerts": self.alerts, "per_1000": self.rate, "at_most_per_1000": self.at_most}


def _poisson_limit(count: int) -> float:
    low, high = float(count), count + 10 + 6 * math.sqrt(count)
    for _ in range(50):
        mean = (low + high) / 2
        below = sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(count + 1)) if mean else 1
        low, high = (mean, high) if below > 0.05 else (low, mean)
    return high


def measured(output: Path, table: Table, judged: Judged, settings: Settings, count: int) -> dict[str, Rate]:
    """The rates over the last nights, tonight's share of series included."""
    path = output / HONESTY_FILE
    try:
        known = {stamp: one for stamp, one in common.read_json(path)["nights"].items() if common.is_stamp(stamp)}
    except (DashboardError, KeyError, TypeError, AttributeError):
        known = {}  # it is measured anew
    known[table.stamps[judged.night]] = _tonight(table, judged, settings, count)
    kept = dict(sorted(known.items())[-KEPT_NIGHTS:])
    common.write_json(path, {"nights": kept}, durable=False)
    return {kind: _sum(kept, kind) for kind in (SHUFFLED, UNCHANGED)}


def _sum(nights: Mapping[str, Mapping[str, list[int]]], kind: str) -> Rate:
    return Rate(sum(one[kind][0] for one in nights.values()), sum(one[kind][1] for one in nights.values()))


def _tonight(table: Table, judged: Judged, settings: Settings, count: int) -> dict[str, list[int]]:
    rows = [(row, fleet.decided.state.series[key].start) for fleet in judged.fleets for key, row in fleet.rows.items()]
    found = {SHUFFLED: [0, 0], UNCHANGED: [0, 0]}
    for at in range(min(count, len(rows))):
        row, start = rows[(judged.night * count + at) % len(rows)]
        steps = judged.memory.steps.get(table.rows[row].key, ())
        known = max((table.index_of(step.stamp) for step in steps if step.kind in (WHOLE, BREAK)), default=0)
        for kind, values in _unchanged(table, row, start, judged.night, known):
            if len(values) >= LEAST:
                alerts, _ = change_points(History(values), settings=settings)
                found[kind][0] += len(values) - settings.least_history + 1
                found[kind][1] += len(alerts)
    return found


def _unchanged(table: Table, row: int, start: int, night: int, known: int) -> Iterator[tuple[str, FloatArray]]:
    """The values of the row's present level in random order, and those measured on the same code, in theirs.

    The second from the night `known` on: since the machine last moved as a whole, or a known break.
    """
    stop = night + 1 - table.offset
    level = table.values[row, max(0, start - table.offset, stop - MOST) : stop]
    level = level[np.isfinite(level)]
    rng = np.random.default_rng([night, row])
    yield SHUFFLED, rng.permutation(level)
    code = table.code[row, max(0, stop - MOST) : stop]
    other = ((code != code[-1]) & (code != 0)).nonzero()[0]
    first = max(int(other[-1]) + 1 if len(other) else 0, known - (night + 1 - len(code)))
    values = table.values[row, stop - len(code) + first : stop]
    yield UNCHANGED, values[np.isfinite(values)] if code[-1] != 0 else values[:0]
