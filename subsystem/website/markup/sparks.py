"""Lines as SVG, small ones for tables and larger ones over nights, without inline style; text of strangers, cleaned."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from tvmdash.text import clean_lines


def clean(value: object) -> object:
    """Clean text by `text.clean_lines`; markup, numbers and all else stay."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else clean_lines(value)


WIDTH, HEIGHT = 120, 24
_PAD = 3
_LEAST_RANGE = 0.03
_LABEL_WIDTH = 92
_KEPT = 4000
"""Places remembered: the lines of a table have the same ones."""


@dataclass(frozen=True)
class Band:
    """The range in which values are noise."""

    low: float
    high: float


@dataclass(frozen=True)
class SparkCurve:
    """One line of a chart: a value for each night, None where there is none; `low` and `high` around it if known."""

    name: str
    values: Sequence[float | None]
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()


def sparkline(
    values: Sequence[float | None],
    text: str,
    *,
    band: Band | None = None,
    break_at: int | None = None,
    kind: str = "",
) -> Markup:
    """Draw a small line of the last nights, the newest at the right; empty where there is no value.

    text: its content, for those who do not see it. break_at: the index of the night where the level broke.
    """
    known = [value for value in values if value is not None]
    if not known:
        return Markup("")
    low, high = _range(known, band)
    at = _SparkScale(len(values), low, high, WIDTH, HEIGHT)
    parts = []
    if band:
        top, bottom = at.y(min(band.high, high)), at.y(max(band.low, low))
        parts.append(f'<rect class="band" y="{top}" width="{WIDTH}" height="{max(1, bottom - top)}"/>')
    if break_at is not None and 0 <= break_at < len(values):
        parts.append(f'<path class="break" d="M{at.x(break_at - 0.5)} 0v{HEIGHT}"/>')
    parts.append(f'<path class="line" d="{_path(values, at)}"/>')
    last = max(index for index, value in enumerate(values) if value is not None)
    parts.append(f'<circle class="dot" cx="{at.x(last)}" cy="{at.y(known[-1])}" r="2"/>')
    name = f"spark {kind}".strip()
    return svg(name, (WIDTH, HEIGHT), text, parts)


def svg(kind: str, size: tuple[int, int], text: str, parts: Iterable[str], *, role: str = "img") -> Markup:
    """Make a picture of `parts`, markup already, with its content in words. role: "group" where it has links."""
    width, height = size
    head = f'<svg class="{escape(kind)}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="{role}"'
    return Markup(f'{head} aria-label="{escape(text)}">{"".join(parts)}</svg>')  # noqa: S704 - escaped above


@dataclass(frozen=True)
class Labels:
    """The texts at a chart's edges: the greatest and the least value, and a level worth a line of its own."""

    top: str
    bottom: str
    level: float | None = None
    level_words: str = ""


def chart(
    curves: Sequence[SparkCurve], text: str, labels: Labels | None = None, *, width: int = 640, height: int = 120
) -> Markup:
    """Draw lines over nights, for beside a table that has the numbers; empty where there is no value."""
    known = [value for curve in curves for value in (*curve.values, *curve.low, *curve.high) if value is not None]
    if not known:
        return Markup("")
    level = labels.level if labels else None
    ends = known if level is None else [*known, level]
    left = _LABEL_WIDTH if labels else _PAD
    at = _SparkScale(max(len(curve.values) for curve in curves), min(ends), max(ends), width, height, left)
    parts = _level(level, labels.level_words, at) if labels and level is not None else []
    for number, curve in enumerate(curves):
        if curve.low and curve.high:
            parts.append(f'<path class="area c{number % 6}" d="{_area(curve, at)}"/>')
        parts.append(f'<path class="line c{number % 6}" d="{_path(curve.values, at)}"/>')
        for index, value in [(index, value) for index, value in enumerate(curve.values) if value is not None][-1:]:
            parts.append(f'<circle class="dot c{number % 6}" cx="{at.x(index)}" cy="{at.y(value)}" r="3"/>')
    if labels:
        parts.append(f'<text class="top" x="4" y="4">{escape(labels.top)}</text>')
        if labels.bottom != labels.top:
            parts.append(f'<text x="4" y="{height - 5}">{escape(labels.bottom)}</text>')
    return svg("chart", (width, height), text, parts)


def _level(level: float, label: str, at: _SparkScale) -> list[str]:
    y = at.y(level)
    text = y - 4 if y > 20 else y + 14
    return [
        f'<path class="level" d="M{at.left} {y}h{at.width - at.left}"/>',
        f'<text class="end" x="{at.width - 4}" y="{_short(text)}">{escape(label)}</text>',
    ]


def _range(known: Sequence[float], band: Band | None) -> tuple[float, float]:
    """Find the range of a small line: with the band as far as it does not flatten the line.

    It is never so narrow that a flicker looks like a change.
    """
    low, high = min(known), max(known)
    if band:
        reach = max(high - low, _LEAST_RANGE * max(abs(low), abs(high)))
        low, high = min(low, max(band.low, low - reach / 2)), max(high, min(band.high, high + reach / 2))
    lack = _LEAST_RANGE * max(abs(low), abs(high)) - (high - low)
    return (low - lack / 2, high + lack / 2) if lack > 0 else (low, high)


@dataclass(frozen=True)
class _SparkScale:
    count: int
    low: float
    high: float
    width: int
    height: int
    left: int = _PAD

    def x(self, index: float) -> str:
        return _x(self.count, self.width, self.left, index)

    def y(self, value: float) -> float:
        if self.high <= self.low:
            return self.height / 2
        share = (value - self.low) / (self.high - self.low)
        return round(self.height - _PAD - share * (self.height - 2 * _PAD), 1)


@functools.lru_cache(_KEPT)
def _x(count: int, width: int, left: int, index: float) -> str:
    span = max(count - 1, 1)
    room = width - left - _PAD
    return _short(left + index * room / span if count > 1 else left + room / 2)


def _path(values: Sequence[float | None], at: _SparkScale) -> str:
    """Return pieces of line, broken where there is no value; a lone value is a dash of its own."""
    commands, pen = [], False
    for index, value in enumerate(values):
        if value is None:
            pen = False
            continue
        commands.append(f"{'L' if pen else 'M'}{at.x(index)} {_short(at.y(value))}")
        alone = not pen and (index + 1 == len(values) or values[index + 1] is None)
        commands.append("h1" if alone else "")
        pen = True
    return "".join(commands)


def _area(curve: SparkCurve, at: _SparkScale) -> str:
    ends = [
        (index, low, high)
        for index, (low, high) in enumerate(zip(curve.low, curve.high, strict=True))
        if low is not None and high is not None
    ]
    if not ends:
        return ""
    there = "L".join(f"{at.x(index)} {_short(at.y(high))}" for index, _, high in ends)
    back = "L".join(f"{at.x(index)} {_short(at.y(low))}" for index, low, _ in reversed(ends))
    return f"M{there}L{back}Z"


@functools.lru_cache(_KEPT)
def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
