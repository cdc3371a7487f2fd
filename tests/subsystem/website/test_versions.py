"""The page of TVM's versions: what backfill measured, where each TVM stands, and what could not be read."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.report import history_page
from tests.subsystem import scripts
from tests.subsystem.website.sites import HOSTILE, STAMP, Page, Site, as_shown, assert_whole, job, record
from tvmdash import common
from tvmdash.backfill import history
from tvmdash.dashboard_info import Home

axis = scripts.load("website").publishing.site_pages.write_versions.__globals__["axis"]
WIDTH = 240
"""Of an axis."""
RELEASES = ("0.9.0", "0.10.0", "0.11.0")
DAYS = {"a" * 40: 1, "b" * 40: 2, "c" * 40: 11}
"""Commits by the day of May on which they were made."""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(Home(tmp_path / "home"))
    made.night(job("cnn", title="Networks"))
    return made


def backfill(
    site: Site,
    versions: Sequence[str],
    factors: Sequence[float],
    *,
    name: str = "cnn",
    rounds: int = 6,
    failing: Mapping[str, str] | None = None,
) -> None:
    """Measure TVMs of the past in rounds, each with a speed of its own; commits are those of DAYS."""
    rng = random.Random(7)
    folder = site.home.backfill(name)
    folder.mkdir(parents=True)
    at = datetime.datetime(2026, 11, 20, tzinfo=datetime.UTC)
    for number in range(rounds):
        speed = rng.uniform(0.8, 1.2)
        for version, factor in zip(versions, factors, strict=True):
            at += datetime.timedelta(minutes=1)
            stamp = common.stamp_of(at)
            committed = f"2026-05-{DAYS[version]:02}T12:00:00+00:00" if version in DAYS else None
            told = (failing or {}).get(version)
            value = {
                "schema_version": 1,
                "timestamp": stamp,
                "tvm_hash": version,
                "environment": {"machine": {"host": "bench", "cores": 2}},
                "records": [record("mlp", 10 * speed * factor * rng.gauss(1, 0.002))],
                "failures": [{"workload": "network.big", "values": {}, "error": told}] if told else [],
                "night": {
                    "stamp": stamp,
                    "fingerprint": f"round{number}",
                    "backfill": True,
                    "committed": committed,
                    "artifact": {"key": "k", "version": version, "commit": version if committed else ""},
                },
            }
            common.write_json(folder / f"data_{stamp}.json", value, durable=False)


def versions_page(site: Site) -> Page:
    site.publish_here()
    assert_whole(site)
    return site.page("versions.html")


def spots(page: Page) -> list[float]:
    """Where the TVMs of the first series stand."""
    picture = re.search(r'<svg class="course".*?</svg>', page.path.read_text(encoding="utf-8"))
    assert picture
    return [float(place) for place in re.findall(r'cx="([0-9.]+)"', picture[0])]


def attributes(page: Page, tag: str, name: str) -> list[Any]:
    return [found.get(name) for found in page.all(tag)]


def test_the_page_says_what_moved_in_the_words_of_the_markdown_page(site: Site) -> None:
    backfill(site, RELEASES, (1.0, 1.2, 1.2))
    page = versions_page(site)
    words = page.words
    assert "1 of 2 steps are told." in words
    assert "cnn mlp run time 0.9.0 0.10.0" in words
    assert re.search(r"✖\+(19|20)\.\d % \+\d", words)
    assert "2026-11-20 00:01 to 00:18 UTC" in words
    assert "Alerts and other pages do not use them." in words
    assert "20261120T000100Z" in words
    assert re.search(r"0\.9\.0 6 20261120T000100Z 20261120T001600Z", words)
    told = history_page.format_page(history.read(site.home))
    rows = [line.split(" | ") for line in told.splitlines() if line.startswith("| cnn mlp")]
    assert len(rows) == 1
    shown = [cell.strip(" |") for cell in rows[0][3:]]
    assert [cell for cell in shown if cell not in words] == []


def test_what_backfill_measured_is_on_no_other_page(site: Site) -> None:
    backfill(site, RELEASES, (1.0, 1.2, 1.2))
    versions_page(site)
    others = [page for page in site.pages() if page.path.name != "versions.html"]
    assert [page.path.name for page in others if "0.10.0" in page.text] == []


def test_releases_stand_at_equal_distances_with_their_names(site: Site) -> None:
    backfill(site, RELEASES, (1.0, 1.0, 1.0))
    page = versions_page(site)
    first, second, third = spots(page)
    assert second - first == pytest.approx(third - second)
    assert page.texts["text"] == list(RELEASES)
    assert "No step is told, of 2." in page.words


def test_commits_stand_at_their_dates(site: Site) -> None:
    backfill(site, list(DAYS), (1.0, 1.0, 1.5))
    page = versions_page(site)
    first, second, third = spots(page)
    assert (second - first) / (third - first) == pytest.approx(0.1, abs=0.005), "a day of ten"
    assert page.texts["text"] == ["2026-05-01", "2026-05-11"]
    assert "line worse" in attributes(page, "path", "class")
    assert [version for version in DAYS if version[:12] not in page.words] == []


@pytest.mark.parametrize(("count", "is_folded"), [(6, False), (7, True)])
def test_the_values_on_more_tvms_than_a_screen_is_wide_are_folded(site: Site, count: int, is_folded: bool) -> None:
    backfill(site, [f"0.{number}.0" for number in range(count)], [1.0] * count, rounds=1)
    assert ("On each of the" in versions_page(site).words) is is_folded


def test_of_many_tvms_all_values_can_be_unfolded(site: Site) -> None:
    many = [f"0.{number}.0" for number in range(30)]
    backfill(site, many, [1.0] * 30, rounds=1)
    page = versions_page(site)
    assert "On each of the 30 TVMs" in page.words
    assert len(spots(page)) == 30
    assert page.texts["text"] == ["0.0.0", "0.29.0"], "there is no room for the others"
    assert "No conclusion" in page.words


@pytest.mark.parametrize("name", ["canary", "stream"])
def test_the_controls_that_the_config_names_speak_for_the_machine(site: Site, name: str) -> None:
    backfill(site, RELEASES, (1.0, 1.0, 1.0), name=name)
    config = site.home.config("subsystem", "stat_alerts") / "config.json"
    config.parent.mkdir(parents=True)
    for controls, is_control in ((["other"], False), ([name], True)):
        common.write_json(config, {"active": True, "controls": controls})
        words = versions_page(site).words
        said = f"The control {name} runs the same machine code on every TVM"
        assert (said in words, "there none are told" in words) == (is_control, is_control)
    config.unlink()
    assert ("the same machine code on every TVM" in versions_page(site).words) is (name == "canary")


def test_failures_and_unreadable_files_are_told(site: Site) -> None:
    backfill(site, RELEASES, (1.0, 1.0, 1.0), failing={"0.10.0": "no such operator"})
    (site.home.backfill("cnn") / f"data_{STAMP}.json").write_text("{", encoding="utf-8")
    (site.home.backfill("cnn") / "data_20261129T000000Z.json").write_text("[]", encoding="utf-8")
    (site.home.backfill("cnn") / "data_20261130T000000Z.json").symlink_to("nowhere")
    words = versions_page(site).words
    assert "cnn 0.10.0 ✗1 point: no such operator" in words
    assert words.count("Not used:") == 3
    assert f"data_{STAMP}.json" in words


def test_the_page_is_carried_over_until_backfill_has_measured_again(site: Site) -> None:
    backfill(site, RELEASES, (1.0, 1.2, 1.2))
    first = versions_page(site).path.stat().st_ino
    site.night(job("cnn", title="Networks"), at="20261122T031500Z")
    page = versions_page(site)
    assert page.path.stat().st_ino == first
    assert "Written" not in page.words, "it would be another night's"
    site.home.backfills.mkdir()
    account = site.home.backfills / "20261122T000000Z.json"
    common.write_json(account, {"unbuilt": {"0.8.0": "no wheel"}})
    assert "every experiment 0.8.0 ✗could not be built: no wheel" in versions_page(site).words
    experiment = site.home.backfills / "20261123T000000Z.json"
    common.write_json(experiment, {"failed": {"cnn on 0.11.0": "it crashed"}})
    assert "Networks" in versions_page(site).words
    assert "cnn 0.11.0 ✗it crashed" in versions_page(site).words


def test_what_could_not_be_built_is_told_where_nothing_was_measured(site: Site) -> None:
    site.home.backfills.mkdir()
    account = site.home.backfills / "20261122T000000Z.json"
    common.write_json(account, {"unbuilt": {HOSTILE[0]: HOSTILE[1]}})
    words = versions_page(site).words
    assert "No TVM of the past has been measured here" in words
    assert f"could not be built: {HOSTILE[1]}" in words


def test_hostile_names_stay_text(site: Site) -> None:
    name = HOSTILE[1].replace("/", "")
    backfill(site, HOSTILE, [1.0, 2.0, 2.0, 2.0, 2.0, 2.0], name=name, failing={HOSTILE[0]: HOSTILE[0]})
    page = versions_page(site)
    assert as_shown(name) in page.words
    assert page.words.count(HOSTILE[0]) > 2
    assert not set("\x00\x1b\u202e") & set(page.path.read_text(encoding="utf-8"))
    assert not [source for source in attributes(page, "img", "src") if source != "icon.svg"]


def test_a_long_name_is_shortened_where_it_stands_beside_others(site: Site) -> None:
    backfill(site, [f"{'1' * 60}.{number}" for number in range(2)], [1.0, 1.0])
    runs = re.findall("1{9,}", versions_page(site).words)
    assert 15 < max(map(len, runs)) < 45


def test_a_home_without_backfill_says_how_to_measure_some(site: Site) -> None:
    words = versions_page(site).words
    assert "python3 -m dashboard backfill HOME --artifacts" in words
    assert "What changed" not in words
    assert "versions.html" in site.page().references


def test_one_tvm_alone_has_its_name_and_value(site: Site) -> None:
    backfill(site, [HOSTILE[4]], [1.0])
    page = versions_page(site)
    assert spots(page) == [120.0]
    assert [len(name) for name in page.texts["text"]] == [18]
    assert "No conclusion" in page.words


def test_only_unreadable_files_are_told_as_such(site: Site) -> None:
    site.home.backfill("cnn").mkdir(parents=True)
    (site.home.backfill("cnn") / f"data_{STAMP}.json").write_text("{", encoding="utf-8")
    words = versions_page(site).words
    assert "Not used:" in words
    assert "No TVM of the past has been measured here" in words


@pytest.mark.parametrize(
    ("places", "names"),
    [
        ((0.0, 0.06, 0.5, 1.0), ("0.24.0.post1", "0.25.0.post1", "0.26.0", "0.27.0")),
        ((0.0, 0.5, 0.95, 1.0), ("0.24", "0.25", "0.26.0.post1", "0.27")),
        ((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), ("0.22.0", "0.23.0", "0.24.0", "0.25.0", "0.26.0", "0.27.0.post1")),
        ((0.0, 1.0), ("0.28.dev400+g1234567", "0.28.dev439+g5a36cd4")),
    ],
)
def test_names_on_an_axis_neither_leave_it_nor_meet(places: Sequence[float], names: Sequence[str]) -> None:
    drawn = re.findall(r'<text(?: class="(\w+)")? x="([\d.]+)" y="(\d+)">([^<]+)<', axis(places, names, ""))
    assert {names[0][:4], names[-1][:4]} <= {name[:4] for *_, name in drawn}
    taken: dict[str, float] = {}
    for kind, at, row, name in drawn:
        wide = 6.2 * len(name)
        begin = float(at) - {"begin": 0.0, "": wide / 2, "end": wide}[kind]
        assert begin >= taken.get(row, 0.0)
        assert begin + wide <= WIDTH
        taken[row] = begin + wide
