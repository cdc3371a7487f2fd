"""Longitudinal pictures: lines over nights, in panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmdash.common import parse_stamp
from tvmdash.plot_util.canvas import (
    LABEL_COLUMNS,
    MARKERS,
    MUTED,
    POINTS_PER_COLUMN,
    WIDTH_IN,
    Canvas,
    draw_nothing,
    log_scale,
    plain_numbers,
)
from tvmdash.plot_util.layout import (
    choose_date_ticks,
    choose_linear_limits,
    choose_scale,
    find_gaps,
    select_points,
    spread,
)
from tvmdash.plot_util.specs import Line, Longitudinal, format_axis, lines_in_window
from tvmdash.text import elide, three_digits, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tvmdash.plot_util.layout import Floats

Colours = Sequence[Any]

PANEL_LINES = 8
"""Lines in one panel; with more, the picture is split into panels of lines of similar size."""
MAX_LINES = 96
MAX_POINTS = 400
"""Points drawn of one line; longer lines keep each stretch's lowest and highest value."""
_TOTAL_POINTS = 3600
_BAND_LINES = 3
_DOTTED_POINTS = 150
_DASHES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)))


@dataclass(frozen=True)
class _LineTrace:
    """A line as it is drawn: days since 1970 UTC and values, NaN where it is interrupted."""

    label: str
    days: Floats
    values: Floats
    band: tuple[Floats, Floats] | None
    last: tuple[float, float]
    median: float


