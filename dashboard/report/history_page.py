"""The history of several TVMs as one Markdown page."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.report.markdown import escape, format_table
from dashboard.report.night_page import format_machine
from tvmdash.backfill import history_text as words
from tvmdash.backfill.history import BackfillCourse, BackfillHistory
from tvmdash.text import elide


def format_page(history: BackfillHistory) -> str:
    """The page, beginning with what it is and how it is made again."""
    lines = [*_format_head(history), *_format_verdict(history), *_format_control(history)]
    for name in history.experiments:
        lines += ["", *_format_experiment(history, name)]
    return "\n".join([*lines, *_format_failures(history)]) + "\n"


def _format_head(history: BackfillHistory) -> Iterator[str]:
    yield "# History over several TVMs"
    yield ""
    made = "This page is generated from a home's `backfill` measurements; do not edit it by hand:"
    yield f"{words.MEASURED_AFTER_ONE_ANOTHER} {made}"
    yield ""
    first_last = "..".join(elide(version, 40) for version in (history.versions[0], history.versions[-1]))
    rounds = max(history.rounds.values(), default=1)
    source = "git" if history.committed else "pypi"
    yield f"    python3 -m dashboard backfill HOME --artifacts {source}:{first_last} --rounds {rounds}"
    yield "    python3 -m dashboard results HOME --history --output history.md"
    yield ""
    yield words.describe_method("`compare`")
    yield ""
    yield from format_table(["", ""], [[name, text] for name, text in _list_facts(history) if text], words=2)


def _list_facts(history: BackfillHistory) -> Iterator[tuple[str, str]]:
    yield "TVMs", escape(", ".join(history.versions), 2000)
    yield "measured", words.describe_measured(history)
    yield "machine", format_machine(history.machine)
    others = len(history.machines) - 1
    yield "", f"and {others} other machines or machine states" if others > 0 else ""
    yield "rounds, at most", escape(words.describe_rounds(history))
    yield "load", words.describe_load(history)
    for fault in history.broken:
        yield "unreadable", escape(fault)


def _format_verdict(history: BackfillHistory) -> Iterator[str]:
    yield from ["", "## What changed", ""]
    yield from words.format_verdict(history)
    real = [step for step in history.steps() if step.found.is_told]
    if real:
        rows = [[escape(cell) for cell in words.format_step(step)] for step in real]
        yield from ["", *format_table(words.STEP_COLUMNS, rows, words=3)]


def _format_control(history: BackfillHistory) -> Iterator[str]:
    text = words.describe_control(history)
    if text:
        yield from ["", "## The control", "", text]


def _format_experiment(history: BackfillHistory, name: str) -> Iterator[str]:
    yield f"## {escape(name)}"
    yield ""
    rows = [
        [escape(course.short_name), *_format_levels(history, course), words.format_whole(course)]
        for course in history.of(name)
    ]
    yield from format_table(
        ["series", *map(escape, history.versions), escape(words.compare_last_with_first(history))], rows
    )


def _format_levels(history: BackfillHistory, course: BackfillCourse) -> Iterator[str]:
    for version in history.versions:
        level = course.level(version)
        yield escape(words.format_level(level, course.series.unit)) if level else ""


def _format_failures(history: BackfillHistory) -> Iterator[str]:
    failures = list(words.list_failures(history))
    yield from ["", "## Failed", ""] if failures else []
    for experiment, version, text in failures:
        yield f"- {escape(experiment)} on {escape(version)}: {escape(text)}"
