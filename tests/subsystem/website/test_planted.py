"""Every sentence about a night whose truth is planted, checked against it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dashboard.homes import environment
from tests.subsystem import scripts
from tests.subsystem.stat_alerts.alert_homes import stamp_of
from tests.subsystem.website import planted
from tests.subsystem.website.planted import TONIGHT, Planted
from tests.subsystem.website.sites import Page
from tvmdash import common
from tvmdash.verdict import Level

website = scripts.load("website")
Links, SiteContext = website.Links, website.publishing.SiteContext


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return planted.make(tmp_path_factory.mktemp("planted"), judged_from=28)


def first_page(home: Planted) -> Page:
    return home.site.page("index.html")


def test_the_headline_names_the_models_how_far_they_moved_and_between_which_commits(home: Planted) -> None:
    verdict = home.verdicts[TONIGHT]
    assert verdict.level is Level.REGRESSION
    first, *rest = verdict.headline.split("; ")
    before, after = planted.commit_of(TONIGHT - 1)[:9], planted.commit_of(TONIGHT)[:9]
    assert first.startswith("TVM got slower: resnet18 and 2 others ")
    assert first.endswith(f" % faster since {before}..{after}")
    slower, faster = first.removeprefix("TVM got slower: resnet18 and 2 others ").split(", softmax ")
    low, high = (float(number) for number in slower.removesuffix(" % slower").split(" to "))
    assert (round(low), round(high)) == (7, 8)
    assert 14 < float(faster.split(" %")[0]) < 16
    assert rest[0] == (
        "12 of 28 series have no value: cnn_engines failed, pass_comparison was blocked and rnn_comp did not run"
    )


def test_the_night_before_says_what_is_open_and_nothing_of_what_came_later(home: Planted) -> None:
    headline = home.verdicts[TONIGHT - 1].headline
    assert headline.startswith("Nothing new; 1 regression is open: operators op.conv2d_56 run time +15.")
    assert "resnet18" not in headline
    assert "2 of 28 series have no value: rnn_comp did not run" in headline


def rows(page: Page, kind: str = "li") -> list[str]:
    return [" ".join(text.split()) for text in page.texts[kind]]


def test_the_first_page_says_once_an_experiment_what_has_no_value_above_the_series_that_have_one(home: Planted) -> None:
    page = first_page(home)
    lines = [line for line in rows(page) if line.startswith("∅") and ":" in line]
    assert lines == [
        "∅cnn_engines: 6 of 6 series, it failed",
        "∅pass_comparison: 4 of 4 series, it was blocked",
        "∅rnn_comp: 2 of 2 series, it did not run",
    ]
    assert not [row for row in rows(page, "tr") if "missing" in row]
    html = page.path.read_text(encoding="utf-8")
    assert html.index('id="missing"') < html.index('id="failures"') < html.index('id="series"')
    assert "onnxruntime: libonnxruntime.so.1: cannot open shared object file" in page.words


def test_what_is_new_tonight_stands_above_what_was_open(home: Planted) -> None:
    new, old = (rows(first_page(home), "h3"))[:2]
    assert new.startswith("▼Regression resnet18 and 2 others")
    assert old.startswith("▼Regression operators op.conv2d_56")


def test_an_incident_has_its_commits_with_their_addresses(home: Planted) -> None:
    page = first_page(home)
    links = {link.get("href", "") for link in page.all("a")}
    before, after = planted.commit_of(TONIGHT - 1), planted.commit_of(TONIGHT)
    assert f"https://github.com/apache/tvm/compare/{before}...{after}" in links
    for start, author, title in planted.COMMITS:
        assert f"https://github.com/apache/tvm/commit/{planted.digits(start)}" in links
        assert f"{planted.digits(start)[:9]} {title} {author}, 2026-06-09" in rows(page)
    night = home.site.page(f"nights/{planted.stamp_of(TONIGHT)}.html")
    assert f"TVM {before[:9]}..{after[:9]}, 4 commits" in rows(night, "p")


def test_the_next_commands_name_what_was_planted_and_are_ones_that_exist(home: Planted, tmp_path: Path) -> None:
    (new,) = home.verdicts[TONIGHT].new
    before, after = planted.commit_of(TONIGHT - 1), planted.commit_of(TONIGHT)
    commands = [text for text in rows(first_page(home), "dd") if text.startswith("python3 -m dashboard")]
    own = [command for command in commands if new in command or f"git:{after}" in command]
    (bisect,) = (command for command in own if " bisect " in command)
    assert bisect.startswith("python3 -m dashboard bisect HOME cnn_comp ")
    assert bisect.endswith(f" --good git:{before} --bad git:{after} --incident {new}")
    verbs = {shlex.split(command)[3]: shlex.split(command)[3:] for command in commands}
    assert set(verbs) == {"bisect", "compare", "try", "explain", "reproduce", "incidents"}
    for words in verbs.values():
        parse(words, tmp_path)


def parse(words: list[str], place: Path) -> None:
    """Fail where the command line does not take the words; nothing is run, as there is no such home in `place`."""
    done = subprocess.run(
        [sys.executable, "-m", "dashboard", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        cwd=place,
    )
    assert "usage:" not in done.stderr, done.stderr
    assert "HOME" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("git@github.com:apache/tvm.git", f"https://github.com/apache/tvm/commit/{'a' * 40}"),
        ("https://user:secret@gitlab.com/a/b.git", f"https://gitlab.com/a/b/-/commit/{'a' * 40}"),
        ("/srv/tvm", ""),
        ("https://example.org/tvm", ""),
        ("javascript:alert(1)//github.com/a", ""),
    ],
)
def test_a_commits_address_is_that_of_its_remotes_host_and_holds_no_secret(remote: str, url: str) -> None:
    links = Links()
    assert links.of_commit(remote, "a" * 40) == url
    assert links.of_commit(remote, "x" * 40) == ""
    assert Links("https://tvm.example/{commit}").of_commit(remote, "abcdef1") == "https://tvm.example/abcdef1"


def test_an_incident_after_nights_without_a_value_has_the_commits_of_all_of_them(home: Planted) -> None:
    context = SiteContext(
        home.home.home, home.home.home.read_night(stamp_of(TONIGHT)), home.site.folder, common.utc_now()
    )
    found = context.new_between(stamp_of(TONIGHT - 3), stamp_of(TONIGHT), planted.commit_of(TONIGHT))
    assert [new.ends for new in found] == [
        (planted.commit_of(night - 1)[:9], planted.commit_of(night)[:9])
        for night in (TONIGHT, TONIGHT - 1, TONIGHT - 2)
    ]
    (one,) = context.new_between(stamp_of(TONIGHT - 1), stamp_of(TONIGHT), planted.commit_of(TONIGHT))
    assert one.count == len(planted.COMMITS)
