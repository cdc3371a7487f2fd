"""Geometry of plots: scales, ticks, thinning. Pure functions of numbers."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tvmdash.text import three_digits

if TYPE_CHECKING:
    import numpy as np

    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Indices = np.ndarray[Any, np.dtype[np.intp]]

LOG_SPAN = 50.0
"""Values that span more than this many times are drawn on a log scale."""
_GAP_STEPS = 3.5
_MAX_TICKS = 7

Scale = Literal["linear", "log", "symlog"]


def choose_scale(values: Iterable[float]) -> tuple[Scale, str]:
    """The scale for finite `values`, and what the axis must say about it ("" for a plain linear one).

    Log only where all are positive and span more than `LOG_SPAN` times; zeros turn it into symlog (log, but linear
    below the smallest value), negative values into linear.
    """
    numbers = list(values)
    positive = [number for number in numbers if number > 0]
    if not positive or max(positive) / LOG_SPAN <= min(positive):
        return "linear", ""
    if min(numbers) > 0:
        return "log", "log scale"
    if min(numbers) == 0:
        return "symlog", f"log scale, linear below {three_digits(min(positive))} to show zeros"
    return "linear", "linear scale: some values are negative"


def select_points(values: Floats, limit: int) -> Indices:
    """Indices of at most `limit` (8 or more) of `values` that look like all: each bucket's lowest, highest and gap.

    First and last point stay; NaN is a gap and stays one.
    """
    import numpy as np

    count = len(values)
    if count <= limit:
        return np.arange(count)
    gaps = np.isnan(values)
    # a bucket keeps two points, and three where it may have a gap
    width = -(-count // ((limit - 2) // (3 if gaps.any() else 2)))
    starts = np.arange(0, count, width)
    padded = np.full(len(starts) * width, np.nan)
    padded[:count] = values
    table = padded.reshape(-1, width)
    empty = np.isnan(table)
    picks = [np.where(empty, np.inf, table).argmin(axis=1), np.where(empty, -np.inf, table).argmax(axis=1)]
    kept = np.concatenate([starts + pick for pick in picks])
    kept = np.concatenate([kept, np.flatnonzero(gaps)[np.unique(np.flatnonzero(gaps) // width, return_index=True)[1]]])
    indices: Indices = np.unique(np.concatenate([kept, [0, count - 1]]))
    return indices


def find_gaps(days: Floats) -> Indices:
    """Indices of sorted `days` after which nights are missing: a step of more than 3.5 times the usual (median) one."""
    import numpy as np

    steps = np.diff(days)
    return np.flatnonzero(steps > _GAP_STEPS * np.median(steps)) if len(steps) else np.arange(0)


def choose_date_ticks(first: float, last: float) -> list[tuple[float, str]]:
    """At most 8 ticks from `first` to `last`, in days since 1970 UTC, with ISO labels (day, month or year)."""
    epoch = datetime.date(1970, 1, 1)
    for step in (1, 2, 4, 7, 14):
        if last - first <= step * _MAX_TICKS:
            start = -(-math.ceil(first) // step) * step
            days = range(start, math.floor(last) + 1, step)
            return [(float(day), (epoch + datetime.timedelta(days=day)).isoformat()) for day in days]
    begin, end = (epoch + datetime.timedelta(days=math.floor(day)) for day in (first, last))
    months = range(begin.year * 12 + begin.month, end.year * 12 + end.month)
    step = next((step for step in (1, 2, 3, 6, 12, 24, 60) if len(months) <= step * _MAX_TICKS), 240)
    dates = [datetime.date(month // 12, month % 12 + 1, 1) for month in months if month % step == 0]
    return [(float((date - epoch).days), date.isoformat()[: 7 if step < 12 else 4]) for date in dates]


def spread(places: Sequence[float], gap: float) -> list[float]:
    """`places` moved by one sweep up and one down, so that neighbours are `gap` apart and all lie in 0..1."""
    order = sorted(range(len(places)), key=places.__getitem__)
    # with more lines than room names overlap evenly, and none leaves the axes
    gap = min(gap, 1 / max(1, len(places) - 1))
    moved = list(places)
    floor = 0.0
    for index in order:
        moved[index] = floor = max(moved[index], floor)
        floor += gap
    ceiling = 1.0
    for index in reversed(order):
        moved[index] = ceiling = min(moved[index], ceiling)
        ceiling -= gap
    return moved


def choose_linear_limits(low: float, high: float) -> tuple[float, float]:
    """Axis limits around `low`..`high` with a margin, at least a tenth of the level, lest noise look like mountains."""
    room = max((high - low) * 0.06, (0.1 * max(abs(low), abs(high)) - (high - low)) / 2)
    return (low - room, high + room) if room > 0 else (low - 1, high + 1)
