"""Every sentence about a night whose truth is planted, checked against it."""

from __future__ import annotations

import pytest

from tests.subsystem.website import planted
from tests.subsystem.website.planted import TONIGHT, Planted
from tests.subsystem.website.sites import Page
from tvmdash.verdict import Level


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
