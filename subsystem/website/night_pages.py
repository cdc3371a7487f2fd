"""One page for each night, kept for ever, and one list for each year; only what changed is rendered.

Beside each year's list lies YEAR.json: for each night, what its page was rendered from and what the list says of it.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import night_views
import pages
from site_files import carry_over

from tvmdash import common
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError

UNREADABLE = "unreadable"


@dataclass(frozen=True)
class Row:
    """A night in its year's list; `source` tells whether its record has changed since."""

    source: str
    state: str
    headline: str
    counts: Mapping[str, int]
    elapsed: str
    versions: tuple[str, ...]


@dataclass
class Written:
    """What was done: the nights that have a page, those rendered now, the years newest first."""

    nights: int = 0
    rendered: list[str] = field(default_factory=list)
    years: list[str] = field(default_factory=list)


def write_nights(home: Home, tonight: Night, old: Path, new: Path, now: datetime.datetime) -> Written:
    """Fill `new`/nights, carrying over from the site `old` what has not changed."""
    done = Written()
    (new / "nights").mkdir()
    stamps = [stamp for stamp in home.night_stamps() if _is_stamp(stamp)]
    for year, group in itertools.groupby(stamps, key=lambda stamp: stamp[:4]):
        known = _read_catalogue(old / "nights" / f"{year}.json")
        rows: dict[str, Row] = {}
        for stamp in group:
            source = _source(home.night_file(stamp))
            page = old / "nights" / f"{stamp}.html"
            row = known.get(stamp)
            if row is not None and row.source == source and page.is_file():
                carry_over(page, new / "nights" / page.name)
                rows[stamp] = row
            else:
                rows[stamp] = _write_night(home, stamp, source, new, now if stamp == tonight.stamp else None)
                done.rendered.append(stamp)
        _write_year(year, rows, rows == known, old, new)
        done.nights += len(rows)
        done.years.insert(0, year)
    return done


def _is_stamp(text: str) -> bool:
    with contextlib.suppress(DashboardError):  # a stray file in the folder of nights is no night
        common.parse_stamp(text)
        return True
    return False


def _source(record: Path) -> str:
    status = record.stat()
    return f"{status.st_size}-{status.st_mtime_ns}"


def _write_night(home: Home, stamp: str, source: str, new: Path, now: datetime.datetime | None) -> Row:
    try:
        night, fault = home.read_night(stamp), ""
    except DashboardError as error:
        night, fault = Night(stamp, UNREADABLE), str(error)
    verdict = night_views.judge(night, now)
    text = pages.render(
        "night.html",
        "../",
        night=night,
        stamp=stamp,
        verdict=verdict,
        fault=fault,
        failures=night_views.failures(night.jobs),
        jobs=[*night_views.experiments(night), *night_views.subsystems(night)],
    )
    common.write_text(new / "nights" / f"{stamp}.html", text)
    headline = "Its record cannot be read" if fault else verdict.headline
    return Row(source, verdict.state, headline, verdict.counts, verdict.elapsed, verdict.versions)


def _write_year(year: str, rows: Mapping[str, Row], unchanged: bool, old: Path, new: Path) -> None:  # noqa: FBT001
    names = (f"nights/{year}.html", f"nights/{year}.json")
    if unchanged and all((old / name).is_file() for name in names):
        for name in names:
            carry_over(old / name, new / name)
        return
    text = pages.render("year.html", "../", year=year, rows=sorted(rows.items(), reverse=True))
    common.write_text(new / names[0], text)
    nights = {stamp: asdict(row) for stamp, row in rows.items()}
    common.write_json(new / names[1], {"schema_version": 1, "renderer": pages.renderer_version(), "nights": nights})


def _read_catalogue(path: Path) -> dict[str, Row]:
    """The rows by stamp of a list that this code wrote; empty otherwise, and all of it is rendered."""
    with contextlib.suppress(DashboardError, KeyError, TypeError, AttributeError):
        value = common.read_json(path)
        if value["renderer"] == pages.renderer_version():
            return {stamp: Row(**{**row, "versions": tuple(row["versions"])}) for stamp, row in value["nights"].items()}
    return {}
