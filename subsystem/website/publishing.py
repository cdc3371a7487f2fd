"""A whole new site beside the old one, swapped in by one rename."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from data import site as site_data
from files.from_disk import write_scripts
from files.incremental import IncrementalSite
from files.static import copy_static
from hiding import hide_secrets
from pages import site as site_pages
from render import page as pages
from views.commits import Links
from views.context import SiteContext

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


def publish(
    home: Home,
    tonight: Night,
    output: Path,
    now: datetime.datetime,
    *,
    receipt_nights: int = 30,
    links: Links = Links(),  # noqa: B008 - frozen
) -> Published:
    """Make `output` the site of `home`, with `tonight` on its first page.

    Killed at any instant, `output` is the old site or the new one, whole. It belongs to the site: other files in it
    are gone afterwards. Secrets are hidden in every file of it.
    """
    target = output.resolve()  # where the operator made it a link, the folder behind it is what is swapped
    site = SiteContext(home, tonight, target, now, links=links)
    with common.folder_beside(target) as new:
        (new / "CACHEDIR.TAG").write_text(CACHE_TAG, encoding="ascii")
        copy_static(pages.STATIC, new)
        carrier = IncrementalSite.begin(target, new, site.made_by)
        counted = site_data.write(site, new, carrier, receipt_nights)
        written = site_pages.write(site, new, carrier)
        write_scripts(carrier)
        carrier.close(counted)
        hide_secrets(home, target, new)
    return Published((output / "index.html").as_uri(), written.nights, len(written.rendered))
