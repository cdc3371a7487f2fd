"""What is told on a route, when and how often, by a webhook that checks everything: each thing once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.golden_files import Golden
from tests.subsystem.slack_homes import job
from tests.tvmdash.notify.route_homes import NIGHTS, ONE, SITE, RouteHome, moved
from tests.webhook import server
from tests.webhook.server import SECRET, Fault, State
from tvmdash import common
from tvmdash.dashboard_info import COMPLETE, FAILED, JobResult, Night, StepResult
from tvmdash.notify import command, errors
from tvmdash.notify.service import tell_routes
from tvmdash.notify.state import format_fault, read_states
from tvmdash.verdict import Level

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture
def state() -> Iterator[State]:
    with server.webhook() as started:
        yield started
    assert not started.violations
    assert not started.strays


@pytest.fixture
def home(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> RouteHome:
    monkeypatch.setattr(errors, "_FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(errors, "_REQUEST_S", 0.6)
    made = RouteHome(tmp_path)
    made.routes["hook"] = {"kind": "webhook", "url": state.url, "secret_file": made.secret("hook", SECRET)}
    return made


def told(state: State) -> list[tuple[str, str]]:
    return [(body["event"], f"{body['news']}: {body['title']}".removeprefix(": ")) for body in state.bodies]


BETWEEN = "since 599895c00..5a36cd400"
TITLE = f"cnn_comp cnn.resnet18 run time +8.1 % {BETWEEN}"
BOTH = f"resnet18 and resnet50 8.1 % slower {BETWEEN}"


def test_an_incident_is_told_when_it_opens_when_it_changes_and_when_it_is_over(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(11, "acknowledged", who="ann", words="looking at it")
    home.grows(11, moved("resnet50"))
    home.tell(11)
    home.changes(12, "fixed", words="back where it was")
    home.tell(12)
    home.tell(13)
    assert told(state) == [
        ("opened", TITLE),
        ("updated", f"Acknowledged by ann: {BOTH}"),
        ("closed", f"Fixed: {BOTH}"),
    ]
    opened, updated, closed = state.bodies
    assert opened["level"] == "regression"
    assert opened["items"][0]["address"] == f"{SITE}/incidents/{ONE}.html"
    purpose, command = opened["items"][0]["commands"][0]
    assert (purpose, command.split()[:4]) == ("Next", ["python3", "-m", "dashboard", "bisect"])
    person, grown = updated["items"][0]["lines"]
    assert person.endswith(": looking at it")
    assert "cnn.resnet50 run time" in grown
    assert (updated["first"], closed["first"]) == (opened["id"], opened["id"])
    assert closed["items"][0]["lines"] == ["Fixed: back where it was"]
    assert closed["incident"]["state"] == "fixed"


def test_a_rerun_and_the_nights_after_tell_nothing_more(home: RouteHome, state: State) -> None:
    home.opens(10)
    for at in (10, 10, 11, 12):
        home.tell(at)
    assert state.requests == 1


def test_that_it_still_stands_is_no_news(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(20, "confirmed", words="it still stands after 10 nights")
    home.tell(20)
    assert state.requests == 1


def test_what_was_found_before_the_route_was_there_is_not_told(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.opens(12, "i20260513-00bb", moved("vgg11"))
    home.tell(12)
    home.changes(13, "fixed")
    home.tell(13)
    assert [event for event, _ in told(state)] == ["opened"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500),
        Fault(status=500, taken=True),
        Fault(status=503),
        Fault(status=429, retry_after="0.05"),
        Fault("reset"),
        Fault("reset", taken=True),
        Fault("hang", taken=True),
        Fault("drip_head", taken=True),
        Fault("drip_body"),
        Fault("endless", taken=True),
    ],
    ids=lambda fault: f"{fault.kind}-{fault.status}{'-taken' * fault.taken}",
)
def test_after_a_failure_that_passes_each_thing_is_there_once(home: RouteHome, state: State, fault: Fault) -> None:
    home.opens(10)
    state.faults.append(fault)
    assert home.tell(10).state.fault == ""
    assert told(state) == [("opened", TITLE)]
    assert len(state.repeats) == fault.taken, "the same ID, by which it is known"


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Fault("redirect"), "its server redirects (302); redirects are not followed"),
        (Fault(status=401), "its server rejected the request (401)"),
        (Fault(status=410), "its server rejected the request (410)"),
    ],
)
def test_a_refusal_is_not_asked_again_that_night_and_is_told(
    home: RouteHome, state: State, fault: Fault, says: str
) -> None:
    for at in range(4):
        home.opens(10, f"i20260511-00b{at}", moved(f"net{at}"))
    state.faults += [fault] * 9
    done = home.tell(10)
    assert state.requests == 2, "after the second one the night asks no further"
    assert says in done.state.fault
    assert (done.state.waiting, done.sent) == (4, 0)
    (kept,) = read_states(home.home)
    assert format_fault(kept).count("4 messages") == 1
    state.faults.clear()
    assert home.tell(11).state.fault == ""
    assert sorted(title for _, title in told(state)) == [
        f"cnn_comp cnn.net{at} run time +8.1 % {BETWEEN}" for at in range(4)
    ]


def test_a_server_that_asks_to_wait_longer_than_the_budget_is_asked_the_next_night(
    home: RouteHome, state: State
) -> None:
    home.opens(10)
    state.faults.append(Fault(status=429, retry_after="3600"))
    begun = time.monotonic()
    assert "asked to wait (429)" in home.tell(10).state.fault
    assert time.monotonic() - begun < 5
    home.tell(11)
    assert (told(state), state.requests) == ([("opened", TITLE)], 2)


def test_a_route_never_takes_longer_than_it_may(home: RouteHome, state: State) -> None:
    home.routes["hook"]["seconds"] = 1
    home.opens(10)
    state.faults += [Fault("hang")] * 9
    begun = time.monotonic()
    assert home.tell(10).state.fault
    assert time.monotonic() - begun < 3


def test_what_changed_while_it_waited_is_told_once_as_it_is(home: RouteHome, state: State) -> None:
    home.opens(10)
    state.faults += [Fault(status=401)] * 2
    home.tell(10)
    home.changes(11, "acknowledged", who="ann")
    home.tell(11)
    home.tell(12)
    assert [event for event, _ in told(state)] == ["opened"]
    assert state.bodies[0]["incident"]["state"] == "acknowledged"


def test_what_is_over_before_it_was_told_is_not_told(home: RouteHome, state: State) -> None:
    home.opens(10)
    state.faults.append(Fault(status=401))
    home.tell(10)
    home.changes(11, "false_alarm", who="ann")
    home.tell(11)
    assert not state.taken


def test_what_was_not_taken_for_a_week_is_given_up_and_that_is_said(home: RouteHome, state: State) -> None:
    home.opens(10)
    state.faults += [Fault(status=401)] * 99
    home.tell(10)
    state.faults.clear()
    done = home.tell(18)
    assert any(note.startswith(f"{ONE} opened ") for note in done.notes)
    assert (done.state.waiting, state.taken) == (0, {})


def test_nothing_is_told_of_what_is_silenced_until_the_silence_ends(home: RouteHome, state: State) -> None:
    home.tell(4)
    home.silences(5, until=30)
    home.opens(10)
    for at in (10, 20):
        home.tell(at)
    assert not state.taken
    home.tell(30)
    home.tell(31)
    assert told(state) == [("opened", TITLE)]


def test_a_level_is_told_at_once_in_a_digest_or_not_at_all(home: RouteHome, state: State) -> None:
    home.routes["hook"] |= {"at_once": ["regression"], "digest": ["improved", "incomplete"]}
    home.opens(10)
    home.opens(10, "i20260511-00bb", moved("gru", "rnn_comp", worse=False, effect=-0.1))
    home.opens(10, "i20260511-00cc", moved("count", worse=None))
    home.judged(10, Level.REGRESSION, "TVM got slower; 3 of 9 series have no value", "TVM got slower")
    home.tell(10)
    assert [event for event, _ in told(state)] == ["opened", "night"]
    night = state.bodies[1]
    assert night["title"] == "TVM got slower"
    whole, new, still = night["items"]
    assert (whole["title"], still["title"], still["lines"]) == ("", "Still open", [f"{TITLE}."])
    assert "3 of 9 series" in whole["lines"][0]
    assert new["title"].startswith("New: rnn_comp cnn.gru")
    home.judged(11, Level.STEADY, "TVM did not get slower")
    home.tell(11)
    home.judged(12, Level.INCOMPLETE, "Nothing moved, but 3 of 9 series have no value: cnn_comp failed")
    home.tell(12)
    home.tell(12)
    assert [body["night"] for body in state.bodies if body["event"] == "night"] == [NIGHTS[10], NIGHTS[12]]


def test_a_night_in_which_something_failed_is_told_unless_the_route_is_an_owners_or_says_otherwise(
    home: RouteHome, state: State
) -> None:
    theirs = {"kind": "webhook", "url": "http://127.0.0.1:9/", "secret_file": home.secret("x", SECRET)}
    home.routes |= {"theirs": theirs, "silent": {**theirs, "digest": []}}
    home.owners.append({"experiment": "cnn_*", "email": ["ada@example.org"], "routes": ["theirs"]})
    home.judged(10, Level.INCOMPLETE, "Nothing moved, but 3 of 9 series have no value: cnn_comp failed")
    assert {each.state.name: (each.sent, each.state.fault) for each in home.tell_all(10)} == {
        "hook": (1, ""), "theirs": (0, ""), "silent": (0, ""),
    }  # fmt: skip
    home.judged(11, Level.STEADY, "TVM did not get slower")
    home.tell_all(11)
    assert [event for event, _ in told(state)] == ["night"]


def test_a_night_that_was_not_judged_is_told_where_that_is_asked_for(home: RouteHome, state: State) -> None:
    home.routes["hook"] |= {"digest": ["no_data"]}
    home.judged(9, Level.STEADY, "TVM did not get slower")
    home.jobs += [job("cnn"), job("stat_alerts", kind="subsystem")]
    home.tell(10)
    assert told(state) == [("night", "TVM was not judged")]


def test_a_nights_message_that_was_missed_is_told_by_the_next(home: RouteHome, state: State) -> None:
    home.routes["hook"] |= {"digest": ["incomplete"]}
    home.judged(10, Level.INCOMPLETE, "Nothing moved, but 3 of 9 series have no value")
    state.faults.append(Fault(status=401))
    assert home.tell(10).state.waiting == 1
    home.judged(11, Level.STEADY, "TVM did not get slower")
    done = home.tell(11)
    assert done.state.waiting == 0
    home.tell(12)
    (body,) = state.bodies
    assert body["items"][-1]["title"] == "Delayed messages"
    assert [line[:25] for line in body["items"][-1]["lines"]] == ["2026-05-11: Nothing moved"]


def test_in_quiet_hours_nothing_is_sent_but_what_may_wake(home: RouteHome, state: State) -> None:
    home.routes["hook"] |= {
        "at_once": ["regression", "improved"], "quiet_hours": "22:00-07:00", "wake": ["regression"],
    }  # fmt: skip
    home.opens(10)
    home.opens(10, "i20260511-00bb", moved("gru", worse=False))
    done = home.tell(10, "03:40")
    assert [event["level"] for event in state.bodies] == ["regression"]
    assert (done.state.held, done.state.until, done.state.fault) == (1, "07:00 UTC", "")
    home.tell(10, "07:00")
    home.tell(10, "07:05")
    assert [event["level"] for event in state.bodies] == ["regression", "improved"]


def test_a_route_of_owners_tells_what_is_theirs(home: RouteHome, state: State) -> None:
    home.owners = [{"name": "RNN team", "experiment": "rnn_*", "routes": ["hook"]}]
    home.opens(10)
    home.opens(10, "i20260511-00bb", moved("gru", "rnn_comp"))
    home.tell(10)
    assert [(body["incident"]["id"], body["owners"]) for body in state.bodies] == [("i20260511-00bb", ["RNN team"])]


def test_an_incident_of_thousands_of_series_fits(home: RouteHome, state: State) -> None:
    home.opens(10, ONE, *(moved(f"net{at}" + "x" * 200, effect=at / 1000) for at in range(3000)))
    home.tell(10)
    (body,) = state.bodies
    assert (body["series"], len(body["incident"]["moved"])) == (3000, 50)
    assert body["incident"]["moved"][0]["workload"].startswith("net2999x")


def test_secrets_reach_neither_files_nor_faults(home: RouteHome, state: State) -> None:
    home.routes["bad"] = {**home.routes["hook"], "secret_file": home.secret("bad", "whsec_!!!")}
    home.opens(10, ONE, moved("resnet18"), notes=(f"password={SECRET}",))
    home.tell_all(10)
    whole = "".join(path.read_text() for path in home.home.root.rglob("*") if path.suffix in (".json", ".txt"))
    assert SECRET not in whole
    assert SECRET not in str(state.bodies)


@pytest.mark.parametrize(
    ("lines", "mode", "says"),
    [
        ([], 0o600, "must contain exactly one signing key"),
        (["short"], 0o600, "the key is shorter than 16 bytes"),
        (["whsec_%%%"], 0o600, "the text after whsec_ is not base64"),
        ([SECRET], 0o640, "other users can read the key (mode 640)"),
        ([SECRET, "http://hooks.example.org"], 0o600, "the URL does not start with https://"),
    ],
)
def test_a_bad_secret_is_told_every_night_also_when_there_is_nothing_to_tell(
    home: RouteHome, lines: list[str], mode: int, says: str
) -> None:
    path = home.secret("other", *lines)
    os.chmod(path, mode)
    home.routes["hook"] = {"kind": "webhook", "secret_file": path} | (
        {"url": home.routes["hook"]["url"]} if len(lines) < 2 else {}
    )
    assert says in home.tell(10).state.fault


def test_an_address_that_is_a_secret_stands_in_the_file(home: RouteHome, state: State) -> None:
    home.routes["hook"] = {"kind": "webhook", "secret_file": home.secret("both", SECRET, state.url)}
    home.opens(10)
    home.tell(10)
    assert told(state) == [("opened", TITLE)]
    assert state.url not in (home.home.output("routes") / "hook.json").read_text()


def test_a_file_that_was_damaged_is_set_aside_and_the_route_goes_on(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    path = home.home.output("routes") / "hook.json"
    path.write_text('{"since": "20')
    home.opens(11, "i20260512-00bb", moved("vgg11"))
    assert home.tell(11).state.fault == ""
    assert [event for event, _ in told(state)] == ["opened", "opened"]
    assert path.with_suffix(".broken.json").is_file()


def test_what_is_whole_in_a_damaged_file_is_not_told_again(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    path = home.home.output("routes") / "hook.json"
    for _ in range(2):
        known = common.read_json(path)
        common.write_json(path, {**known, "hushed": [5], "entries": [*known["entries"], {"key": "x"}, None]})
        assert home.tell(11).state.fault == ""
    assert told(state) == [("opened", TITLE)]
    assert sorted(each.name for each in path.parent.glob("*broken*")) == ["hook.broken.json", "hook.broken2.json"]


def test_a_night_by_a_clock_that_is_decades_ahead_makes_nothing_be_told_twice(home: RouteHome, state: State) -> None:
    home.opens(10)
    home.tell(10)
    ahead = "20990101T000000Z"
    common.write_json(home.home.night_file(ahead), Night(ahead, COMPLETE).to_json())
    tell_routes(home.home, ahead, common.parse_stamp(ahead))
    home.tell(11)
    assert told(state) == [("opened", TITLE)]


def test_a_route_that_began_by_a_clock_that_was_ahead_tells_what_is_found_later(home: RouteHome, state: State) -> None:
    home.configure()
    tell_routes(home.home, "20990101T000000Z", common.parse_stamp("20990101T000000Z"))
    home.opens(10)
    home.tell(10)
    assert told(state) == [("opened", TITLE)]


@pytest.mark.parametrize("taken", [False, True])
def test_a_start_that_is_killed_while_it_sends_makes_the_next_one_send_the_same(
    home: RouteHome, state: State, taken: bool
) -> None:
    home.configure()
    home.tell(9)
    home.opens(10)
    home.leave_night(10)
    state.faults.append(Fault("hang", taken=taken))
    argv = [sys.executable, "-m", "dashboard", "routes", str(home.home.root), "--send"]
    with subprocess.Popen(argv, cwd=REPO) as process:
        assert state.hanging.wait(60)
        process.send_signal(signal.SIGKILL)
    assert len(state.taken) == taken
    home.tell(10)
    home.tell(10)
    assert told(state) == [("opened", TITLE)]
    assert len(state.repeats) == taken


def test_the_command_line_shows_and_tests(
    home: RouteHome, state: State, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    home.owners = [{"name": "CNN team", "experiment": "cnn_*", "email": ["ada@example.org"], "routes": ["hook"]}]
    home.routes["mail"] = {"kind": "email", "server": "127.0.0.1:1", "security": "none", "from": "tvm@example.org"}
    home.configure()
    root = str(home.home.root)
    assert command.main([root]) == 0
    golden.messages("routes_command", [("two routes and an owner", capsys.readouterr().out)])
    assert command.main([root, "--test"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("hook: ")
    assert said.err.startswith("mail: 127.0.0.1 ")
    assert told(state) == [("test", "Test of the route hook")]
    assert command.main([root, "--test", "hok"]) == 2
    assert "no route 'hok'" in capsys.readouterr().err


def test_what_waits_is_sent_by_hand(home: RouteHome, state: State, capsys: pytest.CaptureFixture[str]) -> None:
    home.routes["hook"] |= {"quiet_hours": "00:00-23:59"}
    home.opens(10)
    home.tell(10)
    root = str(home.home.root)
    command.main([root])
    assert "1 message waits for 23:59" in capsys.readouterr().out
    del home.routes["hook"]["quiet_hours"]
    home.configure()
    assert command.main([root, "--send"]) == 0
    assert capsys.readouterr().out == "hook: 1 message sent.\n"
    assert told(state) == [("opened", TITLE)]
    assert command.main([root, "--send"]) == 0
    assert capsys.readouterr().out == "hook: nothing to tell.\n"


def test_a_night_s_message_says_why_what_failed_did(home: RouteHome, state: State) -> None:
    home.routes["hook"] |= {"digest": ["incomplete"]}
    home.judged(10, Level.INCOMPLETE, "Nothing moved, but 3 of 9 series have no value: cnn_comp failed")
    step = StepResult("run", FAILED, "exited with code 1", NIGHTS[10], log_tail="OSError: no libtvm.so in /opt/tvm\n")
    home.jobs += [
        JobResult("experiment", "cnn_comp", "CNNs", "", (step,)),
        JobResult("experiment", "canary", "", "", ()),
    ]
    home.tell(10)
    (body,) = state.bodies
    failed = [item for item in body["items"] if item["title"] == "Failed"]
    line = "experiment cnn_comp FAILED: run: exited with code 1. Last line of output: OSError: no libtvm.so in /opt/tvm"
    assert [item["lines"] for item in failed] == [[line]]
