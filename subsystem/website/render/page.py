"""Views to HTML. All text is escaped, and cleaned of what HTML cannot hold, at one place."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markup.escaping import clean
from markupsafe import Markup, escape
from views import night as night_views
from views import tally as verdict
from views.frame import HOSTS, TRIES, Frame
from views.night import ABSENT, ICONS, OK, STATE_WORDS
from views.series import SERIES_WORDS

from render import formats
from tvmdash.dashboard_info import JobResult
from tvmdash.text import format_duration

SITE = Path(__file__).resolve().parents[1]
STATIC = SITE / "static"
TEMPLATES = SITE / "templates"

NOT_ON_EVERY_SITE = frozenset({TRIES, HOSTS})
# page, its place, its name for people; those whose template is not there are left out
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
WITH_SCRIPTS = {"explore": "explorer.html", "compare": "compare.html", "receipt": "receipt.html"}
"""Pages that a script fills, and their templates."""


@functools.cache
def pages_with_scripts() -> frozenset[str]:
    """The pages for scripts that this code has templates of."""
    return frozenset(page for page, name in WITH_SCRIPTS.items() if (TEMPLATES / name).is_file())


def navigation(also: frozenset[str]) -> list[tuple[str, str, str]]:
    """The pages that the header leads to; `also` are those of NOT_ON_EVERY_SITE that this one has."""
    missing = {*WITH_SCRIPTS} - pages_with_scripts() | (NOT_ON_EVERY_SITE - also)
    return [item for item in NAVIGATION if item[0] not in missing]


def render(template: str, frame: Frame, **values: Any) -> str:
    """The page as HTML."""
    header = _header(frame.page, frame.root, frame.also)
    return _environment().get_template(template).render(frame=frame, root=frame.root, header=header, **values) + "\n"


@functools.cache
def _header(page: str, root: str, also: frozenset[str]) -> Markup:
    """The top of a page, the same on many."""
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
    environment.filters.update(steps_list=steps_list, job_rows=rows)
    environment.globals.update(
        icons=icons,
        state_words=night_views.STATE_WORDS,
        series_words=SERIES_WORDS,
        sentence_icons=verdict.ICONS,
        scripted=pages_with_scripts(),
        has_receipts="receipt" in pages_with_scripts(),
        has_explorer="explore" in pages_with_scripts(),
    )
    return environment


_ICON = Markup('<span class="icon is-{}" aria-hidden="true">{}</span>')
_KEPT = 5000
"""So many pieces are remembered: most of what a page tells of its stages, its neighbours tell too."""


def icon(state: str, sign: str) -> Markup:
    """The sign of a state, for those who see it."""
    return _ICON.format(state, sign)


_ICONS = {state: str(icon(state, sign)) for state, sign in ICONS.items()}


def steps_list(job: JobResult) -> Markup:
    """A list of the stages that the job went through, and how each went."""
    return Markup(_steps(job))  # noqa: S704 - escaped by _line


def rows(jobs: Iterable[JobResult]) -> Markup:
    """The rows of a table of jobs: how each went, what it is called, how long it took, its stages."""
    return Markup("".join(map(_row, jobs)))  # noqa: S704 - escaped by _head and _line


def _row(job: JobResult) -> str:
    head = _head(night_views.job_state(job), job.title, job.kind)
    return f'{head}<td class="time">{format_duration(job.elapsed_s)}</td><td>{_steps(job)}</td></tr>\n'


@functools.lru_cache(_KEPT, typed=True)
def _head(state: str, title: str, kind: str) -> str:
    name = f'{_ICONS[state]}<bdi>{escape(clean(title))}</bdi> <span class="quiet">{escape(clean(kind))}</span>'
    return f'<tr><th scope="row">{name}</th>'


def _steps(job: JobResult) -> str:
    lines = [
        _line(step.stage, step.state, format_duration(step.elapsed_s) if step.elapsed_s else "")
        for step in night_views.select_steps(job)
    ]
    items = "".join(lines) or f"<li>{_ICONS[ABSENT]}no stage was completed</li>\n"
    return f'<ul class="steps" aria-label="Stages">\n{items}</ul>\n'


@functools.lru_cache(_KEPT, typed=True)
def _line(stage: str, state: str, took: str) -> str:
    word = "" if state == OK else f' <span class="word">{STATE_WORDS[state]}</span>'
    time = f' <span class="time">{took}</span>' if took else ""
    return f"<li>{_ICONS[state]}{escape(clean(stage))}{word}{time}</li>\n"
