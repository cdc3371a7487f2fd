"""One page for each night, kept for ever, and one list for each year; only what changed is rendered.

Beside each year's list lies YEAR.json: for each night, what its page was rendered from and what the list says of it.
What only the night itself could tell is in the home's ledger.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from files import forked
from files.files import carry_over, write_data, write_new
from files.incremental import mark
from render import page as pages
from views import night as night_views
from views.commits import list_new
from views.context import SiteContext
from views.night_results import KeptResults, Results, ResultsView

from tvmdash import common, structured
from tvmdash.account import sort_experiments
from tvmdash.dashboard_info import Night
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import Way
from tvmdash.store import read_pages
from tvmdash.verdict import ledger

UNREADABLE = "unreadable"
SCHEMA_VERSION = 3
MOST_IN_INDEX = 60
_LEAST_IN_PROCESS = 50
"""Fewer pages are written sooner than a process is forked."""


@dataclass(frozen=True)
class NightRow:
    """A night in its year's list; `source` tells whether what its page shows has changed since."""

    source: str
    state: str
    headline: str
    counts: Mapping[str, int]
    elapsed: str
    elapsed_s: float
    versions: tuple[str, ...]
    begun: tuple[tuple[str, str, Way], ...] = ()
    kept: KeptResults = field(default_factory=KeptResults)
    experiments: tuple[str, ...] = ()


@dataclass
class WrittenNight:
    """What was done: the nights that have a page, those rendered now, the years newest first with their nights."""

    nights: int = 0
    rendered: list[str] = field(default_factory=list)
    years: list[str] = field(default_factory=list)
    rows: dict[str, NightRow] = field(default_factory=dict)


@dataclass(frozen=True)
class _KnownNight:
    """A year as the old site has it: rows that are still good, and what was kept of any night."""

    rows: Mapping[str, NightRow]
    kept: Mapping[str, KeptResults]


@dataclass(frozen=True)
class _Page:
    """The page of a night: what it is made from, and what the night brought."""

    stamp: str
    source: str
    brought: Results


def write_nights(context: SiteContext, results: ResultsView, new: Path) -> WrittenNight:
    """Fill `new`/nights, carrying over from the old site what has not changed."""
    (new / "nights").mkdir()
    stamps = context.home.night_stamps()
    names = sorted({stamp[:4] for stamp in stamps}, reverse=True)
    frame = context.lasting_frame("nights", "../")
    pages_kept = _read_kept(context)
    years = {year: _read_catalogue(context.old / "nights" / f"{year}.json", context.made_by) for year in names}
    rows: dict[str, NightRow] = {}
    changed = []
    for stamp in stamps:
        known = years[stamp[:4]]
        brought = results.of(stamp, pages_kept.get(stamp) or known.kept.get(stamp, KeptResults()))
        if stamp not in pages_kept and brought.kept != KeptResults():
            ledger.append(context.home, stamp, ledger.PAGE, structured.to_json(brought.kept))
        page = _Page(stamp, f"{mark(context.home.night_file(stamp))}-{brought.fingerprint}", brought)
        row = known.rows.get(stamp)
        if row is not None and row.source == page.source and _carried(f"{stamp}.html", context.old, new):
            rows[stamp] = row
        else:
            changed.append(page)
    for written in forked.in_parts(lambda part: _write(context, part, new), changed, least=_LEAST_IN_PROCESS):
        rows.update(written)
    done = WrittenNight(len(rows), [page.stamp for page in changed], list(years), rows)
    gone = _find_gone(rows)
    for year, known in years.items():
        own = {stamp: row for stamp, row in rows.items() if stamp[:4] == year}
        if (
            own == known.rows
            and _carried(f"{year}.html", context.old, new)
            and _carried(f"{year}.json", context.old, new)
        ):
            continue
        text = pages.render("year.html", frame, year=year, rows=sorted(own.items(), reverse=True), gone=gone)
        write_new(f"{new}/nights/{year}.html", text.encode())
        nights = {stamp: structured.to_json(row) for stamp, row in sorted(own.items())}
        value = {"schema_version": SCHEMA_VERSION, "renderer": context.made_by, "nights": nights}
        write_data(f"{new}/nights/{year}.json", value)
    _write_index(context, done, new, gone)
    return done


