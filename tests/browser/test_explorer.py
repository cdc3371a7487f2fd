"""The explorer in a real browser: picking, zooming, pointing, marks, tables, and all of it in the address."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from watching import Watched, opening

from tests.site_files import read_series

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUN_TIME = "run_time"


def run_times(catalogue: dict[str, list], count: int) -> list[str]:
    """Series of run times, none of them of a hostile name."""
    rows = zip(catalogue["id"], catalogue["metric"], catalogue["name"], strict=True)
    return [series for series, metric, name in rows if metric == RUN_TIME and "<" not in name][:count]


def explore(opened: Watched, state: str) -> None:
    opened.go("index.html")
    opened.go(f"explore.html#{state}", drawn=True)
    opened.settle()


def state_of(opened: Watched) -> dict[str, str]:
    pairs = (part.split("=", 1) for part in opened.evaluate("location.hash").lstrip("#").split("&") if part)
    return {key: unquote(value) for key, value in pairs}


def plot_box(opened: Watched) -> dict[str, float]:
    box = opened.page.locator("#chart .u-over").bounding_box()
    assert box is not None
    return box


def drag(opened: Watched, start: float, end: float) -> None:
    """In the plot, from one share of its width to another."""
    box = plot_box(opened)
    mouse, middle = opened.page.mouse, box["y"] + box["height"] / 2
    mouse.move(box["x"] + start * box["width"], middle)
    mouse.down()
    mouse.move(box["x"] + (start + end) / 2 * box["width"], middle)
    mouse.move(box["x"] + end * box["width"], middle)
    mouse.up()
    opened.settle()


def test_the_page_shows_a_series_unasked(opened: Watched, catalogue: dict[str, list]) -> None:
    opened.go("explore.html", drawn=True)
    assert catalogue["name"][0][:12] in opened.text("#legend")
    shards = [url for url in opened.requests if "/series/" in url]
    assert shards == [f"{opened.address}series/{catalogue['pack'][0]}.js"]
    assert opened.page.query_selector("#needs-script:visible") is None


def test_sixteen_series_take_few_requests(opened: Watched, catalogue: dict[str, list]) -> None:
    opened.go("index.html")
    opened.requests.clear()
    opened.go(f"explore.html#series={','.join(catalogue['id'][:16])}", drawn=True)
    opened.settle()
    assert opened.page.locator("#legend li").count() == 16
    assert len(opened.requests) <= 20


def test_a_query_is_counted_at_each_key_and_buttons_write_it(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={run_times(catalogue, 1)[0]}")
    total, times = len(catalogue["id"]), catalogue["metric"].count(RUN_TIME)
    assert opened.text("#count") == f"{total} of {total} series match"
    opened.page.fill("#q", f"metric={RUN_TIME}")
    assert opened.text("#count") == f"{times} of {total} series match"
    opened.page.click("#facets .chip:has-text('relax_opt')")
    assert opened.page.input_value("#q") == f"metric={RUN_TIME} experiment=relax_opt"
    assert opened.page.get_attribute("#facets .chip:has-text('relax_opt')", "aria-pressed") == "true"
    labels = zip(catalogue["metric"], catalogue["name"], strict=True)
    left = sum(metric == RUN_TIME and name.startswith("relax_opt") for metric, name in labels)
    assert opened.text("#count") == f"{left} of {total} series match"
    opened.page.click(f"text=Show all {left}")
    opened.page.wait_for_function(f"() => document.querySelectorAll('#legend li').length === {left}")
    assert len(state_of(opened)["series"].split(",")) == left


def test_dragging_zooms_and_a_double_click_shows_all_again(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={run_times(catalogue, 1)[0]}")
    before = opened.page.input_value("#from")
    drag(opened, 0.4, 0.6)
    zoomed = state_of(opened)
    assert re.fullmatch(r"\d{8}T\d{6}Z", zoomed["from"])
    assert zoomed["from"] < zoomed["to"]
    assert opened.page.input_value("#from") > before
    box = plot_box(opened)
    opened.page.mouse.dblclick(box["x"] + 50, box["y"] + 50)
    opened.settle()
    assert "from" not in state_of(opened)
    assert opened.page.input_value("#from") == before


def test_shift_and_dragging_moves_in_time(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={run_times(catalogue, 1)[0]}&from=2026-10-20&to=2026-11-01")
    opened.page.keyboard.down("Shift")
    drag(opened, 0.3, 0.8)
    opened.page.keyboard.up("Shift")
    opened.page.wait_for_function("() => location.hash.includes('from=20261013')")
    state = state_of(opened)
    assert (state["from"][:8], state["to"][:8]) == ("20261013", "20261026")


def test_pointing_tells_value_change_version_machine_and_night(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={','.join(run_times(catalogue, 3))}&relative=1")
    box = plot_box(opened)
    opened.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2)
    opened.page.wait_for_selector("#card:visible")
    card = opened.text("#card")
    for words in (
        "from the night before",
        "from the baseline",
        "95 %:",
        " 03:15 UTC",
        "TVM",
        "bench-1",
        "10 samples",
    ):
        assert words in card
    assert re.search(r"\d (ms|µs)", card)
    opened.page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] + 300)
    opened.page.wait_for_selector("#card", state="hidden")


def test_a_click_keeps_the_card_and_leads_to_the_receipt(opened: Watched, catalogue: dict[str, list]) -> None:
    series = run_times(catalogue, 1)[0]
    explore(opened, f"series={series}")
    box = plot_box(opened)
    opened.page.mouse.click(box["x"] + box["width"] * 0.9, box["y"] + box["height"] / 2)
    opened.page.wait_for_selector("#card.is-pinned:visible")
    point = state_of(opened)["at"]
    assert re.fullmatch(rf"{series}@\d{{8}}T\d{{6}}Z", point)
    opened.page.mouse.move(10, 10)
    opened.page.click("text=Receipt of this point")
    opened.page.wait_for_url("**/receipt.html#*")
    opened.wait_drawn()
    assert f"night={point.split('@')[1]}&series={series}" in opened.page.url


def test_a_kept_card_leaves_its_point_and_the_step_in_sight(
    opened: Watched, site: Path, catalogue: dict[str, list]
) -> None:
    series = run_times(catalogue, 1)[0]
    stamps = read_series(site, series)["stamp"]
    apart = """() => {
      const card = document.querySelector("#card").getBoundingClientRect();
      const dot = document.querySelector(".chart-dot").getBoundingClientRect();
      const inside = dot.right > card.left && dot.left < card.right && dot.bottom > card.top && dot.top < card.bottom;
      return card.width > 100 && dot.width > 0 && !inside;
    }"""
    for width in (1280, 800, 375):
        opened.page.set_viewport_size({"width": width, "height": 800})
        for stamp in stamps[:: (len(stamps) - 1) // 2]:  # the first, one between, the last
            explore(opened, f"series={series}&at={series}@{stamp}")
            opened.page.wait_for_selector("#card.is-pinned:visible")
            assert opened.evaluate(apart), (width, stamp)


def test_arrow_keys_walk_the_nights_and_enter_keeps_one(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={','.join(run_times(catalogue, 2))}")
    opened.page.focus("#chart")
    opened.page.keyboard.press("Home")
    first = opened.text("#card dd:nth-of-type(3)")
    opened.page.keyboard.press("ArrowRight")
    second = opened.text("#card dd:nth-of-type(3)")
    assert first != second
    name = opened.text(".card-name")
    opened.page.keyboard.press("ArrowDown")
    assert opened.text(".card-name") != name
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert "at" in state_of(opened)
    opened.page.keyboard.press("Escape")
    opened.page.wait_for_selector("#card", state="hidden")
    opened.page.keyboard.press("+")
    opened.settle()
    assert "from" in state_of(opened)


def test_everything_shown_is_in_the_address_and_back_goes_back(opened: Watched, catalogue: dict[str, list]) -> None:
    two = ",".join(run_times(catalogue, 2))
    explore(opened, f"series={two}")
    opened.page.check("#log")
    opened.page.check("#relative")
    opened.page.uncheck("#band")
    opened.page.uncheck("#mark-kinds .kind-tvm input")
    opened.page.fill("#q", "engine=tvm")
    opened.page.click("[data-nights='30']")
    opened.settle()
    state = state_of(opened)
    assert {**state, "from": ""} == {
        "series": two,
        "scale": "log",
        "relative": "1",
        "band": "0",
        "hide": "tvm",
        "q": "engine=tvm",
        "from": "",
    }

    def shown() -> tuple[object, ...]:
        opened.settle()
        ticks = tuple(
            opened.page.is_checked(name) for name in ("#log", "#relative", "#band", "#mark-kinds .kind-tvm input")
        )
        return (
            *ticks,
            opened.page.input_value("#q"),
            opened.page.input_value("#from"),
            opened.text("#legend"),
            opened.text("#rule"),
        )

    before, url = shown(), opened.page.url
    opened.go("index.html")
    opened.page.goto(url)
    opened.wait_drawn()
    assert shown() == before
    opened.page.click("[data-nights='90']")
    opened.settle()
    assert state_of(opened) != state
    opened.page.go_back()
    assert (shown(), state_of(opened)) == (before, state)
    opened.page.go_forward()
    opened.settle()
    assert state_of(opened) != state


def test_presets_dates_and_the_strip_choose_a_range(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series={run_times(catalogue, 1)[0]}")
    opened.page.click("[data-nights='30']")
    opened.settle()
    assert state_of(opened)["from"].startswith("20261022")
    opened.page.fill("#from", "2026-11-01")
    opened.page.locator("#from").blur()
    opened.settle()
    assert state_of(opened)["from"] == "2026-11-01"
    assert opened.page.input_value("#from") == "2026-11-01", "as everywhere, and not as an American browser has it"
    for wrong in ("11/05/2026", "2026-02-31", "2026-13-01"):
        opened.page.fill("#from", wrong)
        opened.page.locator("#from").blur()
        assert not opened.evaluate("document.querySelector('#from').validity.valid")
        assert state_of(opened)["from"] == "2026-11-01"
    opened.page.click("[data-nights='all']")
    opened.settle()
    assert state_of(opened)["from"] == "all"
    box = opened.page.locator("#overview .u-over").bounding_box()
    assert box is not None
    opened.page.mouse.move(box["x"] + 100, box["y"] + 20)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + 200, box["y"] + 20)
    opened.page.mouse.up()
    opened.settle()
    assert re.fullmatch(r"\d{8}T\d{6}Z", state_of(opened)["to"])


def test_a_table_tells_what_the_canvas_shows(opened: Watched, catalogue: dict[str, list]) -> None:
    series = run_times(catalogue, 1)[0]
    explore(opened, f"series={series}&from=2026-11-15")
    opened.page.click("#values > summary")
    opened.page.wait_for_selector("#values tbody")
    rows = opened.page.query_selector_all("#values tbody tr")
    assert 5 <= len(rows) <= 7
    assert "2026-11-21 03:15 UTC" in rows[0].inner_text()
    with opened.page.expect_download() as started:
        opened.page.click("#values p button")
    assert started.value.suggested_filename == f"{series}.csv"
    lines = Path(started.value.path()).read_text(encoding="utf-8").splitlines()
    assert lines[0] == "stamp,value,low,high,std,samples,tvm,machine,code"
    assert len(lines) > 40, "not only what is in view"
    opened.page.click("[data-nights='']")
    opened.page.wait_for_function("() => document.querySelectorAll('#values tbody tr').length > 40")
    opened.page.click("#happened > summary")
    opened.page.wait_for_selector("#happened tbody")
    happened = opened.text("#happened")
    for words in ("TVM", "machine", "annotation", "New kernel and microcode", "Linux 6.8.0"):
        assert words in happened


def test_links_to_series_that_are_gone_say_so(opened: Watched, catalogue: dict[str, list]) -> None:
    explore(opened, f"series=ffffffffffffffff,{run_times(catalogue, 1)[0]}")
    assert opened.text("#message") == "1 series of this link is not on this site."
    opened.go("index.html")
    opened.go("explore.html#series=ffffffffffffffff")
    opened.page.wait_for_selector("#message:visible")
    assert "not on this site" in opened.text("#message")


def test_a_shard_that_cannot_be_read_is_told(chromium: Browser, address: str, catalogue: dict[str, list]) -> None:
    (good,) = run_times(catalogue, 1)
    with opening(chromium, address) as page:
        packs = dict(zip(catalogue["id"], catalogue["pack"], strict=True))
        bad = next(series for series in run_times(catalogue, 30) if packs[series] != packs[good])
        page.page.route(f"**/series/{packs[bad]}.js", lambda route: route.fulfill(body='x=\n{"schema_version": 1}\n'))
        explore(page, f"series={good},{bad}")
        assert "has version 1; this page reads 2" in page.text("#message")
        assert page.page.locator("#legend li").count() == 1


def test_finger_and_phone(chromium: Browser, address: str, catalogue: dict[str, list]) -> None:
    with opening(chromium, address, viewport={"width": 375, "height": 812}, has_touch=True) as page:
        explore(page, f"series={run_times(catalogue, 1)[0]}")
        assert page.page.get_attribute("#picker", "open") is None
        box = plot_box(page)
        page.page.touchscreen.tap(box["x"] + box["width"] * 0.8, box["y"] + box["height"] / 2)
        page.page.wait_for_selector("#card:visible")
        assert "from the night before" in page.text("#card")
        assert page.evaluate("document.documentElement.scrollWidth") == 375


def test_the_chart_waits_for_a_library_that_comes_late(opened: Watched) -> None:
    held = opened.hold("**/uPlot.iife.min.js")
    opened.page.goto(f"{opened.address}explore.html", wait_until="commit")
    opened.page.wait_for_function(
        "() => performance.getEntriesByType('resource').some(one => one.name.endsWith('explore/explore.js'))"
    )
    held.release()
    opened.wait_drawn()
    assert opened.page.locator("#chart .u-over").count() == 1


def test_the_chart_is_there_before_the_picker_which_takes_what_was_typed_meanwhile(
    opened: Watched, catalogue: dict[str, list]
) -> None:
    held = opened.hold("**/explore/around.js")
    opened.page.goto(f"{opened.address}explore.html", wait_until="commit")
    opened.page.wait_for_function("() => performance.getEntriesByName('first chart').length")
    assert opened.page.get_attribute("body", "data-drawn") is None
    opened.page.fill("#q", f"metric={RUN_TIME}")
    held.release()
    opened.wait_drawn()
    left, total = catalogue["metric"].count(RUN_TIME), len(catalogue["id"])
    assert opened.text("#count") == f"{left} of {total} series match"
    assert state_of(opened) == {"q": f"metric={RUN_TIME}"}


def test_a_library_that_cannot_be_reached_is_told(chromium: Browser, address: str) -> None:
    with opening(chromium, address) as page:
        page.page.route("**/uPlot.iife.min.js", lambda route: route.fulfill(status=404))
        page.expect_fault("uPlot.iife.min.js")
        page.go("explore.html")
        page.page.wait_for_selector("#needs-script:visible")
        assert "uPlot.iife.min.js could not be loaded" in page.text("#needs-script")
