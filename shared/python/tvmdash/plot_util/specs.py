"""Plots as data, and what follows from them without drawing. `plot_util.draw` draws them."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tvmdash.common import parse_stamp, stamp_of
from tvmdash.errors import DashboardError
from tvmdash.text import clean, elide, format_list, format_percent, three_digits

NO_VALUE = "no value"


@dataclass(frozen=True)
class BarValue:
    """One bar; None (or NaN, or Infinity) for `value` is said in words; `low` and `high` are its interval."""

    label: str
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bar:
    """Bars from zero, or dots where the values need a log scale. `lower_is_better` None says nothing about it."""

    title: str
    unit: str
    bars: tuple[BarValue, ...]
    lower_is_better: bool | None = None


@dataclass(frozen=True)
class Estimate:
    """One value of a `GroupedBar` and its interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class GroupedBar:
    """`values[group][series]`; None where nothing was measured, which the picture says in words."""

    title: str
    unit: str
    groups: tuple[str, ...]
    series: tuple[str, ...]
    values: tuple[tuple[Estimate | None, ...], ...]
    lower_is_better: bool | None = None

    def __post_init__(self) -> None:
        _same_length(self.title, "values", self.values, "groups", self.groups)
        for group, row in zip(self.groups, self.values, strict=True):
            _same_length(self.title, f"the values of group {group!r}", row, "series", self.series)


