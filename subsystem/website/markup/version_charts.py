"""A series over several TVMs as SVG, and the axis that stands above such lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from markup.escaping import clean
from markup.sparks import svg
from tvmdash.text import elide

WIDTH, HEIGHT, AXIS_HEIGHT = 240, 44, 30
_SIDE, _PAD = 6, 5
_LEAST_RANGE = 0.03
"""Of logarithms: never so narrow that a flicker looks like a change."""
_LETTER = 6.2
"""So wide is a letter of an axis, at most."""
_MARK = 4
_UPPER, _LOWER = 8, 19
"""The rows of names on an axis."""
_LONGEST = 18


@dataclass(frozen=True)
class Spot:
    """A TVM on the way: its place from 0 to 1, the value there and its interval, what moved since the spot before.

    words: what is shown to who points at it.
    """

    place: float
    value: float | None = None
    low: float | None = None
    high: float | None = None
    words: str = ""
    moved: str = ""


def line(spots: Sequence[Spot], text: str) -> Markup:
    """The values, which are above 0, with their intervals, each where its TVM stands; empty where there is none.

    Heights are logarithms: twice as much is as far up as half as much is down. words: for those who do not see it.
    """
    reach = [math.log(value) for spot in spots for value in (spot.value, spot.low, spot.high) if value]
    if not reach:
        return Markup("")
    middle, span = (min(reach) + max(reach)) / 2, max(max(reach) - min(reach), _LEAST_RANGE)

    def y(value: float) -> str:
        return _short(HEIGHT / 2 - (math.log(value) - middle) / span * (HEIGHT - 2 * _PAD))

    pieces, bars, dots = [], [], []
    for before, spot in zip([None, *spots], spots, strict=False):
        if spot.value is None:
            continue
        at = x(spot.place)
        if before and before.value is not None:
            kind = f"line {spot.moved}".strip()
            pieces.append(f'<path class="{kind}" d="M{x(before.place)} {y(before.value)}L{at} {y(spot.value)}"/>')
        if spot.low and spot.high and spot.low < spot.high:
            bars.append(f'<path class="reach" d="M{at} {y(spot.low)}V{y(spot.high)}"/>')
        title = f"<title>{escape(clean(spot.words))}</title>"
        kind = f"dot {spot.moved}".strip()
        dots.append(f'<circle class="{kind}" cx="{at}" cy="{y(spot.value)}" r="2.5">{title}</circle>')
    return svg("course", (WIDTH, HEIGHT), str(clean(text)), [*bars, *pieces, *dots])


def x(position: float) -> str:
    """Where on a line of WIDTH a place from 0 to 1 is."""
    return _short(_SIDE + position * (WIDTH - 2 * _SIDE))


def axis(places: Sequence[float], names: Sequence[str], text: str) -> Markup:
    """A mark at each place from 0 to 1. names: of all places, of which the ends remain without room, or of the ends."""
    base = AXIS_HEIGHT - _MARK
    marks = "".join(f"M{x(position)} {base}v{_MARK}" for position in places)
    parts = [f'<path class="mark" d="M{_SIDE} {base}H{WIDTH - _SIDE}{marks}"/>']
    for position, name, y in _labels(places, names):
        kind = {0.0: ' class="begin"', 1.0: ' class="end"'}.get(position, "")
        left = {0.0: "0", 1.0: str(WIDTH)}.get(position, x(position))
        parts.append(f'<text{kind} x="{left}" y="{y}">{escape(clean(name))}</text>')
    return svg("axis", (WIDTH, AXIS_HEIGHT), str(clean(text)), parts)


def _labels(places: Sequence[float], names: Sequence[str]) -> list[tuple[float, str, int]]:
    """Where a name stands, the name, and in which of two rows: all names if they can be read, else the ends'."""
    all_of_them = [
        (position, name, (_UPPER, _LOWER)[at % 2 == 0])
        for at, (position, name) in enumerate(zip(places, names, strict=False))
    ]
    if len(names) == len(places) and _have_room(all_of_them):
        return all_of_them
    ends = ((0.0, names[0]), (1.0, names[-1])) if len(places) > 1 else ((0.5, names[0]),)
    return [(position, elide(name, _LONGEST), _LOWER) for position, name in ends]


def _have_room(labels: Sequence[tuple[float, str, int]]) -> bool:
    taken = dict.fromkeys((_UPPER, _LOWER), -_LETTER)
    for position, name, row in labels:
        wide = len(name) * _LETTER
        middle = _SIDE + position * (WIDTH - 2 * _SIDE) - wide / 2
        begin = {0.0: 0.0, 1.0: WIDTH - wide}.get(position, middle)
        if begin < taken[row] + _LETTER or begin + wide > WIDTH:
            return False
        taken[row] = begin + wide
    return True


def _short(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
