"""Pictures of a table: the darker a cell, the greater its number, which is written in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tvmdash.plot_util.canvas import LABEL_COLUMNS, MUTED, POINTS_PER_COLUMN, Canvas, draw_nothing
from tvmdash.plot_util.layout import choose_scale
from tvmdash.plot_util.specs import NO_VALUE, HeatMap, finite, format_axis
from tvmdash.text import clean, elide, format_list, three_digits, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS, MAX_COLUMNS = 100, 16
_ROW_POINTS, _SLANT_DEGREES, _SLANT_POINTS = 20.0, 28, 2.6


def format_heat_map(plot: HeatMap) -> str:
    """For whoever cannot see the picture: its size and its extremes."""
    axis = format_axis(plot.unit, lower_is_better=plot.lower_is_better)
    start = f"{plot.title} ({axis})" if axis else plot.title
    cells = [
        (finite(value), f"{row}, {column}")
        for row, values in zip(plot.rows, plot.values, strict=True)
        for column, value in zip(plot.columns, values, strict=True)
    ]
    known = [(value, name) for value, name in cells if value is not None]
    if not known:
        return clean(f"{start}: no data.")
    low, high = min(known), max(known)
    size = f"{len(plot.rows)} by {len(plot.columns)} values"
    without = [name for value, name in cells if value is None]
    lacking = f"; {NO_VALUE} for {format_list(without, 4)}" if without else ""
    text = f"{size}, from {three_digits(low[0])} ({low[1]}) to {three_digits(high[0])} ({high[1]})"
    return clean(f"{start}: {text}{lacking}.")


def draw_heat_map(canvas: Canvas, plot: HeatMap) -> None:
    """Rows by columns, with the scale of the shades at the right."""
    rows = [elide(name, LABEL_COLUMNS) for name in plot.rows[:MAX_ROWS]]
    columns = [elide(name, LABEL_COLUMNS) for name in plot.columns[:MAX_COLUMNS]]
    table = [[finite(value) for value in values[:MAX_COLUMNS]] for values in plot.values[:MAX_ROWS]]
    numbers = [value for values in table for value in values if value is not None]
    notes = [
        f"{more} more {what} are not drawn"
        for what, more in (("rows", len(plot.rows) - len(rows)), ("columns", len(plot.columns) - len(columns)))
        if more
    ]
    if not numbers:
        draw_nothing(canvas, plot.title, notes)
        return
    left = 24 + max(map(width_of, rows)) * POINTS_PER_COLUMN
    above = 12 + max(map(width_of, columns)) * _SLANT_POINTS
    right = max(90.0, 20 + width_of(columns[-1]) * POINTS_PER_COLUMN)
    axes = canvas.sized(plot.title, len(rows) * _ROW_POINTS, left, right, notes, above).axes()
    note = _draw_cells(axes, table, numbers)
    axis = format_axis(plot.unit, lower_is_better=plot.lower_is_better)
    axes.set_xlabel(", ".join(part for part in (axis, note) if part))
    axes.set_xticks([index + 0.5 for index in range(len(columns))], columns)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("bottom")
    axes.tick_params(axis="x", length=0, pad=2)
    for label in axes.get_xticklabels():
        label.set(rotation=_SLANT_DEGREES, ha="left", va="bottom", rotation_mode="anchor")
    axes.set_yticks([index + 0.5 for index in range(len(rows))], rows, rotation=0)
    axes.tick_params(axis="y", length=0)


def _draw_cells(axes: Axes, table: Sequence[Sequence[float | None]], numbers: Sequence[float]) -> str:
    """Shade and number the cells; what is to be said about the scale of the shades."""
    import numpy
    import seaborn
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.ticker import MaxNLocator

    cells = numpy.array([[numpy.nan if value is None else value for value in values] for values in table])
    texts = numpy.array([["" if value is None else three_digits(value) for value in values] for values in table])
    scale, note = choose_scale(numbers)
    axes.grid(visible=False)
    axes.set_facecolor("#f3f3f3")
    norm = (LogNorm if scale == "log" else Normalize)(min(numbers), max(numbers))
    beside = axes.inset_axes((1.03, 0.0, 0.02, 1.0))
    seaborn.heatmap(
        cells, mask=numpy.isnan(cells), annot=texts, fmt="", norm=norm, cmap="crest", linewidths=0.8, ax=axes,
        cbar_ax=beside, annot_kws={"fontsize": 7.5}, xticklabels=False, yticklabels=False,
    )  # fmt: skip
    for row, column in zip(*numpy.nonzero(numpy.isnan(cells)), strict=True):
        axes.text(column + 0.5, row + 0.5, NO_VALUE, ha="center", va="center", fontsize=7, color=MUTED)
    beside.tick_params(labelsize=7.5, length=2)
    beside.minorticks_off()
    if scale != "log":
        beside.yaxis.set_major_locator(MaxNLocator(max(1, len(table))))
    beside.yaxis.set_major_formatter(lambda number, _: f"{number:.3g}")
    return note if scale == "log" else ""
