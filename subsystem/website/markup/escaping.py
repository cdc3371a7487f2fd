"""What strangers' text is cleaned of before it is escaped."""

from __future__ import annotations

from markupsafe import Markup

from tvmdash.text import clean_lines


def clean(value: object) -> object:
    """`text.clean_lines` of a text; markup, numbers and all else stay."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else clean_lines(value)
