"""The website subsystem: the page that people open in the morning, as static files in the output folder."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import publishing
from views.commits import Links

from tvmdash import common
from tvmdash.common.http_util import is_link
from tvmdash.config_util import JobConfig
from tvmdash.dashboard_info import Home, Night
from tvmdash.subsys_templates import Report, Subsystem


@dataclass(frozen=True, kw_only=True)
class WebsiteConfig(JobConfig):
    """Made from fields.json by tests/make_config_classes.py."""

    receipt_nights: int
    commit_url: str
    compare_url: str


class Website(Subsystem[WebsiteConfig]):
    """Publishes tonight's page and the pages of the nights that changed."""

    def faults(self, config: WebsiteConfig, shown: str, home: Home) -> Sequence[str]:
        wanted = {"commit_url": ("{commit}",), "compare_url": ("{before}", "{after}")}
        return [
            f"{shown}: $.{name}: {url!r:.100} is no address with {' and '.join(parts)}. Use https://HOST/PATH."
            for name, parts in wanted.items()
            if (url := getattr(config, name)) and not (is_link(url) and all(part in url for part in parts))
        ]

    def work(self, config: WebsiteConfig, output: Path, home: Home, tonight: Night) -> Report:
        links = Links(config.commit_url, config.compare_url)
        done = publishing.publish(
            home, tonight, output, common.utc_now(), receipt_nights=config.receipt_nights, links=links
        )
        pages = f"{done.rendered_nights} of {done.nights} night pages were rewritten"
        return Report("Website", f"The page of night {tonight.stamp} is {done.page}; {pages}.")


if __name__ == "__main__":
    gc.disable()  # a publish leaves nearly nothing in cycles (a megabyte), and looking for it takes a twentieth
    sys.exit(Website().main())
