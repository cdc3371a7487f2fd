"""What the subsystems' message says: failures, and reports of tonight alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.subsystem import slack_homes
from tests.subsystem.slack_homes import BLOCKED, FAILED, SlackHome, write

NAME = "subsys_reporter"


@pytest.fixture
def home(tmp_path: Path) -> SlackHome:
    return SlackHome(tmp_path)


def job(name: str, state: str = slack_homes.OK, **more: object) -> slack_homes.JobResult:
    return slack_homes.job(name, state, kind="subsystem", **more)


def report(home: SlackHome, name: str, value: str, *, age_s: float = 0.0) -> None:
    """A report written so many seconds before the night began, or in it."""
    path = home.home.output(name) / "report.json"
    write(path, {"title": name, "value": value})
    began = slack_homes.common.parse_stamp(slack_homes.STAMP).timestamp()
    os.utime(path, (began + 60, began + 60) if age_s == 0 else (began - age_s, began - age_s))


def test_a_failed_subsystem_is_told_first_and_pings_its_people(home: SlackHome) -> None:
    home.notify("subsystem", "score", "S012ABCDEF")
    report(home, "website", "The page is up.")
    tonight = slack_homes.night(
        job("website", title="Website"), job("score", FAILED, message="no data", log_tail="last words")
    )
    done = home.run(NAME, tonight)
    assert done.success, done.log
    assert done.text.splitlines()[0] == "⚠️ Subsystem score failed"
    assert "❌ score failed in run after 1 min 2 s.\nno data\nlast words\ncc @S012ABCDEF" in done.text
    assert done.text.index("last words") < done.text.index("✅ Website\nThe page is up.")


def test_a_report_of_an_earlier_night_is_not_told(home: SlackHome) -> None:
    report(home, "score", "of yesterday", age_s=3600)
    report(home, "website", "of tonight")
    done = home.run(NAME, slack_homes.night(job("score", title="Score"), job("website")))
    assert "of yesterday" not in done.text
    assert "of tonight" in done.text
    assert "✅ Score: nothing to report." in done.text


def test_a_subsystem_that_failed_tonight_does_not_report_what_it_left_before(home: SlackHome) -> None:
    report(home, "score", "all is well")
    assert "all is well" not in home.run(NAME, slack_homes.night(job("score", FAILED))).text


@pytest.mark.parametrize("content", ["", "[]", '{"title": 1, "value": 2}', "{" * 9])
def test_a_report_that_cannot_be_read_costs_itself_alone(home: SlackHome, content: str) -> None:
    path = home.home.output("score") / "report.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    report(home, "website", "of tonight")
    done = home.run(NAME, slack_homes.night(job("score"), job("website")))
    assert done.success
    assert "of tonight" in done.text


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([], "No other subsystem ran"),
        ([job("a", title="Website")], "Website is ok"),
        ([job("a"), job("b")], "All 2 subsystems ok"),
        ([job("a", FAILED), job("b", FAILED), job("c", BLOCKED)], "Subsystems a and b failed; Subsystem c did not run"),
    ],
)
def test_the_report(home: SlackHome, jobs: list[slack_homes.JobResult], words: str) -> None:
    tonight = slack_homes.night(slack_homes.job("exp", FAILED), *jobs)
    done = home.run(NAME, tonight)
    assert json.loads((done.output / "report.json").read_text())["value"].startswith(f"{words}. ")
    assert done.text.splitlines()[0] == "🔴 exp failed", "the night has one headline, whoever tells it"


def test_of_experiments_and_itself_it_has_no_part(home: SlackHome) -> None:
    text = home.run(NAME, slack_homes.night(slack_homes.job("resnet", FAILED), job(NAME))).text
    assert "❌" not in text
    assert NAME not in text


def test_news_that_were_told_in_slack_stand_in_place_of_the_report_and_their_words_are_not_taken_apart(
    home: SlackHome,
) -> None:
    home.configure(website_url="https://bench.example")
    for name, said in (
        ("own", {"words": "one\ntwo"}),
        ("parts", {"headline": "three", "details": "four"}),
        ("quiet", {"words": "five", "details": "five"}),
    ):
        report(home, name, "the report")
        page = {"night": slack_homes.STAMP, "page": "alerts.html"}
        write(home.home.output(name) / "in_slack.json", {**page, **said})
    text = home.run(NAME, slack_homes.night(job("own"), job("parts"), job("quiet"))).text
    assert "one\ntwo alerts (https://bench.example/alerts.html)" in text
    assert "three alerts (https://bench.example/alerts.html)\nfour" in text
    assert text.count("five") == 1, "where nothing was told in threads, the words are the details"
    assert "the report" not in text
