"""Views to HTML. All text is escaped, and cleaned of what HTML cannot hold, at one place."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup.sparks import clean
from markupsafe import Markup
from views import night as night_views
from views.context import HOSTS, TRIES, Frame
from views.night_results import amount
from views.series import BLIND, GONE, MISSING, SERIES_WORDS, STEADY, SUSPECT, UNJUDGED, YOUNG

from tvmdash import common
from tvmdash.incidents.ledger import ACKNOWLEDGED, CONFIRMED, EXPECTED, FALSE_ALARM, FIXED, NEW
from tvmdash.records.metrics import BETTER, CHANGED, WORSE
from tvmdash.text import MINUS, elide, format_bytes, format_duration, format_percent, format_quantity, three_digits
from tvmdash.verdict.account import NightSeverity

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
WITH_SCRIPTS = {
    "explore": "scripted/explorer.html",
    "compare": "scripted/compare.html",
    "receipt": "scripted/receipt.html",
}
"""Pages that a script fills, and their templates."""


_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
SERIES_ICONS = {
    WORSE: "✖",
    SUSPECT: "!",
    BETTER: "★",
    CHANGED: "◇",
    STEADY: "=",
    BLIND: "≈",
    MISSING: "∅",
    YOUNG: "◔",
    UNJUDGED: "?",
    GONE: "\u2013",
}
SEVERITY_ICONS = {NightSeverity.GOOD: "✓", NightSeverity.WARN: "!", NightSeverity.BAD: "✖", NightSeverity.UNKNOWN: "?"}
INCIDENT_ICONS = {NEW: "●", CONFIRMED: "●", ACKNOWLEDGED: "◐", EXPECTED: "○", FIXED: "✓", FALSE_ALARM: "○"}


def share(value: float | None) -> str:
    """Format a fraction as in "1.2 %"; empty for None."""
    if value is None:
        return ""
    percent = 100 * value
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.1f} %" if percent >= 0.95 else f"{percent:.2g} %"


def signed_quantity(value: float, unit: str) -> str:
    r"""Format a difference: "+1.50 ms", "\u22120.20 ms", "0 ms"."""
    sign = MINUS if value < 0 else "+" if value > 0 else ""
    return f"{sign}{format_quantity(abs(value), unit)}"


def anchor(name: str) -> str:
    """Make any text a part of an HTML id; the IDs that this dashboard makes stay as they are."""
    return name if _PLAIN.fullmatch(name) else common.safe_name(name)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "moment": common.format_moment,
    "day": common.format_day,
    "anchor": anchor,
    "clip": elide,
    "amount": amount,
    "day_number": lambda stamp: common.parse_stamp(stamp).day,
    "duration": format_duration,
    "share": share,
    "quantity": format_quantity,
    "signed_quantity": signed_quantity,
    "percent": format_percent,
    "three_digits": three_digits,
    "size": format_bytes,
    "spaced": lambda name: str(name).replace("_", " "),
}


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
    icons = {**night_views.ICONS, **SERIES_ICONS, **INCIDENT_ICONS}
    shown = {state: icon(state, sign) for state, sign in icons.items()}
    environment.filters.update(FILTERS, icon=shown.__getitem__)
    environment.filters.update(steps=night_views.select_steps, job_state=night_views.job_state)
    environment.globals.update(
        icons=icons,
        state_words=night_views.STATE_WORDS,
        series_words=SERIES_WORDS,
        sentence_icons=SEVERITY_ICONS,
        with_scripts=WITH_SCRIPTS,
    )
    return environment


def icon(state: str, sign: str) -> Markup:
    """Mark up the sign of a state, for those who see it."""
    return Markup('<span class="icon is-{}" aria-hidden="true">{}</span>').format(state, sign)
