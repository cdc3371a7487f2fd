"""The website subsystem: the page that people open in the morning, as static files in the output folder."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import publishing

from tvmdash import common
from tvmdash.dashboard_info import Home, Night
from tvmdash.subsys_templates import Report, Subsystem


class Website(Subsystem):
    """Publishes tonight's page and the pages of the nights that changed."""

    def work(self, config: Mapping[str, Any], output: Path, home: Home, tonight: Night) -> Report:
        done = publishing.publish(home, tonight, output, common.utc_now(), receipt_nights=config["receipt_nights"])
        pages = f"{done.rendered_nights} of {done.nights} nights' pages were written anew"
        return Report("Website", f"The page of night {tonight.stamp} is {done.page}; {pages}.")


if __name__ == "__main__":
    gc.disable()  # a publish leaves nearly nothing in cycles (a megabyte), and looking for it takes a twentieth
    sys.exit(Website().main())
