"""Pictures of one run: several quantities over the same seconds, in panels, with the stretches worth a look shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmdash.errors import DashboardError
from tvmdash.plot_util.canvas import LABEL_COLUMNS, MUTED, POINTS_PER_COLUMN, Canvas, draw_nothing, plain_numbers
from tvmdash.plot_util.layout import choose_linear_limits, select_points, spread
from tvmdash.plot_util.specs import finite
from tvmdash.text import clean, elide, format_list, three_digits, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_LINES = 8
"""Lines in one panel; those beyond it are counted above the picture."""
MAX_SPANS = 12
_MAX_POINTS = 400
_PANEL_POINTS, _GAP_POINTS = 92.0, 18.0


@dataclass(frozen=True)
class Track:
    """One quantity: `values[i]` at `seconds[i]` of its course; None is a gap."""

    label: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Panel:
    """Quantities of one unit."""

    unit: str
    tracks: tuple[Track, ...]


@dataclass(frozen=True)
class Span:
    """A stretch of the run, in seconds from its begin, that is shaded and named."""

    begin_s: float
    end_s: float
    label: str


@dataclass(frozen=True)
class Course:
    """Quantities during one run; `seconds` ascending, from its begin."""

    title: str
    seconds: tuple[float, ...]
    panels: tuple[Panel, ...]
    spans: tuple[Span, ...] = ()

    def __post_init__(self) -> None:
        for track in (track for panel in self.panels for track in panel.tracks):
            if len(track.values) != len(self.seconds):
                counts = f"{track.label!r} has {len(track.values)} values for {len(self.seconds)} seconds"
                raise DashboardError(f"plot {self.title!r}: {counts}. Give one for each; None where missing.")


def format_course(plot: Course) -> str:
    """Describe in words the range of each quantity and the shaded spans."""
    ranges = [
        f"{track.label} {_format_range(values)} {panel.unit}".rstrip()
        for panel, track, values in _list_with_values(plot)
    ]
    if not ranges:
        return clean(f"{plot.title}: no data.")
    shaded = format_list([elide(span.label, 60) for span in plot.spans], 4)
    text = f"{plot.title}: over {three_digits(plot.seconds[-1])} s, {format_list(ranges, 8)}"
    return clean(text + (f"; shaded: {shaded}." if shaded else "."))


def _list_with_values(plot: Course) -> list[tuple[Panel, Track, list[float]]]:
    """The tracks that have a value, with these values."""
    tracks = []
    for panel in plot.panels:
        for track in panel.tracks:
            values = [number for value in track.values if (number := finite(value)) is not None]
            if values:
                tracks.append((panel, track, values))
    return tracks


def _format_range(values: Sequence[float]) -> str:
    low, high = three_digits(min(values)), three_digits(max(values))
    return low if low == high else f"{low} to {high}"


def draw_course(canvas: Canvas, plot: Course) -> None:
    """The panels one above the other, over one axis of time."""
    there = _list_with_values(plot)
    panels = [(panel, [track for of, track, _ in there if of is panel]) for panel in plot.panels]
    panels = [(panel, tracks) for panel, tracks in panels if tracks]
    notes = [
        f"{len(tracks) - MAX_LINES} more lines of {panel.unit}" for panel, tracks in panels if len(tracks) > MAX_LINES
    ]
    if len(plot.spans) > MAX_SPANS:
        notes.append(f"{len(plot.spans) - MAX_SPANS} more intervals are not shaded")
    if not panels:
        draw_nothing(canvas, plot.title, notes)
        return
    inner = len(panels) * (_PANEL_POINTS + _GAP_POINTS) - _GAP_POINTS
    columns = max(width_of(_format_end(track)) for _, tracks in panels for track in tracks[:MAX_LINES])
    canvas = canvas.sized(plot.title, inner, 62, 40 + columns * POINTS_PER_COLUMN, notes, 11 if plot.spans else 0)
    for index, (panel, tracks) in enumerate(panels):
        low = (len(panels) - 1 - index) * (_PANEL_POINTS + _GAP_POINTS) / inner
        axes = canvas.axes(low, low + _PANEL_POINTS / inner)
        _draw_panel(axes, plot, panel, tracks[:MAX_LINES], canvas.colours)
        _shade(axes, plot, named=index == 0)
        axes.tick_params(axis="x", labelbottom=index == len(panels) - 1)
    axes.set_xlabel("seconds since the start of the run")


def _draw_panel(axes: Axes, plot: Course, panel: Panel, tracks: Sequence[Track], colours: Sequence[Any]) -> None:
    import numpy as np

    seconds = np.array(plot.seconds, dtype=float)
    ends = []
    numbers: list[float] = []
    for index, track in enumerate(tracks):
        values = np.array([finite(value) for value in track.values], dtype=float)
        kept = select_points(values, _MAX_POINTS)
        axes.plot(seconds[kept], values[kept], color=colours[index % len(colours)], linewidth=1.2, zorder=3)
        there = np.flatnonzero(np.isfinite(values))
        axes.plot(seconds[there[-1:]], values[there[-1:]], "o", color=colours[index % len(colours)], markersize=4)
        ends.append(float(values[there[-1]]))
        numbers += [float(values[there].min()), float(values[there].max())]
    axes.set_xlim(0, max(float(seconds[-1]) * 1.01, 1.0))
    axes.set_ylim(*choose_linear_limits(min(numbers), max(numbers)))
    plain_numbers(axes.yaxis, "linear", max(numbers))
    axes.set_ylabel(elide(panel.unit, 24))
    low, high = axes.get_ylim()
    places = spread([(end - low) / (high - low) for end in ends], min(0.14, 1 / len(tracks)))
    for index, (track, height) in enumerate(zip(tracks, places, strict=True)):
        colour = colours[index % len(colours)]
        axes.plot(1.02, height, "o", color=colour, markersize=4.5, transform=axes.transAxes, clip_on=False)
        axes.text(1.035, height, _format_end(track), transform=axes.transAxes, va="center", fontsize=8)


def _format_end(track: Track) -> str:
    values = [number for value in track.values if (number := finite(value)) is not None]
    return f"{elide(track.label, LABEL_COLUMNS)}  {three_digits(values[-1])}"


def _shade(axes: Axes, plot: Course, *, named: bool) -> None:
    free = 0.0
    for span in plot.spans[:MAX_SPANS]:
        axes.axvspan(span.begin_s, span.end_s, color=MUTED, alpha=0.16, linewidth=0, zorder=1)
        begin = span.begin_s / axes.get_xlim()[1]
        if named and begin >= free:
            text = elide(span.label, 30)
            axes.text(span.begin_s, 1.03, text, transform=axes.get_xaxis_transform(), fontsize=7, color=MUTED)
            free = begin + 0.0105 * (width_of(text) + 1)
