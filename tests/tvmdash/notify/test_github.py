"""An issue for each incident: opened, brought up to date in place, closed with it, whatever fails in between."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github import server
from tests.github.server import REPOSITORY, TOKEN, Fault, State
from tests.tvmdash.notify.route_homes import NIGHTS, ONE, SITE, RouteHome, moved
from tvmdash.common import github_api
from tvmdash.incidents.events import BisectionAnswer
from tvmdash.incidents.ledger import BISECTED, Event, iso_of
from tvmdash.notify import command, errors


@pytest.fixture
def state() -> Iterator[State]:
    with server.serve() as started:
        yield started
    assert not started.violations


@pytest.fixture
def home(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> RouteHome:
    monkeypatch.setattr(errors, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv("GITHUB_API_URL", state.url)
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    made = RouteHome(tmp_path)
    made.routes["issues"] = {
        "kind": "github", "repository": REPOSITORY, "labels": ["performance"],
        "secret_file": made.secret("token", TOKEN),
    }  # fmt: skip
    made.owners = [{"name": "CNN team", "experiment": "cnn_*", "github": ["ada", "apache/cnn"]}]
    return made


TITLE = "cnn_comp cnn.resnet18 run time +8.1 % since 599895c00..5a36cd400"


def test_an_incident_is_one_issue_from_its_first_night_to_its_end(home: RouteHome, state: State) -> None:
    home.opens(10)
    for _ in range(2):
        told = home.tell(10)
        assert told.state.fault == ""
    (issue,) = state.issues
    assert told.state.discussions == {ONE: f"{state.url}/{REPOSITORY}/issues/{issue['number']}"}
    assert (issue["title"], issue["labels"], issue["state"]) == (TITLE, ["performance"], "open")
    body = issue["body"]
    assert body.count("cc @ada @apache/cnn") == 1
    assert f"[Look at it]({SITE}/incidents/{ONE}.html)" in body
    assert "cnn\\_comp" not in body
    assert re.search(r"```\n.* bisect ", body)
    assert "Owners: CNN team." in body
    home.changes(11, "acknowledged", who="ann", words="looking at it, see #1 and @bob")
    home.tell(11)
    home.changes(12, "fixed", words="back where it was")
    home.tell(12)
    home.tell(13)
    acknowledged, fixed = state.comments_on(issue["number"])
    assert "see #\u200b1 and @\u200bbob\n" in acknowledged
    assert "Fixed: back where it was\n" in fixed
    assert "@ada" not in acknowledged + fixed
    assert (len(state.issues), issue["state"], issue["state_reason"]) == (1, "closed", "completed")


def test_more_series_are_an_edit_that_tells_nobody_but_owners_who_were_not_told(home: RouteHome, state: State) -> None:
    home.owners.append({"experiment": "rnn_*", "github": ["bob"]})
    home.opens(10)
    home.tell(10)
    home.grows(11, moved("resnet50"))
    home.tell(11)
    (issue,) = state.issues
    assert issue["title"].startswith("resnet18 and resnet50 ")
    assert state.comments_on(issue["number"]) == []
    assert "cnn.resnet50 run time" in issue["body"]
    home.grows(12, moved("gru", "rnn_comp"))
    home.tell(12)
    (comment,) = state.comments_on(issue["number"])
    assert "cc @bob" in comment


def test_the_commit_that_a_bisection_found_is_a_comment(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    answer = BisectionAnswer("s", "cnn.resnet18", 0.08, 0.07, 0.09, 0.99, (), 5, 40, 900.0, 3)
    home.add(Event.of(iso_of(NIGHTS[11]), "ann", BISECTED, ONE, answer))
    home.tell(11)
    (comment,) = state.comments_on(state.issues[0]["number"])
    assert "Bisected" in comment
    assert "5 builds" in comment


def test_a_false_alarm_closes_it_as_not_planned_and_what_opens_again_is_opened_again(
    home: RouteHome, state: State
) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(11, "false_alarm", who="ann")
    home.tell(11)
    (issue,) = state.issues
    assert (issue["state"], issue["state_reason"]) == ("closed", "not_planned")
    home.changes(12, "acknowledged", who="ann", words="it is real after all")
    home.tell(12)
    assert issue["state"] == "open"
    issue["state"] = "closed"  # by a person, on GitHub
    home.grows(13, moved("resnet50"))
    home.tell(13)
    assert issue["state"] == "closed"


@pytest.mark.parametrize(
    "fault",
    [
        Fault(500, taken=True),
        Fault(502),
        Fault(0, taken=True),
        Fault(0),
        Fault(429, {"Retry-After": "0"}),
        Fault(403, {"Retry-After": "0"}),
    ],
    ids=lambda fault: f"{fault.status}{'-taken' * fault.taken}",
)
@pytest.mark.parametrize("at", range(5))
def test_whatever_fails_there_is_one_issue_and_one_comment(
    home: RouteHome, state: State, fault: Fault, at: int
) -> None:
    state.faults += [*[None] * at, fault]
    home.opens(10)
    home.tell(10)
    home.changes(11, "fixed", who="ann")
    home.tell(11)
    home.tell(12)
    (issue,) = state.issues
    assert (issue["state"], len(state.comments_on(issue["number"]))) == ("closed", 1)


def test_a_refusal_is_told_without_the_token_and_tried_the_next_night(home: RouteHome, state: State) -> None:
    state.can_write = False
    home.opens(10)
    done = home.tell(10)
    assert "GitHub answered 403" in done.state.fault
    assert TOKEN not in "".join(path.read_text() for path in home.home.root.rglob("*.json"))
    state.can_write = True
    assert home.tell(11).state.fault == ""
    assert len(state.issues) == 1


def test_a_lost_record_finds_its_issue_again(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    (home.home.output("routes") / "issues.json").unlink()
    home.tell(10)
    assert len(state.issues) == 1


def test_an_issue_that_was_deleted_is_left_alone_and_that_is_said_once(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    state.gone.add(state.issues[0]["number"])
    home.changes(11, "acknowledged", who="ann")
    done = home.tell(11)
    assert done.notes == (f"issue 100 of {REPOSITORY} no longer exists; {ONE} is not reported there",)
    assert home.tell(12).notes == ()
    state.violations.clear()
    assert len(state.issues) == 1


def test_hostile_names_are_text_and_ping_nobody(home: RouteHome, state: State) -> None:
    evil = "@everyone #1 <img src=x> [x](https://evil.example.org) `a` ``` \u202e\x00 " + "z" * 70_000
    home.owners = []
    home.opens(10, ONE, moved(evil, name=evil, worse=True))
    home.changes(10, "acknowledged", who=evil, words=evil)
    assert home.tell(10).state.fault == ""
    (issue,) = state.issues
    assert "@everyone" not in issue["body"]
    assert "](https://evil" not in issue["body"].replace(f"]({SITE}", "")


def test_a_test_is_an_issue_that_is_closed_at_once(
    home: RouteHome, state: State, capsys: pytest.CaptureFixture[str]
) -> None:
    home.configure()
    assert command.main([str(home.home.root), "--test"]) == 0
    assert capsys.readouterr().out.startswith("issues: ")
    (issue,) = state.issues
    assert (issue["title"], issue["state"]) == ("Test of the route issues", "closed")


@pytest.mark.parametrize(
    ("api", "site"),
    [("", "https://github.com"), ("https://git.example.org/api/v3/", "https://git.example.org")],
)
def test_the_site_that_people_see_is_known_from_the_api(monkeypatch: pytest.MonkeyPatch, api: str, site: str) -> None:
    monkeypatch.setenv("GITHUB_API_URL", api)
    assert github_api.find_site() == site
