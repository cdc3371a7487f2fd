"""Changes over nights as SVG: in percent, with TVM versions at the axis and what happened marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from markup.sparks import clean, svg
from tvmdash.incidents.headline import shorten
from tvmdash.text import format_percent

_WIDTHS = {"wide": 960, "narrow": 360}
"""The picture is drawn for both, and the style sheet shows one: on a phone the wide one cannot be read."""
_RIGHT, _TOP, _BOTTOM = 12, 24, 44
_LETTER = 8
"""No letter of the labels is wider, in any of the fonts that readers have."""
_LEAST_SPAN = 0.02
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
_MOST_LEVELS = 6
_APART = 90
"""Distance between names at the axis."""


@dataclass(frozen=True)
class Curve:
    """A line: for each night the change from its level before, as a fraction; None where there is no value."""

    name: str
    changes: tuple[float | None, ...]


@dataclass(frozen=True)
class ChartMark:
    """A mark on the night with which something began; `address` leads to it, where there is a page."""

    night: int
    kind: str
    text: str
    address: str = ""


@dataclass(frozen=True)
class NightChart:
    """A chart over nights. days: their dates, as people write them; versions: each night's TVM, "" where unknown."""

    days: tuple[str, ...]
    versions: tuple[str, ...]
    curves: tuple[Curve, ...]
    marks: tuple[ChartMark, ...]
    height: int = 280

    def draw(self, text: str) -> Markup:
        """Draw the chart, described by `text`, for wide and for narrow windows; empty where no curve has a value."""
        known = [change for curve in self.curves for change in curve.changes if change is not None]
        if not known:
            return Markup("")
        pictures = []
        for kind, width in _WIDTHS.items():
            scale = _Scale(len(self.days), (min(0.0, *known), max(0.0, *known)), (width, self.height))
            parts = [*_levels(scale), *_versions(self, scale), *_lines(self, scale), *_marks(self, scale)]
            parts += _days(self, scale)
            pictures.append(svg(f"chart night-chart {kind}", scale.size, str(clean(text)), parts, role="group"))
        return Markup("").join(pictures)


class _Scale:
    """From nights and changes to places of the picture."""

    def __init__(self, nights: int, reach: tuple[float, float], size: tuple[int, int]) -> None:
        low, high = reach
        lack = max(0.0, _LEAST_SPAN - (high - low)) / 2
        self._nights, self.low, self.high, self.size = nights, low - lack, high + lack, size
        self.labels = {level: format_percent(level) for level in self.levels()}
        self.left = 8 + _LETTER * max(map(len, self.labels.values()))
        self.right = size[0] - _RIGHT
        self.is_wide = size[0] == max(_WIDTHS.values())
        self.floor = size[1] - _BOTTOM

    def x(self, night: float) -> float:
        return round(self.left + (night + 0.5) / self._nights * (self.right - self.left), 1)

    def y(self, change: float) -> float:
        share = (change - self.low) / (self.high - self.low)
        return round(self.floor - share * (self.floor - _TOP), 1)

    def levels(self) -> list[float]:
        """Choose round changes, few enough to be read."""
        span = self.high - self.low
        step = next((step for step in _STEPS if span / step <= _MOST_LEVELS), span)
        first = -int(-self.low / step)
        return [at * step for at in range(first, first + _MOST_LEVELS + 2) if self.low <= at * step <= self.high]


def _levels(scale: _Scale) -> Iterator[str]:
    for level, label in scale.labels.items():
        y = scale.y(level)
        kind = "level" if abs(level) < 1e-12 else "grid"
        yield f'<path class="{kind}" d="M{scale.left} {y}H{scale.right}"/>'
        yield f'<text class="end" x="{scale.left - 8}" y="{y + 4}">{escape(label)}</text>'


def _versions(chart: NightChart, scale: _Scale) -> Iterator[str]:
    """Draw a tick where the TVM is another than the night before; its name where there is room, below a mark first."""
    marked = {mark.night for mark in chart.marks}
    changes = [
        (night, version)
        for night, (before, version) in enumerate(zip(chart.versions, chart.versions[1:], strict=False), start=1)
        if version and version != before
    ]
    named: list[float] = []
    for night, version in sorted(changes, key=lambda change: (change[0] not in marked, change[0])):
        x = scale.x(night - 0.5)
        yield f'<path class="tick" d="M{x} {scale.floor}v6"><title>TVM {escape(clean(version))}</title></path>'
        if all(abs(x - other) >= _APART for other in named):
            named.append(x)
            name = str(clean(shorten(version)))
            half = _LETTER * len(name) / 2
            inside = min(max(x, half), scale.size[0] - half)
            yield f'<text class="middle" x="{inside}" y="{scale.floor + 18}">{escape(name)}</text>'


def _marks(chart: NightChart, scale: _Scale) -> Iterator[str]:
    for mark in chart.marks:
        if 0 < mark.night < len(chart.days):
            x = scale.x(mark.night - 0.5)
            line = f'<path class="break {mark.kind}" d="M{x} {_TOP - 6}V{scale.floor}"/>'
            title = f"<title>{escape(clean(mark.text))}</title>" if mark.text else ""
            if mark.address:
                dot = f'<circle class="mark {mark.kind}" cx="{x}" cy="{_TOP - 10}" r="6"/>'
                yield f'<a href="{escape(mark.address)}" aria-label="{escape(clean(mark.text))}">{title}{line}{dot}</a>'
            else:
                yield line


def _lines(chart: NightChart, scale: _Scale) -> Iterator[str]:
    for number, curve in enumerate(chart.curves):
        yield f'<path class="line c{number}" d="{_path(curve.changes, scale)}"/>'
        for night, change in enumerate(curve.changes):
            if change is not None:
                words = escape(clean(f"{curve.name}, {chart.days[night]}: {format_percent(change)}"))
                title = f"<title>{words}</title>" if scale.is_wide else ""  # of no use to a finger
                yield (
                    f'<circle class="dot c{number}" cx="{scale.x(night)}" cy="{scale.y(change)}" r="2.5">'
                    f"{title}</circle>"
                )


def _path(changes: Sequence[float | None], scale: _Scale) -> str:
    """Return a path that is broken where a night has no value."""
    pieces, pen = [], "M"
    for night, change in enumerate(changes):
        if change is None:
            pen = "M"
        else:
            pieces.append(f"{pen}{scale.x(night)} {scale.y(change)}")
            pen = "L"
    return "".join(pieces)


def _days(chart: NightChart, scale: _Scale) -> Iterator[str]:
    """Draw the days of the first mark, the last night and the first one, as far as there is room."""
    last = len(chart.days) - 1
    named: list[tuple[float, float]] = []
    for night, kind in (*((mark.night, "middle") for mark in chart.marks[:1]), (last, "end"), (0, "start")):
        if night > last:
            continue
        x, width = scale.x(night), _LETTER * len(chart.days[night])
        begin = x - {"start": 0.0, "middle": width / 2, "end": width}[kind]
        fits = begin >= 0 and begin + width <= scale.size[0]
        if fits and all(begin + width < other or end < begin for other, end in named):
            named.append((begin, begin + width))
            yield f'<text class="{kind}" x="{x}" y="{scale.size[1] - 6}">{chart.days[night]}</text>'
