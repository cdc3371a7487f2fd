"""One page for each night, kept for ever, and one list for each year; only what changed is rendered.

Beside each year's list lies YEAR.json: for each night, what its page was rendered from and what the list says of it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import night_views
import pages
from night_results import Kept, NightResults, Results
from pages import Frame
from site_context import SiteContext
from site_files import carry_over

from tvmdash import common
from tvmdash.dashboard_info import Night
from tvmdash.errors import DashboardError

UNREADABLE = "unreadable"
SCHEMA_VERSION = 2
MOST_IN_INDEX = 60


@dataclass(frozen=True)
class Row:
    """A night in its year's list; `source` tells whether what its page shows has changed since."""

    source: str
    state: str
    headline: str
    counts: Mapping[str, int]
    elapsed: str
    elapsed_s: float
    versions: tuple[str, ...]
    begun: tuple[tuple[str, str, bool], ...] = ()
    kept: Kept = field(default_factory=Kept)


@dataclass
class Written:
    """What was done: the nights that have a page, those rendered now, the years newest first with their nights."""

    nights: int = 0
    rendered: list[str] = field(default_factory=list)
    years: list[str] = field(default_factory=list)
    rows: dict[str, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class _Known:
    """A year as the old site has it: rows that are still good, and what was kept of any night."""

    rows: Mapping[str, Row]
    kept: Mapping[str, Kept]


def write_nights(context: SiteContext, results: NightResults, new: Path) -> Written:
    """Fill `new`/nights, carrying over from the old site what has not changed."""
    done = Written()
    old = context.old
    (new / "nights").mkdir()
    stamps = [stamp for stamp in context.home.night_stamps() if _is_stamp(stamp)]
    for year, group in itertools.groupby(stamps, key=lambda stamp: stamp[:4]):
        known = _read_catalogue(old / "nights" / f"{year}.json")
        rows: dict[str, Row] = {}
        for stamp in group:
            brought = results.of(stamp, known.kept.get(stamp, Kept()))
            source = f"{_source(context.home.night_file(stamp))}-{brought.fingerprint}"
            page = old / "nights" / f"{stamp}.html"
            row = known.rows.get(stamp)
            if row is not None and row.source == source and page.is_file():
                carry_over(page, new / "nights" / page.name)
                rows[stamp] = row
            else:
                rows[stamp] = _write_night(context, stamp, source, brought, new)
                done.rendered.append(stamp)
        _write_year(year, rows, known, old, new)
        done.nights += len(rows)
        done.years.insert(0, year)
        done.rows.update(rows)
    newest = sorted(done.rows.items(), reverse=True)
    text = pages.render(
        "nights.html",
        context.frame("nights", "../"),
        rows=newest[:MOST_IN_INDEX],
        years=[(year, sum(stamp.startswith(year) for stamp in done.rows)) for year in done.years],
    )
    (new / "nights" / "index.html").write_text(text, encoding="utf-8")
    return done


def _is_stamp(text: str) -> bool:
    with contextlib.suppress(DashboardError):  # a stray file in the folder of nights is no night
        common.parse_stamp(text)
        return True
    return False


def _source(record: Path) -> str:
    status = record.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def _write_night(context: SiteContext, stamp: str, source: str, results: Results, new: Path) -> Row:
    try:
        night, fault = context.home.read_night(stamp), ""
    except DashboardError as error:
        night, fault = Night(stamp, UNREADABLE), str(error)
    verdict = night_views.judge(night, context.now if stamp == context.tonight.stamp else None)
    text = pages.render(
        "night.html",
        Frame("nights", "../"),
        night=night,
        stamp=stamp,
        verdict=verdict,
        fault=fault,
        results=results,
        failures=night_views.failures(night.jobs),
        jobs=[*night_views.experiments(night), *night_views.subsystems(night)],
    )
    (new / "nights" / f"{stamp}.html").write_text(text, encoding="utf-8")
    headline = "Its record cannot be read" if fault else verdict.headline
    begun = tuple((one.id, one.headline, one.worse) for one in results.begun)
    return Row(
        source,
        verdict.state,
        headline,
        verdict.counts,
        verdict.elapsed,
        night.elapsed_s,
        verdict.versions,
        begun,
        results.kept,
    )


def _write_year(year: str, rows: Mapping[str, Row], known: _Known, old: Path, new: Path) -> None:
    names = (f"nights/{year}.html", f"nights/{year}.json")
    if rows == known.rows and all((old / name).is_file() for name in names):
        for name in names:
            carry_over(old / name, new / name)
        return
    text = pages.render("year.html", Frame("nights", "../"), year=year, rows=sorted(rows.items(), reverse=True))
    (new / names[0]).write_text(text, encoding="utf-8")
    nights = {stamp: asdict(row) for stamp, row in rows.items()}
    value = {"schema_version": SCHEMA_VERSION, "renderer": pages.renderer_version(), "nights": nights}
    common.write_json(new / names[1], value, durable=False)


def _read_catalogue(path: Path) -> _Known:
    """A list that this code wrote; of one that other code wrote, what was kept; nothing of any other file."""
    rows: dict[str, Row] = {}
    kept: dict[str, Kept] = {}
    with contextlib.suppress(DashboardError, KeyError, TypeError, AttributeError, ValueError):
        value = common.read_json(path)
        kept = {stamp: Kept.from_json(row.get("kept", {})) for stamp, row in value["nights"].items()}
        if value["renderer"] == pages.renderer_version():
            rows = {
                stamp: Row(
                    **{
                        **row,
                        "versions": tuple(row["versions"]),
                        "begun": tuple(map(tuple, row["begun"])),
                        "kept": kept[stamp],
                    }
                )
                for stamp, row in value["nights"].items()
            }
    return _Known(rows, kept)
