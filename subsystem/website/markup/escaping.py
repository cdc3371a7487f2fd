"""Cleaning of strangers' text before it is escaped."""

from __future__ import annotations

from markupsafe import Markup

from tvmdash.text import clean_lines


def clean(value: object) -> object:
    """Clean text by `text.clean_lines`; markup, numbers and all else stay."""
    return value if not isinstance(value, str) or isinstance(value, Markup) else clean_lines(value)
