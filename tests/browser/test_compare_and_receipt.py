"""Compare and the receipt in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from watching import Watched, opening

from tests.site_files import read_nights, read_series
from tvmdash import common

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

STEP = "20261115T031500Z"
"""The night of the newest step of a made home: two run times 12 % slower."""


def compare(opened: Watched, state: str) -> None:
    opened.go("index.html")
    opened.go(f"compare.html#{state}", drawn=True)


def rows(opened: Watched) -> list[str]:
    return [row.inner_text() for row in opened.page.query_selector_all("#rows tbody tr")]


def before_and_after(catalogue: dict[str, list]) -> str:
    return f"a=20261105T031500Z&b={max(catalogue['last_stamp'])}"


def test_two_nights_are_compared_in_a_request_each_what_got_worse_first(
    opened: Watched, catalogue: dict[str, list]
) -> None:
    opened.go("index.html")
    opened.requests.clear()
    state = before_and_after(catalogue)
    opened.go(f"compare.html#{state}", drawn=True)
    data = [url.removeprefix(opened.address) for url in opened.requests if re.search(r"\.json|columns/", url)]
    nights = re.findall(r"\d{8}T\d{6}Z", state)
    assert sorted(data) == [f"columns/{night[:7]}.js" for night in sorted(nights)] + ["index.json"]
    shown = rows(opened)
    assert len(shown) == len([metric for metric in catalogue["metric"] if not metric.endswith("_ratio")])
    assert "✖ worse" in shown[0]
    assert re.search(r"\+1\d\.\d %", shown[0])
    assert re.search(r"B against A: \d+ worse", opened.text("#verdict"))


def test_what_vanished_and_a_night_beside_itself_are_no_good_result(
    opened: Watched, catalogue: dict[str, list], site: Path
) -> None:
    last = max(catalogue["last_stamp"])
    full = {stamp: len(night["id"]) for stamp, night in read_nights(site).items()}
    fewer = next(stamp for stamp, count in full.items() if count < full[last])
    compare(opened, f"a={last}&b={fewer}")
    assert re.search(r"; \d+ only in A\b", opened.text("#verdict"))
    compare(opened, f"a={last}&b={last}")
    assert opened.text("#verdict .headline") == "A and B are the same: there is nothing to compare."


def test_a_tvm_of_before_the_last_thirty_nights_is_compared(opened: Watched, site: Path) -> None:
    nights = common.read_json(site / "nights" / "2026.json")["nights"]
    (version,) = nights[min(nights)]["versions"]
    compare(opened, f"a=tvm:{version}&b={max(nights)}")
    assert version in opened.text("#verdict")
    assert len(rows(opened)) > 10


def names_of(opened: Watched) -> list[str]:
    return [name.inner_text() for name in opened.page.query_selector_all("#rows tbody th a")]


def test_a_click_on_a_head_sorts_and_a_row_opens_to_its_nights(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    opened.page.click("#rows thead button:has-text('Series')")
    names = names_of(opened)
    experiments = [name.split()[0] for name in names]
    assert experiments == sorted(experiments)
    opened.page.click("#rows .opener >> nth=1")
    opened.page.wait_for_selector("#rows .opened svg.history")
    assert opened.evaluate("document.querySelectorAll('#rows .opened svg .side').length") == 2
    assert opened.evaluate("document.querySelectorAll('#rows .opened svg circle').length") == 30
    opened.page.click("#rows thead button:has-text('Series')")
    assert names_of(opened) == names[::-1]
    row = "document.querySelector('#rows .opened').previousElementSibling"
    assert opened.evaluate(f"{row}.querySelector('a').innerText") == names[1]
    opened.page.click("#rows .opener[aria-expanded=true]")
    assert opened.page.query_selector("#rows .opened") is None


def test_the_signs_are_those_of_the_other_pages(opened: Watched, catalogue: dict[str, list]) -> None:
    opened.go("nights/index.html")
    signs = {way: opened.text(f".legend .icon.is-{way}") for way in ("worse", "better")}
    last = max(catalogue["last_stamp"])
    for way, (a, b) in {"worse": ("20261105T031500Z", last), "better": (last, "20261105T031500Z")}.items():
        compare(opened, f"a={a}&b={b}&show={way}")
        assert f"{signs[way]} {way}" in rows(opened)[0]


def test_a_chip_shows_only_such_rows_and_the_rule_is_said(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    every = rows(opened)
    opened.page.click("#chips button:has-text('worse')")
    worse = rows(opened)
    assert 0 < len(worse) < len(every)
    assert all("worse" in row for row in worse)
    opened.page.click("#chips button:has-text('worse')")
    assert len(rows(opened)) == len(every)
    opened.page.click("text=When is a change real?")
    assert "more than 3 x noise" in opened.text("#real-rule")
    opened.page.fill("#q", "metric=compile_time")
    opened.page.wait_for_function("() => location.hash.includes('q=')")
    assert [row for row in rows(opened) if "run time" in row] == []


def test_the_night_before_is_one_click_away(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    opened.page.click("#a-before")
    opened.page.wait_for_function("() => location.hash.includes('a=20261104T031500Z')")
    opened.page.click("#a-after")
    opened.page.wait_for_function("() => location.hash.includes('a=20261105T031500Z')")


def test_versions_and_machines_are_compared_too(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    opened.page.select_option("#a-kind", "machine")
    opened.page.wait_for_function("() => document.querySelector('#rows').textContent.includes('nights)')")
    assert "machine:bench-1" in opened.evaluate("decodeURIComponent(location.hash)")
    opened.page.click("#swap")
    opened.page.wait_for_function("() => document.querySelector('#b-kind').value === 'machine'")
    assert opened.page.input_value("#a-kind") == "night"


def test_means_stand_by_what_was_chosen(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    assert "relax_opt" in opened.text("#groups")
    opened.page.select_option("#by", "engine")
    heads = [head.inner_text() for head in opened.page.query_selector_all("#groups thead th")]
    metrics = sorted({metric for metric in catalogue["metric"] if not metric.endswith("_ratio")})
    assert [head.split("\n")[0].strip() for head in heads] == [
        "engine",
        *(metric.replace("_", " ") for metric in metrics),
    ]
    assert "tvm" in opened.text("#groups tbody")


def test_the_comparison_is_copied_as_markdown(chromium: Browser, address: str, catalogue: dict[str, list]) -> None:
    with opening(chromium, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        compare(page, f"{before_and_after(catalogue)}&show=worse")
        page.page.click("text=Copy as Markdown")
        page.page.wait_for_selector("text=Copied.")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert "| series | A | B | change | 95 % interval | |" in copied
        assert copied.count("\n| ") == len(rows(page)) + 1
        assert page.page.url in copied


def test_a_night_that_is_not_there_says_so(opened: Watched) -> None:
    opened.expect_fault("columns/2020010.js")
    compare(opened, "a=20200101T000000Z")
    assert "Nothing was measured on both sides; " in opened.text("#verdict")
    assert "No experiment wrote data in the night of 2020-01-01" in opened.text("#progress")


def point(catalogue: dict[str, list]) -> tuple[str, str]:
    at = next(
        place
        for place, name in enumerate(catalogue["name"])
        if catalogue["metric"][place] == "run_time" and "<" not in name
    )
    return catalogue["id"][at], catalogue["last_stamp"][at]


def receipt(opened: Watched, night: str, series: str) -> None:
    opened.go("index.html")
    opened.go(f"receipt.html#night={night}&series={series}", drawn=True)
    opened.settle()


def test_a_receipt_has_all_that_reproduces_the_point(opened: Watched, catalogue: dict[str, list]) -> None:
    series, night = point(catalogue)
    receipt(opened, night, series)
    words = opened.text("#receipt")
    assert re.search(rf"^python3 -m dashboard reproduce HOME \w+/{night} {series}$", words, re.MULTILINE)
    for part in (
        "95 %:",
        "from the night before",
        "10 samples",
        "Where the time goes",
        "workload_args.batch",
        "artifact.commit",
        "module_hash",
        "machine.cpu_microcode",
        "results/experiments/data/",
    ):
        assert part in words
    assert opened.page.query_selector(".plot canvas") is not None
    opened.page.click("text=Table of the samples")
    opened.page.wait_for_selector("text=Samples in the order taken")
    opened.page.click("text=Table of the operators")
    opened.page.wait_for_selector("text=Operators, longest first")


def test_the_icicle_tells_and_opens_its_boxes(opened: Watched, catalogue: dict[str, list]) -> None:
    series, night = point(catalogue)
    receipt(opened, night, series)
    boxes = opened.page.locator(".icicle").first.locator(".box")
    assert boxes.count() > 3
    boxes.nth(1).hover()
    assert re.search(r"^\S.*: .* (ms|µs|ns) \(\d+\.\d %\)", opened.page.locator(".icicle-said").first.inner_text())


def test_the_trace_of_the_last_night_is_there_to_download(
    opened: Watched, site: Path, catalogue: dict[str, list]
) -> None:
    series, night = point(catalogue)
    receipt(opened, night, series)
    with opened.page.expect_download() as waiting:
        opened.page.click("text=Download the trace")
    assert waiting.value.suggested_filename.endswith(".perfetto-trace")
    assert Path(waiting.value.path()).stat().st_size > 100
    assert "ui.perfetto.dev" in opened.text("#receipt")


def test_a_receipt_of_partial_data_says_so(opened: Watched, catalogue: dict[str, list]) -> None:
    series, night = point(catalogue)
    receipt(opened, night, series)
    assert "Partial data" not in opened.text("#receipt")

    def made_partial(route: Route) -> None:
        answer = route.fetch()
        value = answer.json()
        value["night"]["partial"] = True
        route.fulfill(response=answer, json=value)

    opened.page.route("**/receipts/**", made_partial)
    opened.page.reload()
    opened.page.wait_for_function("() => document.body.dataset.drawn === '1'")
    assert re.search(r"The run was interrupted: \d+ of \d+ points were finished", opened.text("#receipt"))


def test_a_night_without_a_receipt_keeps_its_value_and_says_where_its_record_is(
    opened: Watched, site: Path, catalogue: dict[str, list]
) -> None:
    series, _ = point(catalogue)
    first = read_series(site, series)["stamp"][0]
    opened.expect_fault(f"/receipts/{first}/")
    receipt(opened, first, series)
    words = opened.text("#receipt")
    assert "Receipts are kept for recent nights only" in words
    assert f"data_{first}.json" in words


def test_a_receipt_of_nothing_leads_to_the_explorer(opened: Watched) -> None:
    opened.go("receipt.html")
    opened.page.wait_for_selector("text=Pick a point in the explorer.")
