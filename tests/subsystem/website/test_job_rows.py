"""Jobs and their stages as markup that no template makes: what strangers named stays text."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.subsystem.website.sites import HOSTILE, REPO, STAMP, as_shown
from tvmdash.dashboard_info import BLOCKED, FAILED, OK, JobResult, StepResult


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(REPO / "subsystem" / "website"))
    from render import page  # type: ignore[import-not-found]

    yield page
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(REPO / "subsystem")):
            del sys.modules[name]


def job(*steps: StepResult, title: str = "CNN") -> JobResult:
    return JobResult("experiment", "cnn", title, "", steps)


def test_a_row_tells_state_title_time_and_each_stage(page: ModuleType) -> None:
    steps = (
        StepResult("precheck", OK, "good", STAMP, 1),
        StepResult("run", FAILED, "killed", STAMP, 62),
        StepResult("analyze", BLOCKED, "run failed", STAMP),
    )
    assert page.rows([job(*steps)]) == (
        '<tr><th scope="row"><span class="icon is-failed" aria-hidden="true">✗</span><bdi>CNN</bdi>'
        ' <span class="quiet">experiment</span></th><td class="time">1 min 3 s</td><td>'
        '<ul class="steps" aria-label="Stages">\n'
        '<li><span class="icon is-failed" aria-hidden="true">✗</span>run <span class="word">failed</span>'
        ' <span class="time">1 min 2 s</span></li>\n'
        '<li><span class="icon is-blocked" aria-hidden="true">⊘</span>analyze'
        ' <span class="word">blocked</span></li>\n'
        "</ul>\n</td></tr>\n"
    )


def test_a_job_of_which_nothing_began_says_so(page: ModuleType) -> None:
    assert "no stage was completed" in page.steps_list(job())


@pytest.mark.parametrize("name", HOSTILE)
def test_names_from_strangers_stay_text(page: ModuleType, name: str) -> None:
    shown = html.escape(as_shown(name)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
    told = page.rows([job(StepResult(name, OK, "", STAMP, 1), title=name)])
    assert told.count(shown) == 2
    assert told.count("<") == page.rows([job(StepResult("run", OK, "", STAMP, 1))]).count("<")
