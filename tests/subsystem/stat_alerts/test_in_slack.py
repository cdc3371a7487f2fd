"""Each incident has one thread in Slack, with a reply when its state changes, and nothing is said twice."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, Fault, State
from tests.subsystem import scripts
from tests.subsystem.slack_homes import SlackHome, job, night
from tests.subsystem.stat_alerts.alert_homes import MLP, AlertHome, Truth, stamp_of
from tvmdash import common
from tvmdash.dashboard_info import Night
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import Change, Event, Incident, fold, iso_of
from tvmdash.incidents.text import describe
from tvmdash.notify.message import OUTBOX_FILE
from tvmdash.notify.payloads import build
from tvmdash.notify.senders import slack as slack_module
from tvmdash.notify.state import read_states
from tvmdash.notify.token import Secrets
from tvmdash.subsys_templates import Report

SUBSYSTEM = scripts.load("stat_alerts")
NIGHTS = [stamp_of(at) for at in range(60)]
SITE = "https://bench.example.org/tvm"


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


@dataclass
class Home:
    """A home whose incidents are told, without series and statistics."""

    slack: SlackHome
    state: State
    config: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.slack.home.output("stat_alerts")

    def opens(self, at: int, name: str = "i20260501-00aa", *, what: str = "mlp run time", **data: Any) -> None:
        """An incident opens in a night."""
        facts = {
            "kind": "change", "begin": NIGHTS[at - 3], "after": NIGHTS[at - 4], "found": NIGHTS[at],
            "versions": ["aaa1", "bbb2"], "blame": "compiler", "notes": [], "fleet": "times", "moved": [moved(what)],
        }  # fmt: skip
        self.events.append(Event(iso_of(NIGHTS[at]), ledgers.DETECTOR, ledgers.OPENED, name, {**facts, **data}))

    def changes(
        self, at: int, state: str, name: str = "i20260501-00aa", *, who: str = "detector", words: str = ""
    ) -> None:
        """Its state changes in a night, or between two."""
        self.events.append(ledgers.changed(name, state, at=iso_of(NIGHTS[at]), who=who, words=words))

    def grows(self, at: int, what: str, name: str = "i20260501-00aa") -> None:
        data = {"moved": [moved(what)]}
        self.events.append(Event(iso_of(NIGHTS[at]), ledgers.DETECTOR, ledgers.JOINED, name, data))

    def tell(self, at: int, *, seconds: float = 10.0, lines: Sequence[Any] = ()) -> Report:
        """What stat_alerts does with Slack in a night."""
        if not self.slack.home.config_file.exists():
            self.slack.configure(website_url=SITE)
        self.output.mkdir(parents=True, exist_ok=True)
        config = {"channel": CHANNEL, "token_file": str(self.slack.root / ".config/tvmdash/slack_token"), "env": {}}
        config = SUBSYSTEM.ThreadsConfig(**{**config, "threads": 5, "slack_seconds": seconds, **self.config})
        tonight = Night(NIGHTS[at], "running")
        report, ledger = Report("title", "the report"), fold(self.events)
        told: Report = SUBSYSTEM.post_threads(report, config, self.output, self.slack.home, tonight, ledger, lines)
        return told

    def heads(self) -> list[str]:
        """What each thread is of, without how far that moved."""
        return [re.split(r" [+−]| of the ", head(message))[0] for message in self.state.channel()]

    def replies(self) -> list[str]:
        return [head(message) for message in self.state.thread()]

    def brief(self) -> str | None:
        path = self.output / "in_slack.json"
        return json.loads(path.read_text())["words"] if path.exists() else None


def moved(what: str) -> dict[str, Any]:
    sizes = {"before": 0.25, "after": 0.263, "effect": 0.052, "low": 0.049, "high": 0.055, "z": 9.0, "nights": 4}
    return Moved(f"id {what}", what, "run_time", "ms", worse=True, **sizes).__dict__


def owns(home: Home, *owners: dict[str, Any], **routes: dict[str, Any]) -> None:
    home.slack.configure(website_url=SITE, owners=list(owners), routes=routes)


def of(experiment: str, what: str = "mlp run time", **changes: Any) -> dict[str, Any]:
    return {**moved(what), "experiment": experiment, **changes}


def numbers_and_rest(brief: str | None) -> tuple[list[str], str]:
    """What the first line of the nightly message counts, and the lines after it."""
    first, _, rest = (brief or "").partition("\n")
    return re.findall(r"\d+", first), rest


def head(message: server.Posted) -> str:
    return str(message.blocks[0]["text"]["text"])


@pytest.fixture
def home(tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("SLACK_API_URL", state.url)
    monkeypatch.setattr(slack_module, "_SETTLE_S", 0.0)
    made = Home(SlackHome(tmp_path), state)
    made.slack.token(TOKEN)
    return made


def down(state: State) -> None:
    state.fail("*", *[Fault("status", status=503)] * 99)


def up(state: State) -> None:
    state.faults.clear()


def test_a_new_incident_has_a_message_that_says_what_since_when_how_sure_and_where(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    (message,) = home.state.channel()
    assert home.heads() == ["⚠️ mlp run time"]
    text = message.markup()
    for part in (
        "+5.2 % since aaa1..bbb2",
        "0.250 ms → 0.263 ms",
        "2026-05-08",
        "9.0 standard errors",
        f"<{SITE}/incidents/i20260501-00aa.html|Look at it>",
    ):
        assert part in text
    assert text.count("i20260501-00aa") == 3, "in the link and the commands"
    assert not message.pings()


def test_an_improvement_and_a_move_of_the_machine_have_their_threads_too(home: Home) -> None:
    better = {**moved("gru run time"), "worse": False, "effect": -0.1}
    home.opens(10, "i20260501-00bb", moved=[better])
    home.opens(10, "i20260501-00cc", kind="machine", blame="machine", moved=[], size=0.04)
    home.tell(10)
    assert sorted(home.heads()) == ["⚠️ The machine got slower:", "✅ gru run time"]


def test_a_change_that_is_neither_worse_nor_better_has_no_tick(home: Home) -> None:
    home.opens(10, "i20260501-00dd", moved=[{**moved("count"), "worse": None, "effect": 0.1}])
    home.tell(10)
    assert home.heads() == ["⚠️ count"]


def test_a_rerun_and_the_nights_after_say_nothing_more(home: Home) -> None:
    home.opens(10)
    for at in (10, 10, 11, 12):
        home.tell(at)
    assert len(home.state.messages) == 1
    assert home.state.channel()[0].edits == 0


def test_a_new_incident_that_was_confirmed_the_same_night_is_counted_once(home: Home) -> None:
    home.opens(10)
    home.changes(10, "confirmed", words="measured again")
    home.tell(10)
    assert numbers_and_rest(home.brief()) == (["1", "1"], ""), "new, open"


def test_each_change_of_state_is_one_reply_and_the_first_message_shows_the_last(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(20, "confirmed", words="it still stands after 10 nights")
    home.tell(20)
    home.tell(20)
    home.changes(22, "acknowledged", who="ann", words="looking at it")
    home.grows(22, "dqn run time")
    home.tell(23)
    home.changes(25, "fixed", words="back where it was")
    home.tell(25)
    home.tell(26)
    assert home.replies() == ["Acknowledged by ann", "Fixed"], "that it still stands is no news"
    assert "looking at it" in home.state.thread()[0].markup()
    assert "dqn run time" in home.state.thread()[0].markup()
    assert [text[:18] for text in home.heads()] == ["✅ Fixed: 2 series "]
    assert {message.thread_ts for message in home.state.thread()} == {home.state.channel()[0].ts}


@pytest.mark.parametrize(
    ("word", "head"),
    [("expected", "Expected by ann"), ("fixed", "Fixed by ann"), ("false_alarm", "False alarm by ann")],
)
def test_what_people_say_between_nights_is_told_the_next_night(home: Home, word: str, head: str) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(10, word, who="ann")
    home.tell(11)
    assert home.replies() == [head]


def test_a_size_that_was_refined_is_edited_in_place_without_a_reply(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    facts = home.events[0].data
    refined = {**facts, "moved": [{**facts["moved"][0], "effect": 0.061}]}
    home.events = [Event(home.events[0].at, "detector", "opened", "i20260501-00aa", refined)]
    home.tell(11)
    assert "+6.1 %" in head(home.state.channel()[0])
    assert not home.replies()


def test_beyond_the_most_threads_the_rest_of_the_night_is_one_message_with_their_replies(home: Home) -> None:
    home.config = {"threads": 2}
    for at in range(6):
        home.opens(10, f"i20260501-00a{at}", what=f"net{at} run time")
    home.tell(10)
    home.tell(10)
    assert home.heads() == [
        "⚠️ net0 run time",
        "⚠️ net1 run time",
        "4 more incidents",
    ]
    home.changes(12, "acknowledged", "i20260501-00a5", who="ann")
    home.tell(12)
    (reply,) = home.state.thread()
    assert reply.thread_ts == home.state.channel()[2].ts
    assert "i20260501-00a5" in reply.markup()


def test_while_slack_is_down_incidents_wait_and_are_told_the_next_night_once(home: Home) -> None:
    home.opens(10)
    down(home.state)
    report = home.tell(10, seconds=0.4)
    assert "the next night" in report.value
    assert home.brief() is None, "the nightly message holds it all"
    up(home.state)
    home.tell(11)
    home.tell(12)
    assert home.heads() == ["⚠️ mlp run time"]
    assert len(home.state.messages) == 1


def test_a_waiting_incident_is_told_once_as_it_is_by_then(home: Home) -> None:
    home.opens(10)
    down(home.state)
    home.tell(10, seconds=0.4)
    home.changes(11, "acknowledged", who="ann")
    up(home.state)
    home.tell(12)
    home.tell(13)
    assert home.heads() == ["⚠️ Acknowledged: mlp run time"]
    assert not home.replies()


def test_what_waits_goes_out_later_as_one_reply(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    down(home.state)
    home.changes(11, "acknowledged", who="ann")
    assert "the next night" in home.tell(11, seconds=0.4).value
    home.changes(12, "fixed", who="ann")
    home.tell(12, seconds=0.4)
    up(home.state)
    home.tell(13)
    home.tell(14)
    assert home.replies() == ["Fixed by ann"]
    assert "Acknowledged by ann" in home.state.thread()[0].markup(), "one reply tells both"


def test_slack_asking_to_wait_is_obeyed(home: Home) -> None:
    home.opens(10)
    home.state.fail("chat.postMessage", Fault("status", status=429, retry_after="0.3"))
    home.tell(10)
    home.changes(11, "fixed", who="ann")
    home.state.fail("chat.postMessage", Fault("status", status=429, retry_after="3600"))
    assert "the next night" in home.tell(11).value
    home.tell(12)
    assert (len(home.heads()), home.replies()) == (1, ["Fixed by ann"])


@pytest.mark.parametrize("method", ["chat.postMessage", "conversations.replies", "chat.update"])
@pytest.mark.parametrize("taken", [False, True])
def test_whatever_was_taken_without_an_answer_is_not_said_twice(home: Home, method: str, taken: bool) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(11, "fixed", who="ann")
    home.state.fail(method, Fault("status", status=500, taken=taken))
    home.tell(11)
    home.tell(12)
    assert (len(home.heads()), home.replies()) == (1, ["Fixed by ann"])


@pytest.mark.parametrize("fault", [Fault("reset", taken=True), Fault("reset"), Fault("garbage", body=b"<", taken=True)])
def test_a_first_message_without_an_answer_is_looked_up_before_it_is_said_again(home: Home, fault: Fault) -> None:
    home.opens(10)
    home.state.fail("chat.postMessage", fault)
    home.tell(10)
    home.changes(11, "fixed", who="ann")
    home.tell(11)
    assert (len(home.heads()), home.replies()) == (1, ["Fixed by ann"])


@pytest.mark.parametrize("content", ["", '{"since": "20260511T031500Z", "entries": [{"key"', None])
def test_a_lost_outbox_makes_nothing_be_said_twice(home: Home, content: str | None) -> None:
    home.opens(10)
    home.tell(10)
    home.changes(11, "acknowledged", who="ann")
    home.tell(11)
    path = home.output / OUTBOX_FILE
    path.unlink() if content is None else path.write_text(content)
    home.tell(11)
    home.tell(12)
    assert (len(home.heads()), home.replies()) == (1, ["Acknowledged by ann"])


def test_a_line_that_the_incidents_ledger_lost_is_not_told_again_when_it_is_found_again(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    kept, home.events = home.events, []
    home.tell(11)
    home.events = kept
    home.tell(12)
    assert len(home.state.messages) == 1


def test_without_the_scope_to_look_new_incidents_are_told_all_the_same(home: Home) -> None:
    home.state.scopes = "chat:write"
    home.opens(10)
    home.tell(10)
    home.changes(11, "fixed", who="ann")
    home.tell(11)
    home.tell(12)
    assert (len(home.heads()), home.replies()) == (1, ["Fixed by ann"])


def test_a_silenced_incident_is_not_told_until_the_silence_ends(home: Home) -> None:
    data = {"pattern": "i20260501-*", "until": iso_of(NIGHTS[15]), "words": ""}
    home.events.append(Event(iso_of(NIGHTS[5]), "ann", "silenced", "", data))
    home.opens(10)
    for at in (10, 12):
        home.tell(at)
    assert not home.state.messages
    home.tell(15)
    home.tell(16)
    assert home.heads() == ["⚠️ mlp run time"]


def test_a_silence_hushes_a_thread_and_what_changed_meanwhile_is_told_after_it(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    data = {"pattern": "*run time", "until": iso_of(NIGHTS[15]), "words": ""}
    home.events.append(Event(iso_of(NIGHTS[11]), "ann", "silenced", "", data))
    home.changes(12, "acknowledged", who="ann")
    home.tell(12)
    assert not home.replies()
    home.tell(16)
    assert home.replies() == ["Acknowledged by ann"]


def test_incidents_from_before_threads_were_switched_on_get_none(home: Home) -> None:
    home.opens(10)
    home.opens(20, "i20260510-00bb", what="gru run time")
    home.tell(20)
    assert home.heads() == ["⚠️ gru run time"]


def test_the_nightly_message_claims_no_thread_for_incidents_that_have_none(home: Home) -> None:
    home.opens(10)
    home.tell(20, lines=[SUBSYSTEM.ReportLine("Nothing moved.")])
    assert home.state.channel() == []
    assert numbers_and_rest(home.brief()) == (["1"], "Nothing moved.")
    home.opens(21, "i20260511-00bb", what="gru run time")
    home.tell(21, lines=[SUBSYSTEM.ReportLine("gru moved.")])
    assert numbers_and_rest(home.brief()) == (["1", "2", "1"], "gru moved."), "new, open, with a thread"


def test_nights_on_which_the_subsystem_did_not_run_are_caught_up(home: Home) -> None:
    home.tell(8)
    home.opens(10)
    home.opens(11, "i20260508-00bb", what="gru run time")
    home.changes(11, "fixed", "i20260508-00bb")
    home.tell(12)
    assert home.heads() == ["⚠️ mlp run time"], "what is over already is no news"


@pytest.mark.parametrize("config", [{"channel": ""}, {}])
def test_without_a_bots_channel_there_are_no_threads_and_the_report_stays(home: Home, config: dict[str, Any]) -> None:
    home.slack.token(home.state.hook)
    home.config = config
    home.opens(10)
    assert home.tell(10) == Report("title", "the report")
    assert not home.state.calls
    assert home.brief() is None


def test_a_refusal_is_told_in_the_report_once_and_does_not_fail_the_night(home: Home) -> None:
    for at in range(6):
        home.opens(10, f"i20260501-00a{at}", what=f"net{at} run time")
    home.state.fail("*", *[Fault("error", code="invalid_auth")] * 99)
    value = home.tell(10).value
    assert value.count("invalid_auth") == 1
    assert len(home.state.calls) <= 4
    up(home.state)
    home.tell(11)
    assert len(home.heads()) == 6


def test_a_message_that_a_person_deleted_is_not_posted_again(home: Home) -> None:
    home.opens(10)
    home.tell(10)
    home.state.messages.clear()
    home.changes(11, "fixed", who="ann")
    home.tell(11)
    home.tell(12)
    assert not home.state.messages


def test_names_from_outside_ping_nobody_and_leave_no_folder(home: Home) -> None:
    evil = "<!channel> <@U012ABCDEF> *x* `y` <https://evil.example.org|ok> & \u202e\x00 ../../" + "z" * 400
    home.opens(10, "../../<!here>", what=evil)
    home.tell(10)
    home.changes(11, "fixed", "../../<!here>", who="<!everyone>", words=evil * 20)
    home.tell(11)
    assert (len(home.heads()), len(home.replies())) == (1, 1)
    assert not [ping for message in home.state.messages for ping in message.pings()]
    assert sorted(path.name for path in home.output.iterdir()) == [
        ".routes.lock", "in_slack.json", "outbox.json", "routes.json",
    ]  # fmt: skip


def test_a_token_that_others_can_read_is_told_in_the_report(home: Home) -> None:
    home.slack.token(TOKEN, 0o644)
    home.opens(10)
    assert "other users can read the" in home.tell(10).value
    assert not home.state.calls


def test_the_nightly_message_says_how_many_and_links_where_the_threads_say_the_rest(home: Home) -> None:
    home.opens(10)
    (incident,) = fold(home.events).incidents.values()
    words, own = describe(incident), frozenset({incident.id})
    lines = [
        SUBSYSTEM.ReportLine(words, own),
        SUBSYSTEM.ReportLine("#1#", own),
        SUBSYSTEM.ReportLine("#2#", own | {"another"}),
        SUBSYSTEM.ReportLine(f"Not judged: {incident.id}, b."),
    ]
    home.tell(10, lines=lines)
    rest = "\n".join(line.text for line in lines[2:])
    assert numbers_and_rest(home.brief()) == (["1", "1"], rest)
    path = home.output / "report.json"
    path.write_text(json.dumps({"title": "mlp slower", "value": words}))
    tonight = night(job("stat_alerts", kind="subsystem", title="Alerts"), stamp=NIGHTS[10])
    text = home.slack.run("subsys_reporter", tonight, token_file="/nowhere").text
    assert "0.263 ms" not in text
    assert f"threads. alerts ({SITE}/alerts.html)" in text
    later = night(job("stat_alerts", kind="subsystem", title="Alerts"), stamp=NIGHTS[11])
    assert "0.263 ms" in home.slack.run("subsys_reporter", later, token_file="/nowhere").text, (
        "what is of another night is not tonight's"
    )


def test_a_night_of_the_subsystem_tells_its_incident_and_a_persons_word_the_next_night(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = AlertHome(tmp_path).fill(Truth().step("mlp", 3, "run", 64, 1.05))
    SlackHome(tmp_path).configure()
    SlackHome(tmp_path).token(TOKEN)
    monkeypatch.setattr("tests.subsystem.stat_alerts.alert_homes.environment", _with_slack(state.url))
    for at in (66, 67, 67):
        alerts.run_script(at, channel=CHANNEL, honesty_series=0)
    (incident,) = alerts.incidents()
    assert alerts.command("incidents", "ack", incident["id"], "looking", "--who", "ann").returncode == 0
    alerts.run_script(68, channel=CHANNEL, honesty_series=0)
    assert head(state.channel()[0]).startswith(f"⚠️ Acknowledged: {MLP} +5")
    assert [head(message) for message in state.thread()] == ["Acknowledged by ann"]
    assert len(incident_file.read(alerts.output / "incidents.jsonl")) == 2


def _with_slack(url: str) -> Any:
    from tests.subsystem.stat_alerts import alert_homes

    plain = alert_homes.environment
    return lambda root: {**plain(root), "SLACK_API_URL": url}


def test_a_regression_pings_its_owners_once(home: Home) -> None:
    owns(home, {"experiment": "cnn_*", "slack": ["U0CNNTEAM1"]}, {"experiment": "rnn_*", "slack": ["U0RNNTEAM1"]})
    home.opens(10, moved=[of("cnn_comp")])
    home.tell(10)
    (first,) = home.state.channel()
    assert first.pings() == ["<@U0CNNTEAM1>"]
    home.tell(10)
    home.changes(11, "acknowledged", who="ann")
    home.tell(11)
    home.changes(12, "fixed")
    home.tell(12)
    assert [ping for reply in home.state.thread() for ping in reply.pings()] == []
    assert len(home.state.messages) == 3


def test_series_that_join_ping_only_owners_whom_nothing_pinged_before(home: Home) -> None:
    owns(home, {"experiment": "cnn_*", "slack": ["U0CNNTEAM1"]}, {"experiment": "rnn_*", "slack": ["U0RNNTEAM1"]})
    home.opens(10, moved=[of("cnn_comp")])
    home.tell(10)
    joined = {"moved": [of("cnn_comp", "dqn run time"), of("rnn_comp", "gru run time")]}
    home.events.append(Event(iso_of(NIGHTS[11]), ledgers.DETECTOR, ledgers.JOINED, "i20260501-00aa", joined))
    home.tell(11)
    assert [reply.pings() for reply in home.state.thread()] == [["<@U0RNNTEAM1>"]]


def test_what_got_better_or_is_the_machines_pings_nobody(home: Home) -> None:
    owns(home, {"slack": ["U0CNNTEAM1"]})
    home.opens(10, "i20260501-00bb", moved=[of("cnn_comp", worse=False)])
    home.opens(10, "i20260501-00cc", kind="machine", blame="machine", moved=[], size=0.04)
    home.tell(10)
    assert [message.pings() for message in home.state.channel()] == [[], []]


def test_incidents_that_share_a_message_ping_their_owners_there(home: Home) -> None:
    owns(home, {"experiment": "rnn_*", "slack": ["U0RNNTEAM1"]})
    home.config = {"threads": 1}
    for at, name in enumerate(("cnn_comp", "rnn_comp", "cnn_comp")):
        home.opens(10, f"i20260501-00a{at}", moved=[of(name, f"net{at} run time")])
    home.tell(10)
    assert [message.pings() for message in home.state.channel()] == [[], ["<@U0RNNTEAM1>"]]


def test_a_route_of_kind_slack_has_threads_of_its_own_for_what_is_its_owners(home: Home) -> None:
    token = str(home.slack.root / ".config/tvmdash/slack_token")
    owns(
        home,
        {"experiment": "rnn_*", "slack": ["U0RNNTEAM1"], "routes": ["rnn"]},
        rnn={"kind": "slack", "channel": CHANNEL, "secret_file": token},
    )
    home.config = {"channel": ""}
    home.opens(10, "i20260501-00a1", moved=[of("cnn_comp")])
    home.opens(10, "i20260501-00a2", moved=[of("rnn_comp", "gru run time")])
    home.opens(10, "i20260501-00a3", moved=[of("rnn_comp", "lstm run time", worse=False)])
    home.tell(10)
    home.tell(11)
    (message,) = home.state.channel()
    assert (home.heads(), message.pings()) == (["⚠️ gru run time"], ["<@U0RNNTEAM1>"])
    assert home.brief() is None, "the nightly message is not of that channel"


def test_a_slack_route_that_fails_is_told_in_the_report_and_as_a_value(home: Home) -> None:
    owns(home, rnn={"kind": "slack", "channel": CHANNEL, "secret_file": str(home.slack.root / "nowhere")})
    home.config = {"channel": ""}
    home.opens(10)
    assert "route rnn:" in home.tell(10).value
    (state,) = read_states(home.slack.home)
    assert (state.name, state.kind) == ("rnn", "slack")
    assert "no bot token found" in state.fault


def test_the_next_command_can_be_copied_from_the_message(home: Home) -> None:
    before, after = "a" * 40, "b" * 40
    home.opens(10, moved=[of("cnn_comp", series="43c262d4f645fe07")], versions=[before, after])
    home.tell(10)
    command = f"bisect {home.slack.home.root} cnn_comp 43c262d4f645fe07 --good git:{before} --bad git:{after}"
    text = home.state.channel()[0].markup()
    assert f" {command} --incident i20260501-00aa\n```" in text


def test_a_thread_of_an_older_version_goes_on(home: Home) -> None:
    home.opens(10)
    home.changes(11, "acknowledged", who="ann", words="looking")
    (incident,) = fold(home.events).incidents.values()
    end = time.monotonic() + 9
    slack = slack_module.Slack(Secrets(bot_token=TOKEN), CHANNEL, api_url=home.state.url)
    ts = slack.post(build("⚠️ mlp run time", "", []), "old key", end)
    folder = home.output / "threads" / incident.id
    folder.mkdir(parents=True)
    entry = {"stamp": NIGHTS[10], "key": "old key", "since": 1.0, "state": "sent", "channel": CHANNEL, "ts": ts}
    common.write_json(folder / "slack.json", {"schema_version": 1, "messages": [entry]})
    said = {"states": [old_mark(incident, change) for change in incident.changes], "series": ["id mlp run time"]}
    common.write_json(folder / "thread.json", {"stamp": NIGHTS[10], "incidents": {incident.id: said}})
    home.tell(12)
    assert (home.replies(), len(home.heads())) == ([], 1), "what was told is not told again"
    home.changes(13, "fixed", who="ann")
    home.tell(13)
    home.tell(14)
    assert home.replies() == ["Fixed by ann"]
    assert home.heads() == ["✅ Fixed: mlp run time"]


def old_mark(incident: Incident, change: Change) -> str:
    parts = [incident.id, change.at, change.who, change.state]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]
