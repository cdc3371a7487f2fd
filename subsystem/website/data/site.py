"""The site's data files: the catalogue, the shards of series, receipts, incidents and their feed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from files.incremental import IncrementalSite
from views.context import SiteContext

from data import code_changes, feed, night_columns, receipts, shards
from data import index as api_index
from data.catalogue import Stores, read_catalogue


def write(site: SiteContext, new: Path, carrier: IncrementalSite, receipt_nights: int) -> Mapping[str, Any]:
    """Fill the new site with all data files, carrying over from the old one what has not changed.

    What was counted, for the next publish.
    """
    with Stores(site.home) as stores:
        catalogue = read_catalogue(site, stores, carrier.counted)
        shards.write_shards(catalogue, stores, carrier)
        night_columns.write_night_columns(catalogue, stores, carrier)
    receipts.write_receipts(site, catalogue, carrier, receipt_nights)
    code_changes.write_code_changes(site, carrier)
    (new / "incidents.json").write_bytes(feed.incidents_of(site, catalogue))
    (new / "feed.xml").write_bytes(feed.feed_of(site, receipts.top_config(site.home, "website_url")))
    (new / "index.json").write_bytes(api_index.index_of(site, catalogue))
    return catalogue.counted
