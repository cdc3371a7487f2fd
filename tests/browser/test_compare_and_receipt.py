"""Compare and the receipt in a real browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from watching import Watched, opening

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


def test_two_nights_are_compared_series_by_series_worst_first(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    shown = rows(opened)
    assert len(shown) == len(catalogue["id"])
    assert "▼ worse" in shown[0]
    assert re.search(r"\+1\d %", shown[0])
    assert re.search(r"\d real changes? in \d+ series", opened.text("#verdict"))
    opened.page.select_option("#order", "name")
    names = [row.split("\t")[0] for row in rows(opened)]
    assert names == sorted(names)


def test_better_and_worse_have_the_signs_that_they_have_on_the_other_pages(
    opened: Watched, catalogue: dict[str, list]
) -> None:
    opened.go("nights/index.html")
    signs = {way: opened.text(f".legend .icon.is-{way}") for way in ("worse", "better")}
    last = max(catalogue["last_stamp"])
    for order, (a, b) in {"worst": ("20261105T031500Z", last), "best": (last, "20261105T031500Z")}.items():
        compare(opened, f"a={a}&b={b}&order={order}")
        way = {"worst": "worse", "best": "better"}[order]
        assert f"{signs[way]} {way}" in rows(opened)[0]
        assert opened.text("#verdict").startswith(signs[way])


def test_only_real_changes_leaves_noise_out_and_the_rule_is_said(opened: Watched, catalogue: dict[str, list]) -> None:
    compare(opened, before_and_after(catalogue))
    opened.page.check("#real")
    real = rows(opened)
    assert 0 < len(real) < len(catalogue["id"])
    assert not [row for row in real if "within noise" in row]
    opened.page.click("text=When is a change real?")
    assert "more than 3 x noise" in opened.text("#real-rule")
    opened.page.fill("#q", "metric=compile_time")
    opened.page.wait_for_function("() => location.hash.includes('q=')")
    assert [row for row in rows(opened) if "run time" in row] == []


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
    assert heads == ["engine", *sorted(set(catalogue["metric"]))]
    assert "tvm" in opened.text("#groups tbody")


def test_the_comparison_is_copied_as_markdown(chromium: Browser, address: str, catalogue: dict[str, list]) -> None:
    with opening(chromium, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        compare(page, f"{before_and_after(catalogue)}&real=1")
        page.page.click("text=Copy as Markdown")
        page.page.wait_for_selector("text=Copied.")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert "| series | A | B | change | ratio B/A, 95 % | |" in copied
        assert copied.count("\n| ") == len(rows(page)) + 1
        assert page.page.url in copied


def test_a_night_that_is_not_there_says_so(opened: Watched) -> None:
    compare(opened, "a=20200101T000000Z")
    assert "Nothing was measured on both sides." in opened.text("#verdict")


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
    assert re.search(r"The run was ended in the middle: \d+ of \d+ points were finished", opened.text("#receipt"))


def test_a_night_without_a_receipt_keeps_its_value_and_says_where_its_record_is(
    opened: Watched, site: Path, catalogue: dict[str, list]
) -> None:
    series, _ = point(catalogue)
    first = common.read_json(site / "series" / f"{series}.json")["stamp"][0]
    opened.expect_fault(f"/receipts/{first}/")
    receipt(opened, first, series)
    words = opened.text("#receipt")
    assert "Receipts are kept for the last nights only" in words
    assert f"data_{first}.json" in words


def test_a_receipt_of_nothing_leads_to_the_explorer(opened: Watched) -> None:
    opened.go("receipt.html")
    opened.page.wait_for_selector("text=Pick a point in the explorer.")
