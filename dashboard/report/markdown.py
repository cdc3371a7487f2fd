"""Markdown as GitHub shows it, of texts of any origin."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tvmdash.text import elide

_DIRECTIONS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of a text, also of what stands behind it."""
_SPECIAL = re.compile(r"([\\`*\[\]#|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "://": "&colon;//"}


def escape(text: str, limit: int = 400) -> str:
    """`text` on one line of at most `limit` columns, shown as it is wherever it stands, but at the begin of a line."""
    shown = _SPECIAL.sub(r"\\\1", _DIRECTIONS.sub("\ufffd", elide(text, limit)))
    for special, entity in _ENTITIES.items():
        shown = shown.replace(special, entity)
    return shown


def format_table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> list[str]:
    """The lines of a table of cells that are Markdown; the first `words` columns are words, the others numbers."""
    marks = ["---" if at < words else "---:" for at in range(len(head))]
    return [f"| {' | '.join(head)} |", f"|{'|'.join(marks)}|", *(f"| {' | '.join(row)} |" for row in rows)]


def format_folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that a page shows when its reader asks for them."""
    return [f"<details><summary>{title}</summary>", "", *lines, "", "</details>"]
