"""Differences of generated code: as the site keeps them, and as HTML."""

from __future__ import annotations

from pathlib import Path

from data.code_changes import CodeDifference, NightDifferences
from markup.sparks import clean
from markupsafe import Markup, escape

from tvmdash.common import structured
from tvmdash.errors import DashboardError

_KINDS = {"+": "ins", "-": "del"}


def read_differences(path: Path) -> NightDifferences | None:
    """Read a file in code/; None where a file of the old site is damaged, or of other code."""
    try:
        return structured.read(NightDifferences, path)
    except DashboardError:
        return None


def draw_difference(difference: CodeDifference | None) -> Markup | None:
    """Mark the lines of one side as text that was deleted or inserted."""
    if difference is None:
        return None
    drawn = [_draw_line(line) for line in difference.lines]
    if difference.more:
        drawn.append(Markup('<span class="more">… and {} more lines</span>').format(f"{difference.more:,}"))
    return Markup("\n").join(drawn)


def _draw_line(line: str) -> Markup:
    kind, text = _KINDS.get(line[:1]), escape(str(clean(line)))
    if kind:
        return Markup(f"<{kind}>{{}}</{kind}>").format(text)  # noqa: S704 - one of two names
    return Markup('<span class="hunk">{}</span>').format(text) if line.startswith("@@") else text
