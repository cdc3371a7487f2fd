"""The pages of tries: a list, a page each, in the navigation only where something was tried."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.golden_files import Golden
from tests.subsystem.website.sites import HOSTILE, STAMP, Page, Site, as_shown, assert_whole, job
from tvmdash import common
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.trials.suspect import Suspect
from tvmdash.trials.trial import (
    Asked,
    Backfill,
    Bisection,
    BisectionState,
    Reproduced,
    ReproducedSeries,
    Reproduction,
    RunOfPairs,
    Trial,
    TrialChange,
    TrialKind,
    TrialNumber,
    TrialSeries,
    TrialState,
    TrialTvm,
)

COMMIT = "7b5acb32b" + "0" * 31
PAIRS = (RunOfPairs(0.1, 0.001, 12),)
SLOWER = TrialChange(0.1, 0.098, 0.102, 0.002, 0.004, 12, real=True)
SAME = TrialChange(0.001, -0.002, 0.004, 0.003, 0.005, 12, real=False)
TRIED = Trial(
    "20261120T120000Z",
    TrialState.DONE,
    TrialTvm("git:pull/20165", "git-new", "0.28.dev0", COMMIT),
    TrialTvm("pypi:0.26.0", "wheel-old", "0.26.0", note="the TVM of the night before"),
    0.01,
    "bench (AMD EPYC x 2)",
    {"cnn": "f"},
    runs={"cnn": 3},
    series=(
        TrialSeries("a", "cnn", "run_time", {}, name="cnn mlp run time", runs=PAIRS, change=SLOWER),
        TrialSeries("b", "cnn", "run_time", {}, name="cnn bert run time", runs=PAIRS, change=SAME),
    ),
    numbers=(TrialNumber("c", "cnn", "code_size", {}, 2000.0, 2100.0, "bytes", name="cnn mlp code size"),),
    measured_s=243.0,
    requests={"20261120T110000Z": Asked("ada", "20261120T110000Z")},
)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(Home(tmp_path / "home"))
    made.night(job("cnn"))
    return made


def keep(site: Site, done: Trial, name: str = "") -> None:
    site.home.tries.mkdir(parents=True, exist_ok=True)
    value = {"schema_version": 1, **structured.to_json(done)}
    common.write_json(site.home.tries / f"{name or done.stamp}.json", value, durable=False)


def published(site: Site, page: str = "tries.html") -> Page:
    site.publish_here()
    assert_whole(site)
    return site.page(page)


def test_the_page_says_what_changed_on_what_and_how_to_measure_it_again(site: Site, golden: Golden) -> None:
    keep(site, TRIED)
    page = published(site, f"tries/{TRIED.stamp}.html")
    golden.messages("website_tries", [("a try", page.list_sentences("tr"))])
    words = page.words
    assert "✖+10.0 % +9.8 to +10.2 %" in words
    assert "◇2,000 to 2,100 bytes" in words
    assert f"TVM 0.28.dev0, commit {COMMIT}, build git-new" in words
    assert "bench (AMD EPYC x 2)" in words
    assert "3 runs, 12 pairs" in words
    assert "ada, 2026-11-20 11:00 UTC" in words
    command = f"try HOME git:{COMMIT} --against pypi:0.26.0 --until 1% --experiments cnn --fresh"
    assert command in words
    assert "| +10.0 % | +9.8 to +10.2 % |" in words


def test_a_series_whose_interval_says_nothing_is_not_given_a_number(site: Site) -> None:
    (item, *_) = TRIED.series
    assert item.change is not None
    wide = replace(item.change, effect=0.43, low=0.01, high=1.03, real=False)
    keep(site, replace(TRIED, series=(replace(item, change=wide),)))
    words = published(site, f"tries/{TRIED.stamp}.html").words
    assert ("not known" in words, "+43" in words) == (True, False)


def test_the_list_leads_to_each_page_the_newest_first(site: Site) -> None:
    keep(site, TRIED)
    stamp = "20261120T130000Z"
    errors = {"cnn": "it crashed"}
    keep(site, replace(TRIED, stamp=stamp, state=TrialState.OVER, series=(), numbers=(), errors=errors))
    page = published(site)
    assert page.words.index(stamp) < page.words.index(TRIED.stamp)
    assert "!out of time" in page.words
    assert "✓done 2 of 3 changed" in page.words
    assert {f"tries/{name}.html" for name in (stamp, TRIED.stamp)} <= set(page.references)
    told = site.page(f"tries/{stamp}.html").words
    assert "time budget" in told
    assert "3 runs: it crashed" in told


def test_the_navigation_leads_there_on_every_page_as_soon_as_something_was_tried(site: Site) -> None:
    site.night(job("cnn"), at="20261120T031500Z")
    site.publish_here()
    assert not (site.folder / "tries.html").exists()
    assert [page.path.name for page in site.pages() if "Tries" in page.words] == []
    keep(site, TRIED)
    published(site)
    assert [page.path.name for page in site.pages() if "Tries" not in page.words] == []


def test_pages_are_carried_over_until_the_try_is_measured_further(site: Site) -> None:
    other = "20261120T130000Z"
    keep(site, TRIED)
    keep(site, replace(TRIED, stamp=other))
    names = ("tries.html", f"tries/{TRIED.stamp}.html", f"tries/{other}.html")

    def publish() -> list[int]:
        published(site)
        return [(site.folder / name).stat().st_ino for name in names]

    first = publish()
    assert publish() == first
    keep(site, replace(TRIED, stamp=other, state=TrialState.OVER))
    assert [now == before for now, before in zip(publish(), first, strict=True)] == [False, True, False]
    words = site.page("tries.html").words
    assert ("out of time" in words, "✓done 2 of 3 changed" in words) == (True, True)


def test_one_that_cannot_be_read_is_told_and_the_others_have_their_pages(site: Site) -> None:
    keep(site, TRIED)
    (site.home.tries / f"{STAMP}.json").write_text('{"schema_version": 1, "stamp": 5}', encoding="utf-8")
    words = published(site).words
    assert f"{STAMP} ✗cannot be read" in words
    assert "$.stamp: 5 is not a text." in words
    assert sorted(path.name for path in (site.folder / "tries").iterdir()) == [f"{TRIED.stamp}.html"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(site: Site, name: str) -> None:
    sides = {side: TrialTvm(name, name, name, name, name) for side in ("candidate", "base")}
    series: tuple[Any, ...] = tuple(replace(item, name=name, experiment=name) for item in TRIED.series)
    told = {"machine": name, "experiments": {name: name}, "runs": {name: 1}, "errors": {name: name}}
    asked = {name: Asked(name, STAMP)}
    done = replace(TRIED, **sides, **told, series=series, left_out={name: name}, alone=(name,), requests=asked)
    keep(site, done, name.replace("/", "").replace("\x00", "")[:200])
    listed = published(site)
    (path,) = (site.folder / "tries").glob("*.html")
    page = Page.read(path)
    assert as_shown(name) in page.words
    for shown in (listed, page):
        assert not set("\x00\x1b\u202e") & set(shown.path.read_text(encoding="utf-8"))
        assert [found.get("src") for found in shown.all("img")] == [f"{'../' if shown is page else ''}icon.svg"]
        assert not [found for found in shown.all("script") if "alert" in str(found)]


def test_what_other_commands_measured_has_its_page_too(site: Site) -> None:
    change = TrialChange(0.05, 0.04, 0.06, 0.01, 0.01, 12, real=True)
    (series, *_) = TRIED.series
    part = Bisection(
        BisectionState.FOUND, Suspect("0.20.0"), Suspect("0.23.0"), 3, suspects=(Suspect("0.22.0"),), probability=0.97,
        noise=0.01, least=6.0,
    )  # fmt: skip
    bisected = replace(
        TRIED, kind=TrialKind.BISECT, until=0.0, series=(replace(series, change=change),), numbers=(), bisection=part
    )
    lines = {"a": ReproducedSeries(Reproduced.HOLDS, 1.0, 1.001)}
    reproduction = Reproduction(Reproduced.HOLDS, "cnn/x", "cnn", STAMP, lines, True, True, "current code")
    reproduced = replace(TRIED, stamp="20261120T130000Z", kind=TrialKind.REPRODUCE, reproduction=reproduction)
    filled = replace(
        TRIED, stamp="20261120T140000Z", kind=TrialKind.BACKFILL, series=(), numbers=(),
        backfill=Backfill("pypi:0.20.0..0.23.0", 4, ("cnn/data_1.json",)),
    )  # fmt: skip
    for done in (bisected, reproduced, filled):
        keep(site, done)
    words = published(site).words
    for said in ("became higher, +5.0 %", "1 of 1 hold.", "4 TVMs in pypi:0.20.0..0.23.0"):
        assert said in words
    page = site.page(f"tries/{bisected.stamp}.html").words
    assert "with 0.22.0." in page
    assert f"bisect HOME cnn a --good pypi:0.26.0 --bad git:{COMMIT} --fresh" in page
    assert "1.00 then, 1.00 now" in site.page(f"tries/{reproduced.stamp}.html").words
    assert "backfill HOME --artifacts pypi:0.20.0..0.23.0" in site.page(f"tries/{filled.stamp}.html").words
