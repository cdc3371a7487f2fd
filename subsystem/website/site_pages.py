"""All pages of the site."""

from __future__ import annotations

from pathlib import Path

import night_sentence
import pages
from alert_pages import write_alerts
from carrier import Carrier
from catalogue import id_of
from engine_pages import write_engines
from experiment_pages import write_experiments
from first_screen import first_screen
from machine_pages import write_machines
from night_pages import Written, write_nights
from night_results import NightResults
from score_pages import write_scores
from site_context import SiteContext
from tonight_views import experiment_views
from version_pages import write_versions

MOST_SERIES = 3000
DATA_FILES = (("feed.xml", "Feed of incidents"), ("index.json", "Data"))


def write(site: SiteContext, new: Path, carrier: Carrier) -> Written:
    """Render every page into the new site; nights and TVMs of the past that did not change are carried over.

    The site's data files, if any, are there already: pages link those that are.
    """
    views = experiment_views(site, new)
    said = night_sentence.of_tonight(site, views)
    written = write_nights(site, NightResults(site, views, said.sentence), new)
    text = pages.render(
        "index.html",
        site.frame("index"),
        view=first_screen(site, views, said),
        stamp=site.tonight.stamp,
        written=site.written,
        data_files=[(name, words) for name, words in DATA_FILES if (new / name).is_file()],
    )
    (new / "index.html").write_text(text, encoding="utf-8")
    text = pages.render(
        "series.html",
        site.frame("series"),
        series=site.series[:MOST_SERIES],
        all_series=len(site.series),
        stamp=site.tonight.stamp,
    )
    (new / "series.html").write_text(text, encoding="utf-8")
    write_experiments(site, views, new)
    write_scores(site, new)
    write_alerts(site, new)
    write_machines(site, new)
    titles = [(view.name, view.title, view.page) for view in views]
    write_engines(site, titles, new)
    write_versions(site, titles, carrier)
    first = id_of(site.series[0].id) if site.series else ""  # what the explorer shows unasked
    for page, template in pages.WITH_SCRIPTS.items():
        if page in pages.pages_with_scripts():
            text = pages.render(template, site.frame(page), first_series=first)
            (new / f"{page}.html").write_text(text, encoding="utf-8")
    return written
