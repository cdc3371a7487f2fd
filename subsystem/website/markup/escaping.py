"""What strangers' text is cleaned of before it is escaped."""

from __future__ import annotations

import unicodedata

from markupsafe import Markup


def clean(value: object) -> object:
    """Text without control characters, halves of surrogate pairs, and what would turn the text around it."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join("\ufffd" if _is_harmful(character) else character for character in value)


def _is_harmful(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in {"Cc", "Cs"} or character in "\u202a\u202b\u202d\u202e\ufffe\uffff"
