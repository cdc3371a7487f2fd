"""The history of several TVMs as one Markdown page."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.report.markdown import plain, table
from dashboard.report.night_page import format_machine
from tvmdash.backfill import history_text as words
from tvmdash.backfill.history import Course, History
from tvmdash.text import elide


def page(history: History) -> str:
    """The page, beginning with what it is and how it is made again."""
    lines = [*_head(history), *_verdict(history), *_control(history)]
    for name in history.experiments:
        lines += ["", *_experiment(history, name)]
    return "\n".join([*lines, *_failures(history)]) + "\n"


def _head(history: History) -> Iterator[str]:
    yield "# History over several TVMs"
    yield ""
    made = "The page is made from what `backfill` left in a home and not edited by hand:"
    yield f"{words.MEASURED_AFTER_ONE_ANOTHER} {made}"
    yield ""
    first_last = "..".join(elide(version, 40) for version in (history.versions[0], history.versions[-1]))
    rounds = max(history.rounds.values(), default=1)
    source = "git" if history.committed else "pypi"
    yield f"    python3 -m dashboard backfill HOME --artifacts {source}:{first_last} --rounds {rounds}"
    yield "    python3 -m dashboard results HOME --history --output docs/history.md"
    yield ""
    yield words.method("[compare](investigating.md)")
    yield ""
    yield from table(["", ""], [[name, text] for name, text in _facts(history) if text], words=2)


def _facts(history: History) -> Iterator[tuple[str, str]]:
    yield "TVMs", plain(", ".join(history.versions), 2000)
    yield "measured", words.measured(history)
    yield "machine", format_machine(history.machine)
    others = len(history.machines) - 1
    yield "", f"and {others} other machines or states of it" if others > 0 else ""
    yield "rounds, at most", plain(words.rounds(history))
    yield "load", words.load(history)
    for fault in history.broken:
        yield "unreadable", plain(fault)


def _verdict(history: History) -> Iterator[str]:
    yield from ["", "## What changed", ""]
    yield from words.verdict(history)
    real = [step for step in history.steps() if step.found.real]
    if real:
        rows = [[plain(cell) for cell in words.format_step(step)] for step in real]
        yield from ["", *table(words.STEP_COLUMNS, rows, words=3)]


def _control(history: History) -> Iterator[str]:
    text = words.control(history)
    if text:
        yield from ["", "## The control", "", text]


def _experiment(history: History, name: str) -> Iterator[str]:
    yield f"## {plain(name)}"
    yield ""
    rows = [
        [plain(course.short_name), *_levels(history, course), words.format_whole(course)] for course in history.of(name)
    ]
    yield from table(["series", *map(plain, history.versions), plain(words.last_against_first(history))], rows)


def _levels(history: History, course: Course) -> Iterator[str]:
    for version in history.versions:
        level = course.level(version)
        yield plain(words.format_level(level, course.series.unit)) if level else ""


def _failures(history: History) -> Iterator[str]:
    failures = list(words.failures(history))
    yield from ["", "## Failed", ""] if failures else []
    for experiment, version, text in failures:
        yield f"- {plain(experiment)} on {plain(version)}: {plain(text)}"
