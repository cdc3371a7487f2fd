"""The picture in the README: the first page of a home whose truth is planted. `python tests/make_page_picture.py`

It writes docs/page.png; look at it before it is committed. Chromium must be installed.
"""

from __future__ import annotations

import datetime
import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

REPO = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPO), str(REPO / "shared" / "python")]
from tests.subsystem import scripts  # noqa: E402 - from the repository
from tests.subsystem.website import planted  # noqa: E402 - from the repository
from tvmdash import common  # noqa: E402 - from the repository

WINDOW = {"width": 1280, "height": 860}
SCALE = 0.75
COLOURS = 128
TOOK = datetime.timedelta(hours=1, minutes=3)
"""After so long the night publishes its page, and somebody opens it: a page of long ago has a notice."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = planted.make(Path(folder)).site
        stamp = planted.stamp_of(planted.TONIGHT)
        now = common.parse_stamp(stamp) + TOOK
        scripts.load("website").publishing.publish(site.home, site.home.read_night(stamp), site.folder, now)
        picture = photograph((site.folder / "index.html").as_uri(), now)
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS)
    few.save(REPO / "docs" / "page.png", optimize=True)


def photograph(address: str, now: datetime.datetime) -> bytes:
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, device_scale_factor=SCALE, color_scheme="light")
        page.clock.set_fixed_time(now)
        page.goto(address)
        page.wait_for_selector(".theme-toggle")
        return page.screenshot()


if __name__ == "__main__":
    main()