@dataclass(frozen=True)
class Line:
    """One series over nights: `values[i]` at `stamps[i]`, in any order; None is a gap."""

    label: str
    stamps: tuple[str, ...]
    values: tuple[float | None, ...]
    low: tuple[float | None, ...] | None = None
    high: tuple[float | None, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("values", "low", "high"):
            column = getattr(self, name)
            if column is not None:
                _same_length(self.label, name, column, "stamps", self.stamps)


@dataclass(frozen=True)
class Mark:
    """A moment worth a vertical line, such as a change point."""

    stamp: str
    label: str


@dataclass(frozen=True)
class Longitudinal:
    """Lines over nights. "two_weeks" is the two weeks up to the newest stamp of any line; no clock is read."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    window: Literal["all", "two_weeks"] = "all"
    marks: tuple[Mark, ...] = ()
    lower_is_better: bool | None = None


@dataclass(frozen=True)
class Distribution:
    """The values of each group: `values[group]`, in any number and order; None where there is none."""

    title: str
    unit: str
    groups: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    lower_is_better: bool | None = None

    def __post_init__(self) -> None:
        _same_length(self.title, "values", self.values, "groups", self.groups)


@dataclass(frozen=True)
class HeatMap:
    """A number for each pair, shaded by its size: `values[row][column]`; None where nothing was measured."""

    title: str
    unit: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    lower_is_better: bool | None = None

    def __post_init__(self) -> None:
        _same_length(self.title, "values", self.values, "rows", self.rows)
        for name, row in zip(self.rows, self.values, strict=True):
            _same_length(self.title, f"the values of row {name!r}", row, "columns", self.columns)


Plot = Bar | GroupedBar | Longitudinal | Distribution | HeatMap


def _same_length(plot: str, name: str, entries: Sequence[object], of: str, others: Sequence[object]) -> None:
    if len(entries) != len(others):
        counts = f"{name} has {len(entries)} entries, {of} has {len(others)}"
        raise DashboardError(f"plot {plot!r}: {counts}. Give one for each; None where missing.")


@dataclass(frozen=True)
class Row:
    """One row of a bar picture; a row with `header` names the group of the rows below it."""

    label: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    style: int = 0
    header: bool = False


def rows_of(plot: Bar | GroupedBar) -> tuple[Row, ...]:
    """The rows from top to bottom, with None for every value that is not finite."""
    if isinstance(plot, Bar):
        return tuple(_row(bar.label, bar, 0) for bar in plot.bars)
    rows: list[Row] = []
    for group, estimates in zip(plot.groups, plot.values, strict=True):
        rows.append(Row(group, header=True))
        rows += (
            _row(name, estimate, style)
            for style, (name, estimate) in enumerate(zip(plot.series, estimates, strict=True))
        )
    return tuple(rows) if plot.series else ()


def _row(label: str, estimate: BarValue | Estimate | None, style: int) -> Row:
    if estimate is None or (value := finite(estimate.value)) is None:
        return Row(label, style=style)
    return Row(label, value, finite(estimate.low), finite(estimate.high), style)


def finite(value: float | None) -> float | None:
    """`value`, or None where it is missing, NaN or infinite."""
    return value if value is not None and math.isfinite(value) else None


def lines_in_window(plot: Longitudinal) -> tuple[Line, ...]:
    """The plot's lines in order of time, cut to its window; a line without a point there stays, empty."""
    newest = max((stamp for line in plot.lines for stamp in line.stamps), default=None)
    if newest is None:
        return plot.lines
    start = ""
    if plot.window == "two_weeks":
        start = stamp_of(parse_stamp(newest) - datetime.timedelta(days=14))
    return tuple(_cut(line, start) for line in plot.lines)


def _cut(line: Line, start: str) -> Line:
    # Stamps sort as text in the order of time.
    stamps = line.stamps
    if not stamps or (all(map(operator.le, stamps, stamps[1:])) and stamps[0] >= start):
        return line
    order = [index for index in sorted(range(len(stamps)), key=stamps.__getitem__) if stamps[index] >= start]
    low, high = (column and tuple(column[index] for index in order) for column in (line.low, line.high))
    values = tuple(line.values[index] for index in order)
    return Line(line.label, tuple(stamps[index] for index in order), values, low, high)


def alt_text(plot: Bar | GroupedBar | Longitudinal) -> str:
    """One or a few sentences for whoever cannot see the picture: what it shows, the extremes or the change."""
    axis = format_axis(plot.unit, lower_is_better=plot.lower_is_better)
    text = _describe_lines(plot) if isinstance(plot, Longitudinal) else _describe_rows(plot)
    return clean(f"{plot.title} ({axis}): {text}." if axis else f"{plot.title}: {text}.")


def format_axis(unit: str, *, lower_is_better: bool | None) -> str:
    """Return the label of the value axis, as in "ms, lower is better"."""
    direction = {None: "", True: "lower is better", False: "higher is better"}[lower_is_better]
    return ", ".join(part for part in (elide(unit, 40), direction) if part)


def _describe_rows(plot: Bar | GroupedBar) -> str:
    named: list[tuple[str, float | None]] = []
    group = ""
    for row in rows_of(plot):
        group = f"{row.label}, " if row.header else group
        if not row.header:
            named.append((group + row.label, row.value))
    known = [(value, name) for name, value in named if value is not None]
    if not known:
        return "no data"
    low, high = min(known), max(known)
    text = f"{len(known)} values, from {three_digits(low[0])} ({low[1]}) to {three_digits(high[0])} ({high[1]})"
    without = [name for name, value in named if value is None]
    return text + (f"; {NO_VALUE} for {format_list(without, 4)}" if without else "")


def _describe_lines(plot: Longitudinal) -> str:
    changes: list[tuple[float, str]] = []
    stamps: list[str] = []
    for line in lines_in_window(plot):
        points = [index for index, value in enumerate(line.values) if value is not None and math.isfinite(value)]
        if points:
            stamps += (line.stamps[points[0]], line.stamps[points[-1]])
            first, last = float(line.values[points[0]] or 0), float(line.values[points[-1]] or 0)
            change = (last - first) / abs(first) if first else math.copysign(math.inf, last) if last else 0.0
            changes.append((change, f"{elide(line.label, 60)} {_format_change(first, last, change, len(points))}"))
    if not changes:
        return "no data"
    changes.sort(key=lambda item: -abs(item[0]))
    count = (
        f"{len(changes)} lines" + (", those that changed most: " if len(changes) > 3 else ": ")
        if len(changes) > 1
        else ""
    )
    return f"{_day(min(stamps))} to {_day(max(stamps))} UTC, {count}" + "; ".join(text for _, text in changes[:3])


def _format_change(first: float, last: float, change: float, count: int) -> str:
    if count == 1:
        return f"{three_digits(last)} (one point)"
    percent = f", {format_percent(change)}" if math.isfinite(change) else ""
    return f"first {three_digits(first)}, last {three_digits(last)}{percent} ({count} points)"


def _day(stamp: str) -> str:
    return parse_stamp(stamp).date().isoformat()
