"""Print the drawing of the house, docs/explanation/house.svg: rooms by floor, and the imports that say something new.

A room stands above all that it imports. Of the arrows that tests/test_layers.py allows, those are drawn that no path
of others implies; the ground (`errors`, `text`, `common` and what they need) carries everything and has none.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[1] / "shared/python")]

from tests import test_layers  # noqa: E402 - from this folder
from tests.tvmdash import test_face  # noqa: E402

GROUND = frozenset(("errors", "redaction", "text", "common"))
AUTHORS = frozenset(test_face.PUBLIC) | {"relax_templates", "subsys_templates", "networks", "convert"}
"""What authors of experiments and subsystems import by these names."""
WIDTH, HEIGHT, GAP_X, GAP_Y, LEFT, TITLE = 126, 26, 14, 36, 16, 34
ROW = 6 * (WIDTH + GAP_X) - GAP_X
STYLE = (
    "text{font:12px sans-serif;text-anchor:middle;fill:#1f2933}.title{text-anchor:start;font-weight:bold}"
    "rect{fill:#eef3f8;stroke:#52677c;rx:4}.ground{fill:#e3e1d6}.authors{fill:#dcefdc}path{fill:none;stroke:#52677c;opacity:.55}"
    "svg{background:#fff}"
)


def main() -> int:
    """Print it."""
    sys.stdout.write(draw())
    return 0


def draw() -> str:
    """The SVG: the library below, the application above it."""
    parts: list[str] = []
    top = 0
    houses = (
        ("dashboard: the application", test_layers.ROOMS),
        ("tvmdash: the library (green: what authors import; brown: the ground, which all use)", test_layers.FLOORS),
    )
    for title, rows in houses:
        block, high = _draw_house(title, test_layers.arrows_of(rows), top)
        parts += block
        top += high
    width = ROW + 2 * LEFT
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" role="img" aria-label="The house">'
    return "\n".join((head, f"<style>{STYLE}</style>", *parts, "</svg>", ""))


def _draw_house(title: str, arrows: Mapping[str, set[str]], top: int) -> tuple[list[str], int]:
    """The boxes and arrows of one drawing below `top`, and its height in pixels."""
    floors = _floors_of(arrows)
    rows = _order_rows(arrows, floors)
    places = {
        name: (_left_of(names) + column * (WIDTH + GAP_X), top + TITLE + (len(rows) - 1 - floor) * (HEIGHT + GAP_Y))
        for floor, names in enumerate(rows)
        for column, name in enumerate(names)
    }
    drawn = [f'<text class="title" x="{LEFT}" y="{top + 22}">{escape(title)}</text>']
    for name, below in _reduce(arrows).items():
        x, y = places[name]
        for other in sorted(below - GROUND):
            to_x, to_y = places[other]
            middle = (y + HEIGHT + to_y) // 2
            drawn.append(
                f'<path d="M{x + WIDTH // 2} {y + HEIGHT}C{x + WIDTH // 2} {middle} {to_x + WIDTH // 2} {middle}'
                f' {to_x + WIDTH // 2} {to_y}"/>'
            )
    for name, (x, y) in places.items():
        kind = ' class="ground"' if name in GROUND else ' class="authors"' if name in AUTHORS else ""
        drawn.append(f'<rect{kind} x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"/>')
        drawn.append(f'<text x="{x + WIDTH // 2}" y="{y + 17}">{escape(name)}</text>')
    return drawn, TITLE + len(rows) * (HEIGHT + GAP_Y)


def _left_of(row: list[str]) -> int:
    """Where the first room of a row stands, so that the row stands in the middle."""
    return LEFT + (ROW - len(row) * (WIDTH + GAP_X) + GAP_X) // 2


def _floors_of(arrows: Mapping[str, set[str]]) -> dict[str, int]:
    """The floor of each room, the ground 0: one above the highest that it imports, where that is none of the ground."""
    floors: dict[str, int] = {}
    for name, below in arrows.items():  # each stands after all that it imports
        floors[name] = 0 if name in GROUND else max((floors[other] + 1 for other in below), default=1)
    return floors


def _order_rows(arrows: Mapping[str, set[str]], floors: Mapping[str, int]) -> list[list[str]]:
    """The rooms of each floor from the ground up, each near to what it imports."""
    rows: list[list[str]] = [[] for _ in range(max(floors.values()) + 1)]
    for name, floor in floors.items():
        rows[floor].append(name)
    rows = [row for row in rows if row]
    reduced = _reduce(arrows)
    column = {name: index - len(row) / 2 for row in rows for index, name in enumerate(row)}
    for row in rows[1:]:
        means = {}
        for name in row:
            below = sorted(column[other] for other in reduced[name] - GROUND)
            means[name] = sum(below) / len(below) if below else float(len(row))
        row.sort(key=lambda name: (means[name], name))
        column |= {name: index - len(row) / 2 for index, name in enumerate(row)}
    return rows


def _reduce(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no path of others implies."""
    reached: dict[str, set[str]] = {}
    for name, below in arrows.items():
        reached[name] = below.union(*(reached[other] for other in below))
    return {
        name: {other for other in below if not any(other in reached[third] for third in below)}
        for name, below in arrows.items()
    }


if __name__ == "__main__":
    sys.exit(main())
