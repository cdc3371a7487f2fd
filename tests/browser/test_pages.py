"""Every page of the site in a real browser: quiet, accessible, fit for a phone, safe with any name, whole from disk."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from watching import Watched, opening

from tvmdash import common
from tvmdash.dashboard_info import Home

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SCRIPTED = ("explore.html", "compare.html", "receipt.html")
ON_THE_DESK, ON_THE_PHONE = "&multiples=1", "&group=all&x=commit"
"""States of one page that is the dearest to look through: each is looked through on one screen."""
PHONE = {"width": 375, "height": 812}
ALL = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
OUTSIDE = """() => {
  const found = [], range = document.createRange();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    let place = text.parentElement;
    if (!text.data.trim() || place.closest("[hidden], noscript, .skip")) continue;
    while (getComputedStyle(place).display === "inline") place = place.parentElement;
    const drawing = place.ownerSVGElement;
    place = drawing ?? place;
    if (!drawing && getComputedStyle(place).overflowX !== "visible") continue;
    const { left, right } = place.getBoundingClientRect();
    range.selectNodeContents(text);
    const boxes = [...range.getClientRects()].filter((one) => one.width);
    if (boxes.some((one) => one.right > right + 1.5 || one.left < left - 1.5)) found.push(text.data.slice(0, 80));
  }
  return found;
}"""
"""Texts that reach out of what they stand in; what reaches out of a drawing is cut off, a sign or a digit with it."""
OFF_SCREEN = """() => [...document.querySelectorAll("header button, .night-chart .break, .night-chart text")]
  .filter((one) => one.getClientRects().length)
  .filter((one) => { const { left, right } = one.getBoundingClientRect(); return left < 0 || right > innerWidth; })
  .map((one) => one.textContent || one.getAttribute("class"))"""
"""What nobody sees without scrolling sideways and has to be seen: search, colours, where a series stepped."""


def pages(site: Path, catalogue: dict[str, list]) -> list[str]:
    """One of each kind; of those that scripts fill, with something in it."""
    night = catalogue["last_stamp"][0]
    series = catalogue["id"][catalogue["metric"].index("run_time")]
    plain = sorted(path.name for path in site.glob("*.html") if path.name not in SCRIPTED)
    experiment = next(site.glob("experiments/*.html")).relative_to(site).as_posix()
    year = next(site.glob("nights/2???.html")).relative_to(site).as_posix()
    tried = next(site.glob("tries/*.html")).relative_to(site).as_posix()
    chart, multiples, means = (
        f"explore.html#series={series}{more}" for more in ("", "&multiples=1", "&group=all&x=commit")
    )
    states = [chart, "compare.html", multiples, f"receipt.html#night={night}&series={series}", means]
    incidents = [path.relative_to(site).as_posix() for path in sorted(site.glob("incidents/*.html"))]
    return [*plain, experiment, tried, year, "nights/index.html", f"nights/{night}.html", *incidents, *states]


def open_all(browser: Browser, address: str, places: list[str], **options: object) -> Iterator[tuple[str, Watched]]:
    """Each place in one context, quiet."""
    with opening(browser, address, **options) as page:
        for place in places:
            page.go(place, drawn=place.startswith(SCRIPTED))
            page.settle()
            yield place, page
            page.assert_quiet()


def barriers(page: Watched) -> list[tuple[str, ...]]:
    """All that axe-core finds, everything unfolded. Style sheets on disk it may not fetch, and would say so."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    ).Axe()
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    options = {**ALL, "preload": not page.address.startswith("file:")}
    violations = axe.run(page.page, options=options).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200], one["nodes"][0]["failureSummary"][:300]) for one in violations]


def test_no_page_opened_from_disk_has_an_error_or_a_barrier_or_lacks_what_it_has_when_served(
    chromium: Browser, site: Path, catalogue: dict[str, list]
) -> None:
    found: dict[str, object] = {}
    for place, page in open_all(chromium, f"{site.as_uri()}/", pages(site, catalogue)):
        assert not page.page.is_visible("#needs-script")
        if not place.endswith(ON_THE_PHONE) and (bad := barriers(page)):
            found[place] = bad
    assert found == {}


