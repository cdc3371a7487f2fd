"""The tries: a page each, and the list of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from files.incremental import IncrementalSite, fingerprint, mark
from render import page as pages
from views.context import SiteContext

from tvmdash import common
from tvmdash.records.metrics import is_worse, way
from tvmdash.text import format_duration, format_percent, format_percent_range
from tvmdash.trials import files
from tvmdash.trials import text as words
from tvmdash.trials.files import TrialFile
from tvmdash.trials.text import Changed
from tvmdash.trials.trial import Asked, Trial, TrialSeries, TrialState, TrialTvm

PAGE = "tries.html"
FOLDER = "tries"
_STATES = {
    TrialState.RUNNING: ("unfinished", "has not ended"),
    TrialState.DONE: ("ok", "done"),
    TrialState.OVER: ("partial", "out of time"),
    TrialState.INTERRUPTED: ("unfinished", "interrupted"),
}


@dataclass(frozen=True)
class TryRow:
    """A try in the list: its page, when it was asked for, the two TVMs, what came of it, or why it cannot be read."""

    page: str
    moment: str
    candidate: str
    base: str
    state: str
    told: str
    result: str
    fault: str


@dataclass(frozen=True)
class SeriesRow:
    """A series of a try, in words; `state` is empty where it did not change."""

    name: str
    state: str
    size: str
    interval: str
    visible: str
    pairs: int


@dataclass(frozen=True)
class TryView:
    """The page of a try."""

    candidate: str
    base: str
    verdict: tuple[str, ...]
    changes: tuple[Changed, ...]
    rows: tuple[SeriesRow, ...]
    facts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    command: str
    markdown: str


def write_tries(context: SiteContext, carrier: IncrementalSite) -> None:
    """Have tries.html and the pages that it leads to; nothing where nothing was tried. Those that stay are carried."""
    if not context.tries:
        return
    carrier.folder(FOLDER)
    for path in context.tries:
        _write_one(context, carrier, path, mark(path))
    whole = fingerprint(*(f"{path.name} {mark(path)}" for path in context.tries))
    if not carrier.carry(PAGE, whole):
        rows = [_describe(files.read(path)) for path in reversed(context.tries)]
        carrier.write(PAGE, pages.render("tries/index.html", context.lasting_frame(FOLDER), rows=rows).encode(), whole)


def _write_one(context: SiteContext, carrier: IncrementalSite, path: Path, made_from: str) -> None:
    name = _page_of(path)
    if carrier.carry(name, made_from):
        return
    result = files.read(path).result
    if result is not None:
        text = pages.render("tries/try.html", context.lasting_frame(FOLDER, "../"), view=_view(result))
        carrier.write(name, text.encode(), made_from)


def _page_of(path: Path) -> str:
    name = path.stem if common.is_stamp(path.stem) else common.safe_name(path.stem)
    return f"{FOLDER}/{name}.html"


def _describe(item: TrialFile) -> TryRow:
    moment, result = item.path.stem, item.result
    if result is None:
        return TryRow("", moment, "", "", "failed", "cannot be read", "", item.fault)
    state, told = _STATES[result.state]
    candidate, base = result.candidate.asked, result.base.asked
    return TryRow(_page_of(item.path), moment, candidate, base, state, told, words.summarize(result), "")


def _view(done: Trial) -> TryView:
    return TryView(
        done.candidate.asked,
        done.base.asked,
        tuple(filter(None, words.format_verdict(done))),
        tuple(words.list_changes(done)),
        tuple(_describe_series(item) for item in done.series),
        tuple(_list_facts(done)),
        tuple(words.format_remarks(done)),
        words.format_command(done),
        words.format_markdown(done),
    )


def _list_facts(done: Trial) -> Iterator[tuple[str, str]]:
    yield "Candidate", _describe_tvm(done.candidate)
    yield "Base", _describe_tvm(done.base)
    yield "Machine", done.machine
    yield "Measured", f"{words.format_counts(done)}, in {format_duration(done.measured_s)}"
    if done.until:
        yield "Intervals", f"within ±{100 * done.until:g} % where it was long enough"
    yield "Experiments", ", ".join(done.experiments)
    for asked in done.requests.values():
        yield "Asked for by", _describe_asked(asked)


def _describe_tvm(tvm: TrialTvm) -> str:
    build = f"build {tvm.key}" if tvm.key else ""
    return ", ".join(
        filter(None, (f"TVM {tvm.version}", f"commit {tvm.commit}" if tvm.commit else "", build, tvm.note))
    )


def _describe_asked(asked: Asked) -> str:
    return f"{asked.by}, {common.format_moment(asked.at)}"


def _describe_series(item: TrialSeries) -> SeriesRow:
    change = item.change
    if change is None:
        return SeriesRow(item.name, "", "", "", "", item.pairs)
    visible = words.format_least(change.visible)
    if not change.real:
        calm = words.describe_calm(item)
        return SeriesRow(item.name, "", calm.size or calm.word, calm.interval, visible, change.pairs)
    size, interval = format_percent(change.effect), format_percent_range(change.low, change.high)
    return SeriesRow(item.name, way(is_worse(change.effect, item.direction)), size, interval, visible, change.pairs)
