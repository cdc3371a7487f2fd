"""The Alerts page: what is filtered stands in its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from test_pages import barriers
from watching import Watched, opening

from tvmdash.dashboard_info import Home
from tvmdash.incidents import file as incident_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def shown(page: Watched) -> set[str]:
    """The incidents that are not filtered away."""
    names = page.evaluate(
        "[...document.querySelectorAll('[data-incident]:not([hidden])')].map((one) => one.dataset.incident)"
    )
    return set(names)


def test_incidents_are_filtered_and_the_address_keeps_it(chromium: Browser, planted_home: Home) -> None:
    known = incident_file.read_ledger(planted_home).incidents
    large = {name for name, one in known.items() if one.magnitude >= 0.1}
    confirmed = {name for name, one in known.items() if one.state == "confirmed"}
    assert set() < large < set(known)
    assert set() < confirmed < set(known)
    site = planted_home.output("website").resolve()
    with opening(chromium, f"{site.as_uri()}/", viewport={"width": 390, "height": 844}) as page:
        page.go("alerts.html")
        page.page.get_by_label("Size").select_option("10")
        assert shown(page) == large
        page.page.get_by_label("State").select_option("confirmed")
        assert shown(page) == large & confirmed
        address = page.page.url
        assert address.endswith("#size=10&state=confirmed")
        page.page.goto("about:blank")
        page.page.goto(address)
        page.page.get_by_label("Size").wait_for()
        assert shown(page) == large & confirmed
        page.page.get_by_label("State").select_option("")
        page.page.get_by_label("Size").select_option("")
        assert shown(page) == set(known)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_filters_are_no_barrier(opened: Watched) -> None:
    opened.go("alerts.html")
    opened.page.get_by_label("State").wait_for()
    assert barriers(opened) == []
