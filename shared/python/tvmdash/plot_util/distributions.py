"""Pictures of how values lie: for each group a dot for each value, and a box from quarter to quarter."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvmdash.plot_util.canvas import INK, LABEL_COLUMNS, POINTS_PER_COLUMN, Canvas, draw_nothing, plain_numbers
from tvmdash.plot_util.layout import choose_linear_limits, choose_scale
from tvmdash.plot_util.rows import ROW_POINTS, format_value, label_rows
from tvmdash.plot_util.specs import NO_VALUE, Distribution, Row, finite, format_axis
from tvmdash.text import clean, elide, format_list, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_GROUPS = 100


def format_distribution(plot: Distribution) -> str:
    """For whoever cannot see the picture: the groups whose values lie furthest apart."""
    axis = format_axis(plot.unit, lower_is_better=plot.lower_is_better)
    start = f"{plot.title} ({axis})" if axis else plot.title
    rows = [row for row in map(_row, plot.groups, plot.values) if row.value is not None]
    if not rows:
        return clean(f"{start}: no data.")
    widest = sorted(rows, key=lambda row: (row.low or 0.0) - (row.high or 0.0))[:3]
    texts = "; ".join(f"{row.label} {format_value(row)}" for row in widest)
    without = [name for name, values in zip(plot.groups, plot.values, strict=True) if not _numbers(values)]
    lacking = f"; {NO_VALUE} for {format_list(without, 4)}" if without else ""
    return clean(f"{start}: median (lowest to highest) of {len(rows)} groups, the widest first: {texts}{lacking}.")


def draw_distribution(canvas: Canvas, plot: Distribution) -> None:
    """One row for each group; its median, lowest and highest value are written at the right."""
    rows = tuple(map(_row, plot.groups, plot.values))[:MAX_GROUPS]
    shown = [_numbers(values) for values in plot.values[:MAX_GROUPS]]
    more = len(plot.groups) - len(rows)
    notes = [f"{more} more rows are not drawn"] if more else []
    if not any(shown):
        draw_nothing(canvas, plot.title, notes)
        return
    texts = [format_value(row) for row in rows]
    left = 24 + max(width_of(elide(row.label, LABEL_COLUMNS)) for row in rows) * POINTS_PER_COLUMN
    right = 16 + max(map(len, texts)) * POINTS_PER_COLUMN
    axes = canvas.sized(plot.title, len(rows) * ROW_POINTS, left, right, notes, 0).axes()
    every = [number for numbers in shown for number in numbers]
    scale, note = choose_scale(every)
    if scale == "log":
        axes.set_xscale("log")
    _draw_rows(axes, shown, canvas)
    axes.set_xlim(
        *((min(every) / 1.2, max(every) * 1.2) if scale == "log" else choose_linear_limits(min(every), max(every)))
    )
    plain_numbers(axes.xaxis, "log" if scale == "log" else "linear", max(every))
    axis = format_axis(plot.unit, lower_is_better=plot.lower_is_better)
    axes.set_xlabel(", ".join(part for part in (axis, note if scale == "log" else "") if part))
    axes.set_ylabel("")
    label_rows(axes, rows, texts)


def _draw_rows(axes: Axes, shown: Sequence[Sequence[float]], canvas: Canvas) -> None:
    import seaborn

    values = [number for numbers in shown for number in numbers]
    places = [index for index, numbers in enumerate(shown) for _ in numbers]
    seaborn.boxplot(
        x=values, y=places, orient="h", native_scale=True, ax=axes, width=0.6, color="#e9e9e9", linecolor=INK,
        linewidth=0.8, fliersize=0, whis=(0, 100),
    )  # fmt: skip
    seaborn.stripplot(
        x=values, y=places, orient="h", native_scale=True, ax=axes, jitter=False, size=4.2, alpha=0.55,
        color=canvas.colours[0], zorder=5,
    )  # fmt: skip


def _row(label: str, values: Sequence[float | None]) -> Row:
    numbers = _numbers(values)
    return Row(label, statistics.median(numbers), min(numbers), max(numbers)) if numbers else Row(label)


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [number for value in values if (number := finite(value)) is not None]
