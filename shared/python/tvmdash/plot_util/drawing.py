"""The renderer of plot specs: the only module that knows matplotlib and seaborn.

Pictures are SVG (or PNG), the same bytes for the same spec, and say in words what a picture alone could hide.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import statistics
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvmdash import common
from tvmdash.errors import DashboardError
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
from tvmdash.plot_util.courses import Course, draw_course, format_course
from tvmdash.plot_util.layout import choose_linear_limits, choose_scale
from tvmdash.plot_util.lines import draw_lines
from tvmdash.plot_util.specs import (
    NO_VALUE,
    Bar,
    Distribution,
    GroupedBar,
    HeatMap,
    Longitudinal,
    Plot,
    Row,
    finite,
    format_axis,
    rows_of,
)
from tvmdash.plot_util.specs import alt_text as alt_text_of_values
from tvmdash.text import clean, elide, format_list, three_digits, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PALETTE = ("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#56b4e9", "#949494")
"""Those colours of seaborn's "colorblind" palette that also stand out from white, here because importing seaborn takes
half a second, and most graphs are bars and lines."""


def alt_text(plot: Plot | Course) -> str:
    """One or a few sentences for whoever cannot see the picture."""
    if isinstance(plot, Course):
        return format_course(plot)
    if isinstance(plot, Distribution):
        return format_distribution(plot)
    return format_heat_map(plot) if isinstance(plot, HeatMap) else alt_text_of_values(plot)


def draw(plot: Plot | Course, path: Path) -> None:
    """Write the picture of `plot` to `path`, whole or not at all: SVG for `.svg`, 110-dpi PNG for `.png`.

    Not for two threads at once: matplotlib's settings are the process's.
    """
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("svg", "png"):
        raise DashboardError(f"{path}: unsupported image format {path.suffix!r}. Use .svg or .png.")
    common.write_bytes(path, render(plot, kind))


def render(plot: Plot | Course, kind: str = "svg") -> bytes:
    """The bytes of the picture, "svg" or "png"."""
    from matplotlib.figure import Figure

    content = io.BytesIO()
    with _settings():
        figure = Figure(facecolor="white", dpi=72)
        _draw(Canvas(figure, _PALETTE), plot)
        metadata = {"Description": alt_text(plot), "Software": None} if kind == "png" else _NO_METADATA
        figure.savefig(content, format=kind, dpi=110 if kind == "png" else 72, metadata=metadata)
    if kind == "png":
        return content.getvalue()
    return _finish_svg(content.getvalue().decode("utf-8"), plot).encode("utf-8")


def _draw(canvas: Canvas, plot: Plot | Course) -> None:
    if isinstance(plot, Course):
        draw_course(canvas, plot)
    elif isinstance(plot, Longitudinal):
        draw_lines(canvas, plot)
    elif isinstance(plot, Distribution):
        draw_distribution(canvas, plot)
    elif isinstance(plot, HeatMap):
        draw_heat_map(canvas, plot)
    else:
        draw_rows(canvas, plot)


_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
_PATH = re.compile(r"<(?:path|use) [^>]*>")
_LONG_NUMBER = re.compile(r"(\.\d\d)\d+")
_LINE_TO = re.compile(r" ?\nL ")


def _finish_svg(svg: str, plot: Plot | Course) -> str:
    """Coordinates cut to a hundredth of a point, and the words that a screen reader says."""
    # After the first point of a path, SVG takes further pairs of numbers as lines to there.
    svg = _PATH.sub(lambda match: _LINE_TO.sub(" ", _LONG_NUMBER.sub(r"\1", match[0])), svg)
    title, description = (html.escape(text, quote=False) for text in (elide(plot.title, 200), alt_text(plot)))
    description_elements = f"<title>{title}</title>\n <desc>{description}</desc>"
    head, rest = svg.split("<svg ", 1)
    opening, body = rest.split(">", 1)
    return f'{head}<svg role="img" {opening}>\n {description_elements}{body}'


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """The renderer's settings of matplotlib for a while, whatever the user's matplotlibrc says."""
    import matplotlib

    ours = {
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.labelcolor": ".15",
        "xtick.color": ".15",
        "ytick.color": ".15",
        "xtick.bottom": False,
        "ytick.left": False,
        "lines.solid_capstyle": "round",
        "patch.edgecolor": "w",
        "patch.force_edgecolor": True,
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Noto Sans", "Noto Sans CJK SC", "Arial"],
        "font.size": 8.5,
        "axes.edgecolor": "#bbbbbb",
        "grid.color": "#e4e4e4",
        "grid.linewidth": 0.7,
        "text.color": INK,
        # a dollar sign in a label is no mathematics
        "text.parse_math": False,
        "axes.unicode_minus": True,
        # texts stay texts, for search and screen readers
        "svg.fonttype": "none",
        # else IDs are random, and equal specs give other bytes
        "svg.hashsalt": "tvmdash",
        "timezone": "UTC",
    }
    # without the backend, which matplotlib.rcdefaults leaves alone as well
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="matplotlib")
        warnings.filterwarnings("ignore", category=PendingDeprecationWarning, module="seaborn")
        warnings.simplefilter("ignore", matplotlib.MatplotlibDeprecationWarning)
        matplotlib.rcParams.update({**defaults, **ours})
        yield


MAX_GROUPS = 100


def format_distribution(plot: Distribution) -> str:
    """Describe in words the groups whose values lie furthest apart."""
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
    axes = canvas.sized(plot.title, len(rows) * BAR_POINTS, left, right, notes, 0).axes()
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


MAX_ROWS, MAX_COLUMNS = 100, 16
_ROW_POINTS, _SLANT_DEGREES, _SLANT_POINTS = 20.0, 28, 2.6


def format_heat_map(plot: HeatMap) -> str:
    """Describe in words the size of the map and its extremes."""
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


MAX_BARS, BAR_POINTS = 400, 15.0


def draw_rows(canvas: Canvas, plot: Bar | GroupedBar) -> None:
    """Horizontal bars from zero, or dots on a log scale, each with its value written at the right."""
    every = rows_of(plot)
    rows = every[:MAX_BARS]
    numbers = [number for row in rows for number in (row.value, row.low, row.high) if number is not None]
    notes = [f"{len(every) - len(rows)} more rows are not drawn"] if len(every) > len(rows) else []
    if not numbers:
        draw_nothing(canvas, plot.title, [*notes, f"{len(rows)} without a value"] if rows else notes)
        return
    columns = max(width_of(elide(row.label, LABEL_COLUMNS)) for row in rows)
    texts = [format_value(row) for row in rows]
    right = 16 + max(len(text) for text in texts) * POINTS_PER_COLUMN
    axes = canvas.sized(plot.title, len(rows) * BAR_POINTS, 24 + columns * POINTS_PER_COLUMN, right, notes, 0).axes()
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
