"""A difference as boxes: as wide as a part takes, coloured by what it lost or won."""

from __future__ import annotations

from collections.abc import Iterator

from markup.escaping import clean
from markup.sparks import svg
from markupsafe import Markup, escape

from incident.differences import Difference, Part
from tvmdash.text import format_percent, format_quantity

WIDTH, _ROW = 960, 26
_LETTER = 7.0
_STRONG, _WEAK = 0.2, 0.02
"""A change beyond these is drawn in the strong colour, in the weak one."""


def draw(difference: Difference) -> Markup:
    """The parts side by side below the whole, each as wide as its longer side; empty where nothing takes time."""
    widths = [max(part.good_ms or 0.0, part.bad_ms or 0.0) for part in difference.parts]
    total = max(sum(widths), difference.good_ms, difference.bad_ms)
    if total <= 0:
        return Markup("")
    whole = f"{format_quantity(difference.good_ms, 'ms')} → {format_quantity(difference.bad_ms, 'ms')}"
    text = f"{difference.kind} of {difference.name}: {whole}"
    boxes = [_box(0, WIDTH, 0, _kind(difference.change), f"all {difference.kind}, {whole}")]
    boxes += _parts(difference, widths, total)
    return svg("difference", (WIDTH, 2 * _ROW), str(clean(text)), boxes)


def _parts(difference: Difference, widths: list[float], total: float) -> Iterator[str]:
    left = 0.0
    for part, duration in zip(difference.parts, widths, strict=True):
        width = duration / total * WIDTH
        yield _box(left, width, 1, _kind(_change(part)), f"{part.name}, {format_sides(part)}")
        left += width


def _change(part: Part) -> float:
    """As a fraction; all of it where one side has none."""
    if not part.good_ms or not part.bad_ms:
        return 1.0 if part.bad_ms else -1.0
    return part.bad_ms / part.good_ms - 1


def _kind(change: float) -> str:
    strength = "strong" if abs(change) >= _STRONG else "weak" if abs(change) >= _WEAK else "none"
    return f"{'slower' if change > 0 else 'faster'} {strength}"


def format_sides(part: Part) -> str:
    """As in "4.10 ms → 5.60 ms, +36.6 %"."""
    if part.good_ms is None or part.bad_ms is None:
        there = part.good_ms if part.bad_ms is None else part.bad_ms
        return f"{'gone' if part.bad_ms is None else 'new'}, {format_quantity(there or 0.0, 'ms')}"
    return (
        f"{format_quantity(part.good_ms, 'ms')} → {format_quantity(part.bad_ms, 'ms')}, {format_percent(_change(part))}"
    )


def _box(left: float, width: float, row: int, kind: str, text: str) -> str:
    shown, room = text.split(",", maxsplit=1)[0], max(0, int((width - 8) / _LETTER))
    shown = shown if len(shown) <= room else f"{shown[: room - 1]}\u2026" if room > 1 else ""
    label = f'<text x="{left + 4:.1f}" y="{row * _ROW + 17}">{escape(clean(shown))}</text>' if len(shown) > 2 else ""
    return (
        f'<g class="box {kind}"><title>{escape(clean(text))}</title>'
        f'<rect x="{left:.1f}" y="{row * _ROW}" width="{max(0.5, width):.1f}" height="{_ROW - 1}"/>{label}</g>'
    )
