"""The stages of jobs as markup. Made here and not by a template: a history of nights has tens of thousands of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from markup.escaping import clean
from markupsafe import Markup, escape
from views import night as night_views
from views.night import ABSENT, ICONS, OK, STATE_WORDS

from tvmdash.dashboard_info import JobResult
from tvmdash.text import format_duration

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
