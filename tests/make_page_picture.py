"""The picture in the README: the first page of the demo. `python tests/make_page_picture.py`

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
from docs.demo import make  # noqa: E402 - from the repository

LAST = datetime.datetime(2026, 11, 28, 3, 15, tzinfo=datetime.UTC)
WINDOW = {"width": 1280, "height": 860}
SCALE = 0.75
COLOURS = 128


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = make.make(Path(folder, "home"), make.Story(LAST))
        picture = photograph((home.output("website") / "index.html").as_uri(), LAST + 2 * make.TOOK)
    few = Image.open(io.BytesIO(picture)).convert("RGB").quantize(COLOURS)
    few.save(REPO / "docs" / "page.png", optimize=True)


def photograph(address: str, now: datetime.datetime) -> bytes:
    """The page as somebody sees it at that moment: a page of long ago has a notice."""
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=WINDOW, device_scale_factor=SCALE, color_scheme="light")
        page.clock.set_fixed_time(now)
        page.goto(address)
        page.wait_for_selector(".theme-toggle")
        return page.screenshot()


if __name__ == "__main__":
    main()
