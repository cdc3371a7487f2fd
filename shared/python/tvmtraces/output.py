"""Rows for people and programs: console, csv, json, markdown, html."""

from __future__ import annotations

import csv
import html
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvmdash.text import clean, three_digits, width_of

Rows = Sequence[Sequence[Any]]


def format_console(names: Sequence[str], rows: Rows) -> str:
    """Format aligned columns, numbers to the right."""
    cells = [[_format_cell(value) for value in row] for row in rows]
    widths = [max(width_of(line[index]) for line in [list(names), *cells]) for index in range(len(names))]
    right = [all(_is_number(row[index]) for row in rows) and bool(rows) for index in range(len(names))]
    rule = "  ".join("-" * width for width in widths)
    lines = [_format_line(list(names), widths, right), rule, *(_format_line(line, widths, right) for line in cells)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _format_line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        blanks = " " * (width - width_of(cell))
        padded.append(blanks + cell if to_right else cell + blanks)
    return "  ".join(padded)


def format_csv(names: Sequence[str], rows: Rows) -> str:
    """Format RFC 4180 with a line of names, but with Unix line ends, for pipes; NULL is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue()


def format_json(names: Sequence[str], rows: Rows) -> str:
    """Format a list with one object for each row; NaN becomes null."""
    objects = [{name: _make_plain(value) for name, value in zip(names, row, strict=True)} for row in rows]
    return json.dumps(objects, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def format_markdown(names: Sequence[str], rows: Rows) -> str:
    """Format a table of GitHub's Markdown."""
    lines = [[_escape(name) for name in names], ["---"] * len(names)]
    lines += [[_escape(_format_cell(value)) for value in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def format_html(names: Sequence[str], rows: Rows) -> str:
    """Format a `<table>`, everything escaped."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_format_cell(value))}</td>" for value in row) + "</tr>\n" for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


FORMATS: Mapping[str, Callable[[Sequence[str], Rows], str]] = {
    "console": format_console,
    "csv": format_csv,
    "json": format_json,
    "markdown": format_markdown,
    "html": format_html,
}


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _format_cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return three_digits(value) if abs(value) < 1e6 else f"{value:.0f}" if math.isfinite(value) else str(value)
    return clean(str(value))


def _escape(text: str) -> str:
    return html.escape(text, quote=False).replace("\\", "\\\\").replace("|", "\\|").replace("`", "\\`")


def _make_plain(value: object) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def format_left_out(left_out: Mapping[str, int]) -> str:
    """Return the end of a sentence about what was written, empty where nothing is left out."""
    parts = [f"{count} {words}" for words, count in left_out.items() if count]
    return f"; left out: {', '.join(parts)}" if parts else ""