def draw_lines(canvas: Canvas, plot: Longitudinal) -> None:
    """Lines over nights in panels of `PANEL_LINES`, each line named at its end."""
    traces, notes = _traces_of(plot)
    if not traces:
        draw_nothing(canvas, plot.title, notes)
        return
    if len(traces) > PANEL_LINES:
        traces = sorted(traces, key=lambda trace: -trace.median)
    count = -(-len(traces) // PANEL_LINES)
    share = -(-len(traces) // count)
    panels = [traces[start : start + share] for start in range(0, len(traces), share)]
    columns = max(width_of(_format_end(trace)) for trace in traces)
    marks = sorted((parse_stamp(mark.stamp).timestamp() / 86400, mark.label) for mark in plot.marks)
    inner = 185.0 if count == 1 else count * 160.0 - 14
    canvas = canvas.sized(plot.title, inner, 62, 40 + columns * POINTS_PER_COLUMN, notes, 11 * min(3, len(marks)))
    first = min(float(trace.days[0]) for trace in traces)
    last = max(float(trace.days[-1]) for trace in traces)
    edge = max(0.6, (last - first) * 0.015)
    limits = (last - 14 - edge if plot.window == "two_weeks" else first - edge, last + edge)
    for index, panel in enumerate(panels):
        low = (count - 1 - index) * 160 / inner
        axes = canvas.axes(low, low + (inner - (count - 1) * 160) / inner)
        _draw_panel(axes, panel, plot, limits, canvas.colours)
        _draw_marks(axes, marks, limits, named=index == 0)
        axes.tick_params(axis="x", labelbottom=index == count - 1)
    axes.set_xlabel("night (UTC)")


def _traces_of(plot: Longitudinal) -> tuple[list[_LineTrace], list[str]]:
    """Return the lines to draw, and notes on the rest."""
    lines = lines_in_window(plot)
    days_of = {stamp: parse_stamp(stamp).timestamp() / 86400 for stamp in {s for line in lines for s in line.stamps}}
    limit = max(100, min(MAX_POINTS, _TOTAL_POINTS // max(1, min(len(lines), MAX_LINES))))
    traces = [
        trace for line in lines if (trace := _trace_of(line, days_of, limit, with_band=len(lines) <= _BAND_LINES))
    ]
    newest = max(days_of, default="")
    notes = [f"two weeks to {parse_stamp(newest).date()}"] if newest and plot.window == "two_weeks" else []
    if len(traces) < len(lines):
        where = " in these weeks" if plot.window == "two_weeks" else ""
        notes.append(f"{len(lines) - len(traces)} of {len(lines)} lines have no data{where}")
    if len(traces) > MAX_LINES:
        notes.append(f"{len(traces) - MAX_LINES} more lines are not drawn")
    return traces[:MAX_LINES], notes


def _trace_of(line: Line, days_of: dict[str, float], limit: int, *, with_band: bool) -> _LineTrace | None:
    import numpy as np

    days = np.array([days_of[stamp] for stamp in line.stamps], dtype=float)
    values = _numbers(line.values)
    there = np.flatnonzero(np.isfinite(values))
    if not len(there):
        return None
    columns = [days, values, *(_numbers(column) for column in (line.low, line.high) if with_band and column)]
    # a point without a value between two nights interrupts the line
    holes = find_gaps(days) + 1
    between = (days[holes - 1] + days[holes]) / 2
    columns = [np.insert(column, holes, between if column is days else np.nan) for column in columns]
    kept = select_points(columns[1], limit)
    days_kept, values_kept, *band = (column[kept] for column in columns)
    span = (band[0], band[1]) if len(band) == 2 else None
    last = (float(days[there[-1]]), float(values[there[-1]]))
    return _LineTrace(line.label, days_kept, values_kept, span, last, float(np.median(values[there])))


def _numbers(values: Sequence[float | None]) -> Floats:
    import numpy as np

    numbers = np.array(values, dtype=float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _draw_panel(
    axes: Axes, panel: Sequence[_LineTrace], plot: Longitudinal, limits: tuple[float, float], colours: Colours
) -> None:
    import numpy as np

    numbers = np.concatenate([column for trace in panel for column in (trace.values, *(trace.band or ()))])
    numbers = numbers[np.isfinite(numbers)]
    scale, note = choose_scale(numbers.tolist())
    if scale != "linear":
        log_scale(axes.set_yscale, scale, float(numbers[numbers > 0].min()))
    for index, trace in enumerate(panel):
        _draw_trace(axes, trace, colours[index % len(colours)], index, len(panel))
    axes.set_xlim(*limits)
    if scale == "linear":
        axes.set_ylim(*choose_linear_limits(float(numbers.min()), float(numbers.max())))
    plain_numbers(axes.yaxis, scale, float(numbers.max()))
    ticks = choose_date_ticks(*limits)
    axes.set_xticks([day for day, _ in ticks], [label for _, label in ticks])
    axes.set_ylabel(
        "\n".join(part for part in (format_axis(plot.unit, lower_is_better=plot.lower_is_better), note) if part)
    )
    _name_ends(axes, panel, colours)


def _draw_trace(axes: Axes, trace: _LineTrace, colour: Any, index: int, siblings: int) -> None:
    import numpy as np

    if trace.band is not None:
        axes.fill_between(trace.days, *trace.band, color=colour, alpha=0.18, linewidth=0)
    axes.plot(trace.days, trace.values, color=colour, linestyle=_DASHES[index % len(_DASHES)], linewidth=1.3, zorder=3)
    there = np.isfinite(trace.values)
    beside = np.concatenate([[False], there, [False]])
    dotted = there if there.sum() * siblings <= _DOTTED_POINTS else there & ~beside[:-2] & ~beside[2:]
    style = {"color": colour, "marker": MARKERS[index % len(MARKERS)], "linestyle": "", "markeredgewidth": 0}
    axes.plot(trace.days[dotted], trace.values[dotted], markersize=4, zorder=4, **style)
    axes.plot([trace.last[0]], [trace.last[1]], markersize=5.5, zorder=5, **style)


def _name_ends(axes: Axes, panel: Sequence[_LineTrace], colours: Colours) -> None:
    """Each line's name and last value right of the axes, at its height or as near as there is room."""
    ends = axes.transData.transform([trace.last for trace in panel])
    heights = axes.transAxes.inverted().transform(ends)[:, 1].tolist()
    places = spread(heights, 13 * axes.figure.dpi / 72 / axes.get_window_extent().height)
    for index, (trace, height, height_of_name) in enumerate(zip(panel, heights, places, strict=True)):
        colour = colours[index % len(colours)]
        style = {"color": colour, "transform": axes.transAxes, "clip_on": False, "markeredgewidth": 0}
        axes.plot((1.005, 1.022), (height, height_of_name), linewidth=0.8, **style)
        axes.plot(1.03, height_of_name, MARKERS[index % len(MARKERS)], markersize=5, **style)
        axes.text(1.045, height_of_name, _format_end(trace), transform=axes.transAxes, va="center_baseline", fontsize=8)


def _format_end(trace: _LineTrace) -> str:
    return f"{elide(trace.label, LABEL_COLUMNS)}  {three_digits(trace.last[1])}"


def _draw_marks(axes: Axes, marks: Sequence[tuple[float, str]], limits: tuple[float, float], *, named: bool) -> None:
    free = [limits[0]] * 3
    column = (limits[1] - limits[0]) * 5.2 / (WIDTH_IN * 72 * 0.6)
    for day, label in marks:
        if not limits[0] <= day <= limits[1]:
            continue
        axes.axvline(day, color=MUTED, linewidth=0.9, linestyle=(0, (3, 2)), zorder=2)
        row = next((row for row, start in enumerate(free) if start <= day), None)
        if named and row is not None:
            text = elide(label, 24)
            free[row] = day + column * (width_of(text) + 1)
            height = 1 + (3 + 10 * row) * axes.figure.dpi / 72 / axes.get_window_extent().height
            axes.text(day, height, text, transform=axes.get_xaxis_transform(), fontsize=7, color=MUTED)
