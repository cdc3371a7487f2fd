"""What a running night does, in pages that are open meanwhile: served, and from disk."""

from __future__ import annotations

import contextlib
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from site_truth import HOSTILE
from test_pages import barriers
from watching import Watched, opening

from dashboard.night import progress
from dashboard.plan.job import Job
from dashboard.report import site_server
from tvmdash import common
from tvmdash.dashboard_info import OK, Home, StepResult, stages
from tvmdash.dashboard_info.pages import LIVE_FILE

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUN = next(stage for stage in stages.EXPERIMENT.stages if stage.name == "run")
HOURLY = "Date.now = ((now) => () => now() + 3600e3)(Date.now)"
"""An hour later, by the reader's clock."""


@pytest.fixture
def home(planted_home: Home, tmp_path: Path) -> Home:
    shutil.copytree(planted_home.root, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


def begin(night: progress.Progress, name: str, folder: Path) -> Job:
    """The run of an experiment of that name, which has measured 7 of 12 points."""
    folder.mkdir(exist_ok=True)
    common.write_json(folder / stages.POINTS_FILE, {"measured": 7, "points": 12})
    job = Job("experiment", name, folder, folder, {}, None)
    night.begin(job, RUN, folder, 300.0)
    return job


@contextlib.contextmanager
def ending(server: site_server.LimitedServer) -> Iterator[None]:
    """It answers until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def wait_for(page: Watched, words: str) -> None:
    """Until the part of the page that lives says it; it asks every ten seconds."""
    page.page.locator("[data-live]").filter(has_text=re.compile(words)).wait_for(timeout=60_000)


def without_barriers(page: Watched, *, is_served: bool) -> None:
    """As axe says, which asks for the style sheets: a page from disk is let read none."""
    assert not is_served or barriers(page) == []


@pytest.mark.parametrize("is_served", [True, False])
def test_an_open_page_follows_the_night(chromium: Browser, home: Home, tmp_path: Path, is_served: bool) -> None:
    site, stamp = home.output("website").resolve(), common.stamp_of(common.utc_now())
    with site_server.make_server(home, "127.0.0.1", 0) as server, ending(server):
        address = f"http://127.0.0.1:{server.server_address[1]}/" if is_served else f"{site.as_uri()}/"
        with opening(chromium, address, viewport={"width": 390, "height": 844}) as page:
            page.go("live.html")
            wait_for(page, "^No night has run since this site was made")
            with progress.Progress(9, home, stamp) as night:
                job = begin(night, HOSTILE, tmp_path / "raw")
                wait_for(page, "is running")
                said = page.text("[data-live]")
                assert "7 of 12 points measured" in said
                assert "<img src=x" in said, "the name is text"
                assert "0 of 9 done" in said
                assert page.page.locator("progress").get_attribute("value") == "7"
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
                without_barriers(page, is_served=is_served)
                page.go("index.html")
                wait_for(page, "A night has been running since")
                without_barriers(page, is_served=is_served)
                night.end(job, StepResult("run", OK, "good", stamp))
                page.go("live.html")
                wait_for(page, "1 of 9 done")
            wait_for(page, "ended at")
            page.go("index.html")
            page.settle()
            assert page.page.locator("[data-live]").is_hidden()


def test_a_night_that_died_is_said_to_have_died(chromium: Browser, home: Home, tmp_path: Path) -> None:
    site = home.output("website").resolve()
    with progress.Progress(9, home, common.stamp_of(common.utc_now())) as night:
        begin(night, "cnn", tmp_path / "raw")
        left = (site / LIVE_FILE).read_bytes()
    (site / LIVE_FILE).write_bytes(left)
    with opening(chromium, f"{site.as_uri()}/") as page:
        page.page.add_init_script(HOURLY)
        page.go("live.html")
        wait_for(page, "has not been heard of for 1 h")
        page.go("index.html")
        page.settle()
        assert page.page.locator("[data-live]").is_hidden()


def test_an_interrupted_night_says_so(chromium: Browser, home: Home, tmp_path: Path) -> None:
    night = progress.Progress(9, home, common.stamp_of(common.utc_now()))
    night.__enter__()
    begin(night, "cnn", tmp_path / "raw")
    night.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    with opening(chromium, f"{home.output('website').resolve().as_uri()}/") as page:
        page.go("live.html")
        wait_for(page, "was interrupted at")
