"""An incident is settled in its page, with the keyboard, and stands there so from then on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from test_pages import barriers
from watching import opening

from tvmdash.dashboard_info import Home
from tvmdash.incidents import file as incident_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture
def home(planted_home: Home, tmp_path: Path) -> Home:
    shutil.copytree(planted_home.root, tmp_path / "home", symlinks=True)
    return Home(tmp_path / "home")


@pytest.fixture
def address(home: Home) -> Iterator[str]:
    argv = [sys.executable, "-m", "dashboard", "serve", str(home.root), "--triage"]
    environment = {**os.environ, "PYTHONPATH": f"{REPO}:{REPO / 'shared' / 'python'}"}
    with subprocess.Popen(argv, cwd=REPO, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield next(word for word in process.stdout.readline().split() if word.startswith("http://"))
        process.terminate()


@pytest.mark.parametrize("dark", [False, True])
def test_an_incident_is_acknowledged_in_its_page(chromium: Browser, address: str, home: Home, dark: bool) -> None:
    (incident, *_) = incident_file.read_ledger(home).open()
    options = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark" if dark else "light"}
    with opening(chromium, address, **options) as page:
        page.go(f"incidents/{incident.id}.html")
        form = page.page.locator("form.triage")
        form.get_by_label("Why").fill("looking at it")
        form.get_by_label("Your name").fill("ann")
        form.get_by_label("Your name").press("Enter")
        form.get_by_role("status").filter(has_text="acknowledged").wait_for()
        assert page.page.locator(".incident-head .tag").first.inner_text() == "acknowledged"
        assert barriers(page) == []
        page.go(f"incidents/{incident.id}.html")
        page.page.locator(".triage-now li").filter(has_text="ann: acknowledged, looking at it").wait_for()
        form.get_by_label("What").select_option("note")
        form.get_by_label("Assigned to").fill("bob")
        form.get_by_role("button").click()
        page.page.locator(".triage-now").filter(has_text="Assigned to bob").wait_for()
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.assert_quiet()
    told = incident_file.read_ledger(home).incidents[incident.id]
    assert (told.state, told.owner, [remark.who for remark in told.remarks]) == ("acknowledged", "bob", ["ann"])