def test_on_a_dark_phone_no_page_scrolls_sideways_and_all_is_legible(
    chromium: Browser, address: str, site: Path, catalogue: dict[str, list]
) -> None:
    found: dict[str, object] = {}
    dark = {"viewport": PHONE, "has_touch": True, "color_scheme": "dark"}
    for place, page in open_all(chromium, address, pages(site, catalogue), **dark):
        width = page.evaluate("document.documentElement.scrollWidth")
        bad = [] if place.endswith(ON_THE_DESK) else barriers(page)
        outside = [*page.evaluate(OUTSIDE), *page.evaluate(OFF_SCREEN)]
        if bad or outside or width > PHONE["width"]:
            found[place] = (width, outside, bad)
    assert found == {}


@pytest.mark.parametrize("width", [360, 820, 1440])
def test_the_chart_of_an_incident_shows_its_step_and_whole_labels(
    chromium: Browser, planted_home: Home, width: int
) -> None:
    site = planted_home.output("website").resolve()
    places = [f"incidents/{path.name}" for path in sorted(site.glob("incidents/*.html"))]
    size = {"width": width, "height": 800}
    for _, page in open_all(chromium, f"{site.as_uri()}/", ["index.html", *places], viewport=size):
        assert page.page.locator(".night-chart:visible").count() == 1
        labels = page.page.locator(".night-chart:visible text.end").all_text_contents()
        assert any(label.startswith(("+", "\u2212")) for label in labels)
        assert page.page.locator(".night-chart:visible .break").count() >= 1
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate(OFF_SCREEN) == []
        page.page.click("header .search-field")
        page.page.wait_for_selector("dialog.search li, dialog.search [role=status]")
        page.page.keyboard.press("Escape")
        page.page.click("header .theme-toggle")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        page.page.evaluate("localStorage.clear()")


