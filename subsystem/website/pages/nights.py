"""One page for each night, kept for ever, and one list for each year; only what changed is rendered.

Beside each year's list lies YEAR.json: for each night, what the list says of it.
What only the night itself could tell is in the home's ledger.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from files.incremental import IncrementalSite, fingerprint, mark
from render import page as pages
from views import night as night_views
from views.commits import list_new
from views.context import SiteContext
from views.night_results import KeptResults, Results, ResultsView

from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import Night
from tvmdash.errors import DashboardError
from tvmdash.records.metrics import Way
from tvmdash.store import read_pages
from tvmdash.verdict import ledger
from tvmdash.verdict.account import sort_experiments

FOLDER = "nights"
UNREADABLE = "unreadable"
SCHEMA_VERSION = 3
MOST_IN_INDEX = 60


@dataclass(frozen=True)
class NightRow:
    """A night in its year's list."""

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
    """The work done: the nights that have a page, those rendered now, the years newest first with their nights."""

    nights: int = 0
    rendered: list[str] = field(default_factory=list)
    years: list[str] = field(default_factory=list)
    rows: dict[str, NightRow] = field(default_factory=dict)


def write_nights(context: SiteContext, results: ResultsView, carrier: IncrementalSite) -> WrittenNight:
    """Fill nights/ of the new site, carrying over from the old one what has not changed."""
    carrier.folder(FOLDER)
    stamps = context.home.night_stamps()
    names = sorted({stamp[:4] for stamp in stamps}, reverse=True)
    frame = context.lasting_frame("nights", "../")
    pages_kept = _read_kept(context)
    years = {year: _read_catalogue(context.old / FOLDER / f"{year}.json") for year in names}
    rows: dict[str, NightRow] = {}
    rendered = []
    for stamp in stamps:
        known, kept = years[stamp[:4]].get(stamp, (None, KeptResults()))
        brought = results.of(stamp, pages_kept.get(stamp) or kept)
        if stamp not in pages_kept and brought.kept != KeptResults():
            ledger.append(context.home, stamp, ledger.PAGE, structured.to_json(brought.kept))
        name, made_from = f"{FOLDER}/{stamp}.html", f"{mark(context.home.night_file(stamp))}-{brought.fingerprint}"
        if known is not None and carrier.carry(name, made_from):
            rows[stamp] = known
        else:
            text, rows[stamp] = _render_night(context, stamp, brought)
            carrier.write(name, text.encode(), made_from)
            rendered.append(stamp)
    done = WrittenNight(len(rows), rendered, names, rows)
    gone = _find_gone(rows)
    for year in names:
        own = {stamp: row for stamp, row in sorted(rows.items()) if stamp[:4] == year}
        made_from = fingerprint(*(f"{stamp} {carrier.files[f'{FOLDER}/{stamp}.html'][0]}" for stamp in own))
        page, data = f"{FOLDER}/{year}.html", f"{FOLDER}/{year}.json"
        if own.keys().isdisjoint(rendered) and carrier.carry(page, made_from) and carrier.carry(data, made_from):
            continue
        text = pages.render("nights/year.html", frame, year=year, rows=list(own.items())[::-1], gone=gone)
        carrier.write(page, text.encode(), made_from)
        value = {
            "schema_version": SCHEMA_VERSION,
            "nights": {stamp: structured.to_json(row) for stamp, row in own.items()},
        }
        carrier.write(data, f"{json.dumps(value, separators=(',', ':'), allow_nan=False)}\n".encode("ascii"), made_from)
    _write_index(context, done, carrier.new, gone)
    return done


def _read_kept(context: SiteContext) -> dict[str, KeptResults]:
    """Read what was kept of each night, but of tonight, which says it anew."""
    pages = read_pages(context.home)
    return {stamp: KeptResults.from_json(page, "") for stamp, page in pages.items() if stamp != context.tonight.stamp}


def _find_gone(rows: Mapping[str, NightRow]) -> dict[str, tuple[str, ...]]:
    """Find for each night the experiments that took part the night before and no more."""
    ordered = [(stamp, row) for stamp, row in sorted(rows.items()) if row.experiments]
    return {
        stamp: tuple(title for title in before.experiments if title not in row.experiments)
        for (_, before), (stamp, row) in itertools.pairwise(ordered)
    }


def _write_index(context: SiteContext, done: WrittenNight, new: Path, gone: Mapping[str, Sequence[str]]) -> None:
    newest = sorted(done.rows.items(), reverse=True)
    text = pages.render(
        "nights/index.html",
        context.frame("nights", "../"),
        rows=newest[:MOST_IN_INDEX],
        gone=gone,
        years=[(year, sum(stamp.startswith(year) for stamp in done.rows)) for year in done.years],
    )
    (new / "nights" / "index.html").write_text(text, encoding="utf-8")


def _render_night(context: SiteContext, stamp: str, results: Results) -> tuple[str, NightRow]:
    try:
        night, fault = context.home.read_night(stamp), ""
    except DashboardError as error:
        night, fault = Night(stamp, UNREADABLE), str(error)
    verdict = night_views.judge(night, is_tonight=stamp == context.tonight.stamp)
    text = pages.render(
        "nights/night.html",
        context.lasting_frame("nights", "../"),
        night=night,
        stamp=stamp,
        is_first=stamp == context.stamps[0],
        verdict=verdict,
        fault=fault,
        results=results,
        failures=night_views.failures(night.jobs),
        new=list_new(night, context.links),
        jobs=[*sort_experiments(night), *night_views.subsystems(night)],
    )
    headline = "Its record could not be read" if fault else verdict.headline
    begun = tuple((incident.id, incident.headline, incident.way) for incident in results.begun)
    return text, NightRow(
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


def _read_catalogue(path: Path) -> dict[str, tuple[NightRow | None, KeptResults]]:
    """Read by night its row in a list that this code wrote, and what any code kept of it; nothing of any other file."""
    found: dict[str, tuple[NightRow | None, KeptResults]] = {}
    with contextlib.suppress(DashboardError, KeyError, TypeError, AttributeError):
        for stamp, value in common.read_json(path)["nights"].items():
            row = None
            with contextlib.suppress(DashboardError):
                row = structured.from_json(NightRow, value, path)
            found[stamp] = row, KeptResults.from_json(value.get("kept", {}), value.get("headline", ""))
    return found
