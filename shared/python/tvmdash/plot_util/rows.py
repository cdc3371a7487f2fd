"""Bar pictures: one row for each bar or dot, its value written at the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvmdash.plot_util.canvas import (
    INK,
    LABEL_COLUMNS,
    MARKERS,
    MUTED,
    POINTS_PER_COLUMN,
    Canvas,
    draw_nothing,
    log_scale,
    plain_numbers,
)
from tvmdash.plot_util.layout import choose_scale
from tvmdash.plot_util.specs import NO_VALUE, Bar, GroupedBar, Row, format_axis, rows_of
from tvmdash.text import elide, three_digits, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 400
ROW_POINTS = 15.0


def draw_rows(canvas: Canvas, plot: Bar | GroupedBar) -> None:
    """Horizontal bars from zero, or dots on a log scale, each with its value written at the right."""
    every = rows_of(plot)
    rows = every[:MAX_ROWS]
    numbers = [number for row in rows for number in (row.value, row.low, row.high) if number is not None]
    notes = [f"{len(every) - len(rows)} more rows are not drawn"] if len(every) > len(rows) else []
    if not numbers:
        draw_nothing(canvas, plot.title, [*notes, f"{len(rows)} without a value"] if rows else notes)
        return
    columns = max(width_of(elide(row.label, LABEL_COLUMNS)) for row in rows)
    texts = [format_value(row) for row in rows]
    right = 16 + max(len(text) for text in texts) * POINTS_PER_COLUMN
    axes = canvas.sized(plot.title, len(rows) * ROW_POINTS, 24 + columns * POINTS_PER_COLUMN, right, notes, 0).axes()
    scale, note = choose_scale(numbers)
    _scale_rows(axes, numbers, scale)
    axes.set_xlabel(
        ", ".join(part for part in (format_axis(plot.unit, lower_is_better=plot.lower_is_better), note) if part)
    )
    label_rows(axes, rows, texts)
    measured = [(index, row) for index, row in enumerate(rows) if row.value is not None]
    (_draw_bars if scale == "linear" else _draw_dots)(axes, measured, canvas.colours)
    spans = [(index, row.low, row.high) for index, row in measured if row.low is not None and row.high is not None]
    if spans:
        places, lows, highs = zip(*spans, strict=True)
        axes.hlines(places, lows, highs, color=INK, linewidth=1.1, zorder=4)


def format_value(row: Row) -> str:
    if row.value is None:
        return "" if row.header else NO_VALUE
    if row.low is None or row.high is None:
        return three_digits(row.value)
    return f"{three_digits(row.value)} ({three_digits(row.low)} to {three_digits(row.high)})"


def _scale_rows(axes: Axes, numbers: Sequence[float], scale: str) -> None:
    smallest = min((number for number in numbers if number > 0), default=1.0)
    if scale == "linear":
        low, high = min(0.0, *numbers), max(0.0, *numbers)
        axes.set_xlim(low * 1.04, high * 1.04 if high > low else 1.0)
    else:
        log_scale(axes.set_xscale, scale, smallest)
        axes.set_xlim(smallest / 1.5 if scale == "log" else -smallest / 4, max(numbers) * 1.5)
    plain_numbers(axes.xaxis, scale, max(numbers))


def label_rows(axes: Axes, rows: Sequence[Row], texts: Sequence[str]) -> None:
    """Name the rows at the left, the first above all others, and write `texts` at their right."""
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [elide(row.label, LABEL_COLUMNS) for row in rows])
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
        if row.header:
            axes.axhline(index - 0.5, color="#d5d5d5", linewidth=0.6)
            axes.get_yticklabels()[index].set_fontweight("bold")
        elif text:
            colour = MUTED if row.value is None else INK
            axes.text(1.012, index, text, transform=axes.get_yaxis_transform(), va="center", color=colour, fontsize=8)


def _draw_bars(axes: Axes, measured: Sequence[tuple[int, Row]], colours: Sequence[Any]) -> None:
    places = [index for index, _ in measured]
    shades = [colours[row.style % len(colours)] for _, row in measured]
    axes.barh(places, [row.value or 0.0 for _, row in measured], height=0.66, color=shades, alpha=0.85, linewidth=0)
    axes.axvline(0, color="#8c8c8c", linewidth=0.8)


def _draw_dots(axes: Axes, measured: Sequence[tuple[int, Row]], colours: Sequence[Any]) -> None:
    for style in sorted({row.style for _, row in measured}):
        points = [(row.value, index) for index, row in measured if row.style == style]
        colour, marker = colours[style % len(colours)], MARKERS[style % len(MARKERS)]
        axes.plot(*zip(*points, strict=True), marker, color=colour, markersize=6, markeredgewidth=0, zorder=5)