def test_what_is_to_be_pasted_is_copied_as_it_stands(chromium: Browser, address: str, site: Path) -> None:
    tried = next(site.glob("tries/*.html")).relative_to(site).as_posix()
    with opening(chromium, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.go(tried)
        page.page.click("#markdown ~ .copy button")
        page.page.wait_for_selector("text=Copied.")
        assert page.evaluate("navigator.clipboard.readText()") == page.page.text_content("#markdown ~ pre")
        page.assert_quiet()


def test_hostile_names_stay_text(chromium: Browser, address: str, site: Path, catalogue: dict[str, list]) -> None:
    at = next(
        place
        for place, name in enumerate(catalogue["name"])
        if "onerror" in name and catalogue["metric"][place] == "run_time"
    )
    series, night = catalogue["id"][at], catalogue["last_stamp"][at]
    places = [
        f"explore.html#series={series}&q=onerror",
        f"receipt.html#night={night}&series={series}",
        "compare.html#q=onerror",
    ]
    for _, page in open_all(chromium, address, places):
        assert "<img" in page.text("main")
        assert page.page.query_selector_all("main img") == []
        assert "\u202e" not in page.text("main")


def test_what_an_address_holds_stays_text(opened: Watched) -> None:
    bad = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    opened.expect_fault("404")  # there is no such night
    for place in (
        f"explore.html#series={bad}&q={bad}",
        f"compare.html#a={bad}&b=tvm:{bad}",
        f"receipt.html#night={bad}&series={bad}",
    ):
        opened.go("index.html")
        opened.go(place)
        opened.page.wait_for_selector("#app:not([hidden])", state="attached")
        opened.settle()
        assert opened.page.query_selector_all("main img") == []


def test_the_explorer_draws_searches_and_opens_a_receipt_from_disk(
    chromium: Browser, site: Path, catalogue: dict[str, list]
) -> None:
    series = [catalogue["id"][at] for at, metric in enumerate(catalogue["metric"]) if metric == "run_time"][:2]
    with opening(chromium, f"{site.as_uri()}/") as page:
        page.go(f"explore.html#series={','.join(series)}", drawn=True)
        assert page.evaluate("document.body.dataset.drawn") == "2"
        painted = "[...document.querySelector('#chart canvas').getContext('2d').getImageData(0, 0, 900, 300).data]"
        assert page.evaluate(f"new Set({painted}).size") > 20
        page.page.click("[data-nights='30']")
        page.page.keyboard.press("/")
        page.page.fill("dialog.search input", "mlp run time")
        page.page.wait_for_selector("dialog.search li")
        page.page.keyboard.press("Escape")
        box = page.page.locator("#chart .u-over").bounding_box()
        assert box is not None
        page.page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
        page.page.click("text=Receipt of this point")
        page.page.wait_for_url("**/receipt.html#*")
        page.wait_drawn()
        assert "This command remeasures the series" in page.text("main")


def test_an_address_cannot_choose_what_a_page_from_disk_runs(
    chromium: Browser, site: Path, catalogue: dict[str, list], tmp_path: Path
) -> None:
    page_of = dict(enumerate(common.read_json(site / "index.json")["experiments"]))[catalogue["experiment"][0]]["page"]
    name = Path(page_of).stem
    (tmp_path / f"{name}.js").write_text("alert('run')", encoding="ascii")
    elsewhere = os.path.relpath(tmp_path, site / "receipts")
    with opening(chromium, f"{site.as_uri()}/") as page:
        page.go(f"receipt.html#night={elsewhere}&series={catalogue['id'][0]}", drawn=True)
        assert "has no receipts/" in page.text("main")


def test_without_javascript_pages_say_what_is_missing_and_where_the_values_are(chromium: Browser, site: Path) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    for name in SCRIPTED:
        page.goto((site / name).as_uri())
        assert "This page needs JavaScript" in page.inner_text("main")
        page.click("main >> text=all series")
        assert "All series" in page.inner_text("main")
        assert "JavaScript is off" in page.inner_text("footer")
    context.close()


def test_links_of_the_first_page_lead_to_pages(opened: Watched) -> None:
    opened.go("index.html")
    links = opened.evaluate(
        "[...new Set([...document.querySelectorAll('a[href]')]"
        ".map((one) => new URL(one.getAttribute('href'), document.baseURI).href.split('#')[0]))]"
    )
    assert len(links) > 10
    own = [link for link in links if link.startswith(opened.address)]
    answers = {link: opened.page.request.head(link).status for link in own}
    assert [link for link, status in answers.items() if status != 200] == []


def test_the_header_goes_amber_when_the_data_is_old_and_not_before(chromium: Browser, address: str, site: Path) -> None:
    with opening(chromium, address) as page:
        page.go("receipt.html")
        written = datetime.datetime.fromisoformat(page.evaluate("document.body.dataset.written"))
        for hours, is_old in ((1, False), (35, False), (60, True)):
            page.page.clock.set_fixed_time(written + datetime.timedelta(hours=hours))
            page.go("index.html")
            assert page.evaluate("document.querySelector('body > header').classList.contains('is-old')") is is_old
            notice = page.page.query_selector(".age-notice")
            assert (notice is not None) is is_old
            if notice:
                assert "was written 2 days ago" in notice.inner_text()


def test_the_choice_of_colours_is_kept(opened: Watched) -> None:
    def background() -> str:
        return opened.evaluate("getComputedStyle(document.body).backgroundColor")

    opened.go("index.html")
    light = background()
    opened.page.click(".theme-toggle")
    assert (background(), opened.text(".theme-toggle")) == (light, "Colours: light")
    opened.page.click(".theme-toggle")
    dark = background()
    assert dark != light
    opened.go("explore.html", drawn=True)
    assert (background(), opened.text(".theme-toggle")) == (dark, "Colours: dark")
    opened.page.emulate_media(color_scheme="dark")
    opened.page.click(".theme-toggle")
    assert (background(), opened.text(".theme-toggle")) == (dark, "Colours: auto")
    opened.page.emulate_media(color_scheme="light")
    assert background() == light
