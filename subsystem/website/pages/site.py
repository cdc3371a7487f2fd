"""All pages of the site."""

from __future__ import annotations

from pathlib import Path

from files.incremental import IncrementalSite
from incident.page import write_incidents
from render import page as pages
from views.context import SiteContext
from views.night_results import ResultsView
from views.tonight import experiment_views

from pages.alerts import write_alerts
from pages.code_changes import write_code_pages
from pages.engines import write_engines
from pages.experiments import write_experiments
from pages.hosts import write_hosts
from pages.index_page import make_index_page
from pages.machines import write_machines
from pages.nights import WrittenNight, write_nights
from pages.scores import write_scores
from pages.tries import write_tries

MOST_SERIES = 3000
DATA_FILES = (("feed.xml", "Feed of incidents"), ("index.json", "Data"))


def write(site: SiteContext, new: Path, carrier: IncrementalSite, first_series: str) -> WrittenNight:
    """Render every page into the new site; nights and TVMs of the past that did not change are carried over.

    The site's data files, if any, are there already: pages link those that are. first_series: the file of what the
    explorer shows unasked.
    """
    views = experiment_views(site, new)
    written = write_nights(site, ResultsView(site, views), carrier)
    html = pages.render(
        "index.html",
        site.frame("index"),
        site=site,
        view=make_index_page(site, views, {stamp: (row.state, row.kept) for stamp, row in written.rows.items()}),
        stamp=site.tonight.stamp,
        written=site.written,
        data_files=[(name, description) for name, description in DATA_FILES if (new / name).is_file()],
    )
    (new / "index.html").write_text(html, encoding="utf-8")
    html = pages.render(
        "series.html",
        site.frame("series"),
        series=site.series[:MOST_SERIES],
        all_series=len(site.series),
        stamp=site.tonight.stamp,
    )
    (new / "series.html").write_text(html, encoding="utf-8")
    for name in ("live", "versions"):
        (new / f"{name}.html").write_text(pages.render(f"scripted/{name}.html", site.frame(name)), encoding="utf-8")
    write_code_pages(site, carrier)
    write_experiments(site, views, new)
    write_scores(site, new)
    write_alerts(site, new)
    write_incidents(site, carrier)
    write_machines(site, new)
    titles = [(view.name, view.title, view.page) for view in views]
    write_engines(site, titles, new)
    write_tries(site, carrier)
    write_hosts(site, carrier)
    for page, template in pages.WITH_SCRIPTS.items():
        html = pages.render(template, site.frame(page), first_series=first_series)
        (new / f"{page}.html").write_text(html, encoding="utf-8")
    return written
