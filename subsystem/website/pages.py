"""Views to HTML. All text is escaped, and cleaned of what HTML cannot hold, at one place."""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import night_views
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tvmdash import common
from tvmdash.words import duration_in_words

HERE = Path(__file__).resolve().parent
STATIC = HERE / "static"


@functools.cache
def renderer_version() -> str:
    """Changes with the templates, the style sheet and this code: then every page is rendered anew."""
    digest = hashlib.sha256()
    for path in sorted(path for pattern in ("*.py", "templates/*", "static/*") for path in HERE.glob(pattern)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def render(template: str, root: str, **values: Any) -> str:
    """The page; `root` leads from it to the site's root, as in "../"."""
    return _environment().get_template(template).render(root=root, **values) + "\n"


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: Mapping[str, Any] = {
        "moment": night_views.moment_in_words,
        "day": night_views.day_in_words,
        "day_number": lambda stamp: common.parse_stamp(stamp).day,
        "duration": duration_in_words,
        "job_state": night_views.job_state,
        "steps_shown": night_views.steps_shown,
    }
    environment.filters.update(filters)
    environment.globals.update(icons=night_views.ICONS, state_words=night_views.STATE_WORDS)
    return environment


def _clean(value: object) -> object:
    """Text without control characters, halves of surrogate pairs, and what would turn the text around it."""
    if not isinstance(value, str) or isinstance(value, Markup) or value.isprintable():
        return value
    return "".join("\ufffd" if _is_harmful(character) else character for character in value)


def _is_harmful(character: str) -> bool:
    if character in "\n\t":
        return False
    return unicodedata.category(character) in {"Cc", "Cs"} or character in "\u202a\u202b\u202d\u202e\ufffe\uffff"
