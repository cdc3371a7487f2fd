"""A whole new site beside the old one, swapped in by one rename."""

from __future__ import annotations

import datetime
import shutil
from dataclasses import dataclass
from pathlib import Path

import night_pages
import night_views
import pages
import strip
import tonight_views

from tvmdash import common
from tvmdash.dashboard_info import Home, Night

CACHE_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Made from the home's records by the website subsystem; archives of the home leave it out.\n"
    "# https://bford.info/cachedir/\n"
)


@dataclass(frozen=True)
class Published:
    """The first page as a URL, how many nights have a page, and how many of these were rendered now."""

    page: str
    nights: int
    rendered_nights: int


def publish(home: Home, tonight: Night, output: Path, now: datetime.datetime) -> Published:
    """Make `output` the site of `home`, with `tonight` on its first page.

    Killed at any instant, `output` is the old site or the new one, whole. It belongs to the site: other files in it
    are gone afterwards.
    """
    place = output.resolve()  # where the operator made it a link, the folder behind it is what is swapped
    with common.folder_beside(place) as new:
        common.write_text(new / "CACHEDIR.TAG", CACHE_TAG)
        for path in pages.STATIC.iterdir():
            shutil.copyfile(path, new / path.name)
        written = night_pages.write_nights(home, tonight, place, new, now)
        _write_first_page(home, tonight, place, new, now, written.years)
    return Published((output / "index.html").as_uri(), written.nights, len(written.rendered))


def _write_first_page(
    home: Home, tonight: Night, place: Path, new: Path, now: datetime.datetime, years: list[str]
) -> None:
    views = tonight_views.experiment_views(home, tonight, new)
    points = tonight_views.all_points(views)
    text = pages.render(
        "index.html",
        "",
        night=tonight,
        stamp=tonight.stamp,
        verdict=tonight_views.with_points(night_views.judge(tonight, now), points),
        failures=night_views.failures(tonight.jobs),
        experiments=views,
        points=points,
        with_failed_points=[view for view in views if view.points and view.points.failed],
        reports=tonight_views.report_views(home, tonight, place),
        inactive=tonight_views.inactive_experiments(home),
        strip=strip.make_strip(home, tonight),
        years=years,
        written=common.stamp_of(now),
    )
    common.write_text(new / "index.html", text)