def _read_kept(context: SiteContext) -> dict[str, KeptResults]:
    """What was kept of each night, but of tonight, which says it anew."""
    pages = read_pages(context.home)
    return {stamp: KeptResults.from_json(page, "") for stamp, page in pages.items() if stamp != context.tonight.stamp}


def _find_gone(rows: Mapping[str, NightRow]) -> dict[str, tuple[str, ...]]:
    """For each night, the experiments that took part the night before and no more."""
    ordered = [(stamp, row) for stamp, row in sorted(rows.items()) if row.experiments]
    return {
        stamp: tuple(title for title in before.experiments if title not in row.experiments)
        for (_, before), (stamp, row) in itertools.pairwise(ordered)
    }


def _write_index(context: SiteContext, done: WrittenNight, new: Path, gone: Mapping[str, Sequence[str]]) -> None:
    newest = sorted(done.rows.items(), reverse=True)
    text = pages.render(
        "nights.html",
        context.frame("nights", "../"),
        rows=newest[:MOST_IN_INDEX],
        gone=gone,
        years=[(year, sum(stamp.startswith(year) for stamp in done.rows)) for year in done.years],
    )
    (new / "nights" / "index.html").write_text(text, encoding="utf-8")


def _carried(name: str, old: Path, new: Path) -> bool:
    """Whether the page is in the old site, and now in the new one too."""
    try:
        carry_over(f"{old}/nights/{name}", f"{new}/nights/{name}")
    except FileNotFoundError:
        return False
    return True


def _write(context: SiteContext, changed: Sequence[_Page], new: Path) -> dict[str, NightRow]:
    return {page.stamp: _write_night(context, page, new) for page in changed}


def _write_night(context: SiteContext, page: _Page, new: Path) -> NightRow:
    stamp, results = page.stamp, page.brought
    try:
        night, fault = context.home.read_night(stamp), ""
    except DashboardError as error:
        night, fault = Night(stamp, UNREADABLE), str(error)
    verdict = night_views.judge(night, is_tonight=stamp == context.tonight.stamp)
    text = pages.render(
        "night.html",
        context.lasting_frame("nights", "../"),
        night=night,
        stamp=stamp,
        verdict=verdict,
        fault=fault,
        results=results,
        failures=night_views.failures(night.jobs),
        new=list_new(night, context.links),
        jobs=[*sort_experiments(night), *night_views.subsystems(night)],
    )
    write_new(f"{new}/nights/{stamp}.html", text.encode())
    headline = "Its record could not be read" if fault else verdict.headline
    begun = tuple((incident.id, incident.headline, incident.way) for incident in results.begun)
    return NightRow(
        page.source,
        verdict.state,
        headline,
        verdict.counts,
        verdict.elapsed,
        night.elapsed_s,
        verdict.versions,
        begun,
        results.kept,
        tuple(job.title for job in sort_experiments(night)),
    )


def _read_catalogue(path: Path, made_by: str) -> _KnownNight:
    """A list that this code wrote; of one that other code wrote, what was kept; nothing of any other file."""
    rows: dict[str, NightRow] = {}
    kept: dict[str, KeptResults] = {}
    with contextlib.suppress(DashboardError, KeyError, TypeError, AttributeError):
        value = common.read_json(path)
        nights = value["nights"].items()
        kept = {stamp: KeptResults.from_json(row.get("kept", {}), row.get("headline", "")) for stamp, row in nights}
        if value["renderer"] == made_by:
            rows = {stamp: structured.from_json(NightRow, row, path) for stamp, row in nights}
    return _KnownNight(rows, kept)
