"""The renderer of plot specs: the only module that knows matplotlib and seaborn.

Pictures are SVG (or PNG), the same bytes for the same spec, and say in words what a picture alone could hide.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from tvmdash import common
from tvmdash.errors import DashboardError
from tvmdash.plot_util.canvas import INK, Canvas
from tvmdash.plot_util.courses import Course, draw_course, format_course
from tvmdash.plot_util.distributions import draw_distribution, format_distribution
from tvmdash.plot_util.heat_maps import draw_heat_map, format_heat_map
from tvmdash.plot_util.lines import draw_lines
from tvmdash.plot_util.rows import draw_rows
from tvmdash.plot_util.specs import (
    Distribution,
    HeatMap,
    Longitudinal,
    Plot,
)
from tvmdash.plot_util.specs import alt_text as alt_text_of_values
from tvmdash.text import elide

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
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "svg.fonttype": "none",
        "svg.hashsalt": "tvmdash",
        "timezone": "UTC",
    }
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module="matplotlib")
        warnings.filterwarnings("ignore", category=PendingDeprecationWarning, module="seaborn")
        warnings.simplefilter("ignore", matplotlib.MatplotlibDeprecationWarning)
        matplotlib.rcParams.update({**defaults, **ours})
        yield
