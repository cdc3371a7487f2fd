"""The detector's alerts where nothing happened: on this home's own shuffled and known-unchanged history.

The history alone is judged, with the settings, the threshold and the corrected values with which nights are judged; of
re-runs only what they corrected counts. Each night of a series is counted once of each kind. Series that are judged by
their ratios are tested by `sensitivity`; controls are not, as what moves them is the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from judging.judge import FleetNight, Judged, Options
from judging.memory import BREAK, WHOLE
from judging.table import Table
from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.errors import DashboardError
from tvmdash.judge.history.change_points import change_points
from tvmdash.judge.history.fleet.fleet import night_threshold
from tvmdash.judge.history.noise import IntArray
from tvmdash.judge.history.series import KEPT_NIGHTS as CORRECTED_NIGHTS
from tvmdash.judge.history.series import History, SeriesState, Settings, scale_series
from tvmdash.verdict.page import AlertRate

HONESTY_FILE = "honesty.json"
VERSION = 3
"""Version 1 counted a night as often as its series was tested; a file of it is not gone on with. Version 2 had its
counts under `nights`, where a dashboard that knows only version 1 took them for its own and failed. It does not find
`tests`, so a home can go back to it."""
TARGET = 0.2
KEPT_NIGHTS = 90
LEAST = 60
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
        """The 95 % upper limit of the true rate, if alerts are independent."""
        return 1000 * _poisson_limit(self.alerts) / self.nights if self.nights else None

    @property
    def on_page(self) -> AlertRate:
        return AlertRate(self.nights, self.alerts, self.rate, self.at_most)


@dataclass(frozen=True)
class _Count:
    """One test of one series: the nights up to the stamp `until` that no kept test before it counted."""

    kind: str
    series: str
    until: str
    nights: int
    alerts: int


_Counts = tuple[Literal["shuffled", "unchanged"], str, Stamp, int, int]


@dataclass(frozen=True)
class _KeptRates:
    """The file: the counts of each night, in the order of their fields; in version 2, `nights`."""

    version: int
    tests: Mapping[Stamp, tuple[_Counts, ...]] = field(default_factory=dict)
    nights: Mapping[Stamp, tuple[_Counts, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Stretch:
    """Nights of one series on which nothing happened, in the order they are judged, and the settings."""

    kind: str
    series: str
    nights: IntArray
    history: History

    def from_night(self, first: int, settings: Settings) -> tuple[int, int]:
        """Count the nights from `first` on that are judged, and the alerts on them."""
        if len(self.nights) < LEAST:
            return 0, 0
        index = max(int(np.sum(self.nights < first)), settings.least_history - 1)
        alerts, _ = change_points(self.history, settings=settings)
        return len(self.nights) - index, sum(alert.night >= index for alert in alerts)


def _poisson_limit(count: int) -> float:
    low, high = float(count), count + 10 + 6 * math.sqrt(count)
    for _ in range(50):
        mean = (low + high) / 2
        below = sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(count + 1)) if mean else 1
        low, high = (mean, high) if below > 0.05 else (low, mean)
    return high


def measured(output: Path, table: Table, judged: Judged, options: Options, count: int) -> dict[str, Rate]:
    """Return the rates of the last nights' tests, tonight's share of series included."""
    path = output / HONESTY_FILE
    tonight = table.stamps[judged.night]
    controls = {row.key for row in table.rows if options.is_control(row)}
    tests = {
        stamp: [count for count in test if count.series not in controls]
        for stamp, test in sorted(_read(path).items())
        if stamp < tonight
    }
    # tonight's comes to them
    tests = dict([*tests.items()][1 - KEPT_NIGHTS :])
    counted = {(count.kind, count.series): count.until for test in tests.values() for count in test}
    tests[tonight] = list(_tonight(table, judged, options, count, counted))
    written = {stamp: [astuple(count) for count in test] for stamp, test in tests.items()}
    common.write_json(path, {"version": VERSION, "tests": written})
    return {kind: _sum(tests, kind) for kind in (SHUFFLED, UNCHANGED)}


def _read(path: Path) -> dict[str, list[_Count]]:
    """Read the tests of earlier nights; none where there is no usable file, and all is measured anew."""
    try:
        kept = structured.read(_KeptRates, path)
    except DashboardError:
        return {}
    if kept is None or kept.version not in {2, VERSION}:
        return {}
    tests = kept.tests if kept.version == VERSION else kept.nights
    return {stamp: [_Count(*count) for count in test] for stamp, test in tests.items()}


def _sum(tests: Mapping[str, list[_Count]], kind: str) -> Rate:
    counts = [count for test in tests.values() for count in test if count.kind == kind]
    return Rate(sum(count.nights for count in counts), sum(count.alerts for count in counts))


def _tonight(
    table: Table, judged: Judged, options: Options, count: int, counted: Mapping[tuple[str, str], str]
) -> Iterator[_Count]:
    """Test tonight's share of series, each from where its last test ended."""
    by_times = [(row, key, fleet) for fleet in judged.fleets for key, row in fleet.rows.items()]
    rows = [item for item in by_times if item[0] not in table.paired and not options.is_control(table.rows[item[0]])]
    for at in range(min(count, len(rows))):
        row, key, fleet = rows[(judged.night * count + at) % len(rows)]
        used = replace(options.settings, threshold=night_threshold(options.settings, len(fleet.rows)))
        for stretch in _stretches(table, row, fleet, judged):
            until = counted.get((stretch.kind, key), "")
            first = table.index_of(until) + 1 if until else 0
            nights, alerts = _ordered(stretch, first, (judged.night, row)).from_night(first, used)
            if nights > 0:
                last = table.stamps[int(stretch.nights.max())]
                yield _Count(stretch.kind, key, last, nights, alerts)


