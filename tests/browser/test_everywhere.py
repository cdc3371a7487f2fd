"""What every page has: search, keys, help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from watching import Watched

if TYPE_CHECKING:
    from playwright.sync_api import Route

BAD_PAGE = """<!doctype html><meta http-equiv="Content-Security-Policy" content="default-src 'self'">
<body><script>document.title = "run"</script><img src="http://192.0.2.1/x.png"><script src="bad.js"></script>"""


BAD_FILES = {
    "bad.html": ("text/html", BAD_PAGE),
    "bad.js": ("text/javascript", "console.error('oh'); alert('run'); throw new Error('thrown')"),
}


def serve_bad_file(route: Route) -> None:
    kind, body = BAD_FILES[route.request.url.rsplit("/", 1)[1]]
    route.fulfill(content_type=kind, body=body)


def test_the_watch_over_pages_sees_what_goes_wrong(opened: Watched) -> None:
    opened.page.route("**/bad.*", serve_bad_file)
    opened.go("bad.html")
    assert opened.page.title() == ""
    with pytest.raises(AssertionError) as found:
        opened.assert_quiet()
    for words in (
        "error: oh",
        "exception: thrown",
        "alert: run",
        "policy violated: script-src",
        "policy violated: img-src",
    ):
        assert words in str(found.value)
    opened.faults.clear()
    opened.requests.clear()
    opened.go("index.html")


def test_a_slash_searches_series_experiments_and_nights(opened: Watched, catalogue: dict[str, list]) -> None:
    opened.go("nights/index.html")
    opened.page.keyboard.press("/")
    opened.page.wait_for_selector("dialog.search li")
    opened.page.keyboard.type("2026-11-2")
    opened.page.keyboard.press("ArrowDown")
    assert opened.text("dialog.search li[aria-selected='true']").split() == ["night", "2026-11-20"]
    opened.page.fill("dialog.search input", "mlp run time")
    assert "series" in opened.text("dialog.search li[aria-selected='true']")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_url("**/explore.html#series=*")
    opened.wait_drawn()


def test_search_finds_names_as_text_and_says_when_there_is_nothing(opened: Watched) -> None:
    opened.go("index.html")
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("onerror")
    opened.page.wait_for_selector("dialog.search li:has-text('<img')")
    assert opened.page.query_selector("dialog img") is None
    opened.page.fill("dialog.search input", "no such thing")
    assert opened.text("dialog.search [role=status]") == "Nothing found."
    opened.page.keyboard.press("Escape")
    opened.page.wait_for_selector("dialog", state="detached")


def test_what_is_typed_before_the_search_is_there_is_searched(opened: Watched) -> None:
    held = opened.hold("**/search/search.js")
    opened.go("index.html")
    opened.page.keyboard.press("/")
    opened.page.keyboard.type("onerrr")
    opened.page.keyboard.press("Backspace")
    assert opened.page.query_selector("dialog") is None
    held.release()
    opened.page.wait_for_selector("dialog.search")
    opened.page.keyboard.type("or")
    assert opened.page.input_value("dialog.search input") == "onerror"
    opened.page.wait_for_selector("dialog.search li:has-text('<img')")


def test_j_and_k_walk_the_incidents(opened: Watched) -> None:
    opened.go("index.html")
    count = opened.page.locator("[data-incident]:visible").count()
    assert count >= 2
    focused = "document.activeElement.closest('[data-incident]')?.dataset.incident"
    opened.page.keyboard.press("j")
    first = opened.evaluate(focused)
    opened.page.keyboard.press("j")
    second = opened.evaluate(focused)
    assert None not in (first, second)
    assert first != second
    opened.page.keyboard.press("k")
    assert opened.evaluate(focused) == first


def test_a_question_mark_helps_and_closes_again(opened: Watched) -> None:
    opened.go("index.html")
    opened.page.keyboard.press("?")
    assert "next incident" in opened.text("dialog.help")
    opened.page.keyboard.press("j")
    opened.page.click("dialog.help button")
    opened.page.wait_for_selector("dialog", state="detached")


PRESS = "keys => keys.forEach(key => document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true})))"


def test_g_and_a_letter_go_to_a_page(opened: Watched) -> None:
    opened.go("alerts.html")
    for key, place in (("e", "explore.html"), ("n", "nights/index.html"), ("h", "index.html")):
        opened.page.evaluate(PRESS, ["g", key])  # at once: the second is waited for 1.2 s only
        opened.page.wait_for_url(f"{opened.address}{place}*")


def test_keys_are_letters_where_one_types(opened: Watched) -> None:
    opened.go("explore.html", drawn=True)
    opened.page.focus("#q")
    opened.page.keyboard.type("j/?ge")
    assert opened.page.input_value("#q") == "j/?ge"
    assert opened.page.query_selector("dialog") is None
