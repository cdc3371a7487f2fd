"""Views to HTML. All text is escaped, and cleaned of what HTML cannot hold, at one place."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup.escaping import clean
from markupsafe import Markup
from views import night as night_views
from views.frame import HOSTS, TRIES, Frame
from views.series import SERIES_WORDS

from render import formats

SITE = Path(__file__).resolve().parents[1]
STATIC = SITE / "static"
TEMPLATES = SITE / "templates"

NOT_ON_EVERY_SITE = frozenset({TRIES, HOSTS})
NAVIGATION = (
    ("index", "index.html", "Tonight"),
    ("explore", "explore.html", "Explore"),
    ("compare", "compare.html", "Compare"),
    ("engines", "engines.html", "Engines"),
    (TRIES, "tries.html", "Tries"),
    ("scores", "scores.html", "Scores"),
    ("alerts", "alerts.html", "Alerts"),
    (HOSTS, "hosts.html", "Hosts"),
    ("machines", "machines.html", "Machines"),
    ("nights", "nights/index.html", "Nights"),
)
"""Pages, their places, their names for people."""
WITH_SCRIPTS = {"explore": "explorer.html", "compare": "compare.html", "receipt": "receipt.html"}
"""Pages that a script fills, and their templates."""


def navigation(also: frozenset[str]) -> list[tuple[str, str, str]]:
    """List the pages that the header leads to; `also` are those of NOT_ON_EVERY_SITE that this one has."""
    return [item for item in NAVIGATION if item[0] not in NOT_ON_EVERY_SITE - also]


def render(template: str, frame: Frame, **values: Any) -> str:
    header = _header(frame.page, frame.root, frame.also)
    return _environment().get_template(template).render(frame=frame, root=frame.root, header=header, **values) + "\n"


@functools.cache
def _header(page: str, root: str, also: frozenset[str]) -> Markup:
    """Render the top of a page, the same on many."""
    values = {"page": page, "root": root, "navigation": navigation(also)}
    return Markup(_environment().get_template("header.html").render(values))  # noqa: S704 - escaped by the template


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=clean,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    icons = {**night_views.ICONS, **formats.SERIES_ICONS, **formats.INCIDENT_ICONS}
    shown = {state: icon(state, sign) for state, sign in icons.items()}
    environment.filters.update(formats.FILTERS, icon=shown.__getitem__)
    environment.filters.update(steps=night_views.select_steps, job_state=night_views.job_state)
    environment.globals.update(
        icons=icons,
        state_words=night_views.STATE_WORDS,
        series_words=SERIES_WORDS,
        sentence_icons=formats.SEVERITY_ICONS,
        with_scripts=WITH_SCRIPTS,
    )
    return environment


def icon(state: str, sign: str) -> Markup:
    """Mark up the sign of a state, for those who see it."""
    return Markup('<span class="icon is-{}" aria-hidden="true">{}</span>').format(state, sign)