def _ordered(stretch: _Stretch, first: int, seed: tuple[int, int]) -> _Stretch:
    """Put the nights in the order they are judged in."""
    if stretch.kind == UNCHANGED:
        return stretch
    rng, old = np.random.default_rng(seed), int(np.sum(stretch.nights < first))
    # nights that an earlier test counted stay before the new ones, so that none is counted twice
    order = np.concatenate([rng.permutation(old), old + rng.permutation(len(stretch.nights) - old)])
    whole = stretch.history
    std, repeats = (None if part is None else part[order] for part in (whole.std, whole.repeats))
    return replace(stretch, history=History(whole.values[order], std, repeats))


def _stretches(table: Table, row: int, fleet: FleetNight, judged: Judged) -> Iterator[_Stretch]:
    """Yield the nights of the row's present level, and those on tonight's artifact.

    The second from the night on since which the machine has not moved as a whole, and no break is known.
    """
    key = table.rows[row].key
    state = fleet.decided.state.series.get(key, SeriesState())
    reach = min(CORRECTED_NIGHTS, judged.night + 1 - table.offset)
    offset = judged.night + 1 - reach
    part = (row, slice(offset - table.offset, judged.night + 1 - table.offset))
    nights = range(offset, judged.night + 1)
    same = _same_since(table, table.rows[row].experiment, nights)
    steps = judged.memory.steps.get(key, ())
    moved = max((table.index_of(step.stamp) for step in steps if step.kind in (WHOLE, BREAK)), default=0)
    since = max(moved, same)
    series = scale_series(History(table.values[part], offset=offset), state)
    values = np.exp(series.x) if series.unit is None else series.x * series.unit
    for kind, first in ((SHUFFLED, state.start), (UNCHANGED, since)):
        known = series.nights[series.nights >= first]
        std, repeats = table.std[row, known - table.offset], table.repeats[row, known - table.offset]
        yield _Stretch(kind, key, known, History(values[series.nights >= first], std, repeats))


def _same_since(table: Table, experiment: str, nights: range) -> int:
    """Return the first of the nights since which the experiment measured no other TVM than on the last one."""
    tonight = table.measured(experiment, nights[-1])
    if tonight is None:
        return nights.stop
    for night in reversed(nights):
        if table.measured(experiment, night) not in {tonight, None}:
            return night + 1
    return nights.start
