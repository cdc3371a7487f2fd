"""The site's data files: the catalogue, the shards of series, receipts, incidents and their feed."""

from __future__ import annotations

from pathlib import Path

import api_index
import feed
import receipt_data
import shards
from carrier import Carrier, code_version
from catalogue import Stores, read_catalogue
from site_context import SiteContext


def write(site: SiteContext, new: Path, receipt_nights: int) -> None:
    """Fill the new site with all data files, carrying over from the old one what has not changed."""
    carrier = Carrier.begin(site.old, new, code_version())
    with Stores(site.home) as stores:
        catalogue = read_catalogue(site, stores, carrier.counted)
        shards.write_shards(catalogue, stores, carrier)
    receipt_data.write_receipts(site, catalogue, carrier, receipt_nights)
    (new / "incidents.json").write_bytes(feed.incidents_of(site, catalogue))
    (new / "feed.xml").write_bytes(feed.feed_of(site, receipt_data.top_config(site.home, "website_url")))
    (new / "index.json").write_bytes(api_index.index_of(site, catalogue))
    carrier.close(catalogue.counted)
