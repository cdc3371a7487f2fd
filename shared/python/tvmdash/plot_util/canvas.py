"""A figure with margins in points, and what bar and line pictures share. `plot_util` alone imports matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvmdash.text import elide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 9.0
LABEL_COLUMNS = 34
POINTS_PER_COLUMN = 4.9
MARKERS = "osD^vPXh"
INK, MUTED = "#262626", "#6b6b6b"


@dataclass(frozen=True)
class Canvas:
    """An empty figure and the colours to draw with; `edges` are its margins in points (left, right, bottom, top)."""

    figure: Figure
    colours: tuple[Any, ...]
    edges: tuple[float, float, float, float] = (0, 0, 0, 0)

    def sized(self, title: str, inner: float, left: float, right: float, notes: Sequence[str], above: float) -> Canvas:
        """The figure with `inner` points of height for axes and the title, notes and margins around them."""
        top, bottom = 30.0 + (13 if notes else 0) + above, 36.0
        height = inner + top + bottom
        self.figure.set_size_inches(WIDTH_IN, height / 72)
        edge = 10 / 72 / WIDTH_IN
        self.figure.text(edge, 1 - 8 / height, elide(title, 85), va="top", fontsize=11, weight="bold")
        note = elide("; ".join(notes), 125)
        self.figure.text(edge, 1 - 25 / height, note, va="top", color=MUTED, fontsize=8)
        return Canvas(self.figure, self.colours, (left, right, bottom, top))

    def axes(self, low: float = 0.0, high: float = 1.0) -> Axes:
        """Axes over the part `low`..`high` (from below) of what the margins leave."""
        width, height = (float(side) * 72 for side in self.figure.get_size_inches())
        left, right, bottom, top = self.edges
        inner = height - top - bottom
        across, along = (left / width, 1 - (left + right) / width), (bottom + low * inner, (high - low) * inner)
        axes = self.figure.add_axes((across[0], along[0] / height, across[1], along[1] / height))
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        return axes


def draw_nothing(canvas: Canvas, title: str, notes: Sequence[str]) -> None:
    """A picture that says "no data"."""
    axes = canvas.sized(title, 80, 60, 60, notes, 0).axes()
    axes.set_axis_off()
    axes.text(0.5, 0.5, "no data", ha="center", va="center", fontsize=14, color=MUTED, transform=axes.transAxes)


def log_scale(set_scale: Callable[..., None], scale: str, smallest: float) -> None:
    """Set a log scale, or for "symlog" one that is linear below `smallest`."""
    set_scale(scale, **({"linthresh": smallest, "linscale": 0.4} if scale == "symlog" else {}))


def plain_numbers(axis: Any, scale: str, largest: float) -> None:
    """Tick labels as numbers: no offset, no powers of ten where they fit without."""
    if scale != "linear":
        smallest = axis.get_transform().linthresh if scale == "symlog" else 0
        axis.set_major_formatter(lambda number, _: _round_number(number) if number == 0 or number >= smallest else "")
        wide = largest > 0 and scale == "log" and largest / max(axis.get_view_interval()[0], 1e-300) > 500
        axis.set_minor_formatter(lambda number, _: _round_number(number) if not wide and _is_2_or_5(number) else "")
        return
    formatter = axis.get_major_formatter()
    formatter.set_useOffset(False)
    formatter.set_powerlimits((-4, 7))


def _is_2_or_5(number: float) -> bool:
    return f"{number:.0e}"[0] in "25"


def _round_number(number: float) -> str:
    return f"{number:.7g}" if not 0 < number < 1 else f"{number:.7f}".rstrip("0") if number > 1e-6 else f"{number:.0e}"
