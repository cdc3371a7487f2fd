"""One home, its site behind `python3 -m dashboard serve`, and one headless Chromium; pages that watch what they do."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path[:0] = [str(Path(__file__).parent), *map(str, Path(__file__).parents[1:3])]
from watching import Watched, opening  # noqa: E402 - from this folder

from tvmdash import common  # noqa: E402
from tvmdash.dashboard_info import Home  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPO = Path(__file__).resolve().parents[2]
SERIES, NIGHTS = 36, 50


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The website of a made home, in a folder that all workers of this run share."""
    import make_site_home
    from site_truth import Truth

    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = Home(shared / "site-home")
        output = home.output("website")
        if not (output / "index.json").is_file():
            shutil.rmtree(home.root, ignore_errors=True)  # what another worker could not finish
            make_site_home.make_home(home.root, Truth(SERIES, NIGHTS), traces=1)
            make_site_home.publish(home)
    return output


@pytest.fixture(scope="session")
def planted_home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The home of tests/subsystem/website/planted.py, whose truth is known, with its site."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared
    with (shared / "planted.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        home = Home(shared / "planted" / "home")
        if not (home.output("website") / "index.json").is_file():
            from tests.subsystem.website import planted

            shutil.rmtree(home.root.parent, ignore_errors=True)  # what another worker could not finish
            planted.make(home.root.parent)
    return home


@pytest.fixture(scope="module")  # no longer: tests of what a night ends would end it, as a child of their own process
def address(site: Path) -> Iterator[str]:
    """Where the site is served, ending with a slash."""
    home = site.parents[3]
    argv = [sys.executable, "-m", "dashboard", "serve", str(home)]
    path = f"{REPO}:{REPO / 'shared' / 'python'}"
    process = subprocess.Popen(
        argv,
        cwd=REPO,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if found := re.search(r"http://\S+?:\d+/", line):
                yield found[0]
                break
        else:
            pytest.fail(f"dashboard serve says no address: {''.join(lines)}")
    finally:
        process.terminate()
        process.communicate(timeout=120)


@pytest.fixture(scope="module")  # as above
def chromium() -> Iterator[Browser]:
    """The system's Chromium, headless."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed: no page was opened in a browser (Debian, Ubuntu: apt install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (tests/requirements.txt)"
    )
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def _page(chromium: Browser, address: str) -> Iterator[Watched]:
    with opening(chromium, address) as page:
        yield page
        page.begin()


@pytest.fixture
def opened(_page: Watched) -> Iterator[Watched]:
    """A page of 1280 x 720 in light colours; at the end it must have had no error, violation or foreign request."""
    _page.begin()
    yield _page
    _page.assert_quiet()


@pytest.fixture(scope="session")
def catalogue(site: Path) -> dict[str, list]:
    """The columns of index.json's series."""
    return common.read_json(site / "index.json")["series"]
