"""One message a night, never twice, whatever Slack, the disk or a kill does in between."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, Fault, State
from tvmdash import common
from tvmdash.dashboard_info import Home, Night
from tvmdash.errors import DashboardError
from tvmdash.notify import delivery as delivery_module
from tvmdash.notify.channel import Attachment, ChannelSection, attach, tell, tell_section
from tvmdash.notify.delivery import Outbox
from tvmdash.notify.message import OUTBOX_FILE, Entry
from tvmdash.notify.message import State as Stage
from tvmdash.notify.payloads import Part, Payload, build, format_pings
from tvmdash.notify.senders import slack as slack_module
from tvmdash.notify.senders.slack import Slack
from tvmdash.notify.token import Secrets

NIGHTS = [f"202611{day:02d}T031500Z" for day in range(1, 30)]
TONIGHT = NIGHTS[20]
SHARED = Path(__file__).resolve().parents[3] / "shared" / "python"


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


@pytest.fixture(autouse=True)
def _slack_shows_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slack_module, "_SETTLE_S", 0.0)


def bot(state: State, seconds: float = 10.0) -> Slack:
    return Slack(Secrets(bot_token=TOKEN), CHANNEL, seconds, api_url=state.url)


def hook(state: State, seconds: float = 10.0) -> Slack:
    return Slack(Secrets(webhook_url=state.hook), "", seconds, api_url=state.url)


def words(text: str) -> Payload:
    return build(text, "", [Part("details")])


def heads(state: State) -> list[str]:
    return [message.blocks[0].get("text", {}).get("text", "late") for message in state.channel()]


def test_a_rerun_of_the_same_night_edits_the_message(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, TONIGHT, words("first"))
    assert "edited" in tell(bot(state), tmp_path, TONIGHT, words("second"))
    (message,) = state.channel()
    assert (message.edits, heads(state)) == (1, ["second"])


def test_an_edit_that_slack_could_not_take_leaves_the_message_and_fails_nothing(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, TONIGHT, words("first"))
    state.fail("chat.update", *[Fault("status", status=500)] * 9)
    assert "was not brought up to date" in tell(bot(state, 0.4), tmp_path, TONIGHT, words("second"))
    state.faults.clear()
    tell(bot(state), tmp_path, TONIGHT, words("second"))
    assert heads(state) == ["second"]


def test_a_rerun_that_has_nothing_new_does_nothing(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, TONIGHT, words("same"))
    before = len(state.calls)
    tell(bot(state), tmp_path, TONIGHT, words("same"))
    assert len(state.calls) == before


def test_another_night_is_another_message(state: State, tmp_path: Path) -> None:
    for stamp in NIGHTS[:3]:
        tell(bot(state), tmp_path, stamp, words(stamp))
    assert heads(state) == NIGHTS[:3]


def test_without_slack_the_message_is_in_the_output(tmp_path: Path) -> None:
    assert "only in message.txt" in tell(None, tmp_path, TONIGHT, words("hello"))
    assert (tmp_path / "message.txt").read_text() == "hello\n\ndetails\n"
    assert json.loads((tmp_path / "message.json").read_text())["text"] == "hello"
    assert not (tmp_path / OUTBOX_FILE).exists()


@pytest.mark.parametrize("way", [bot, hook])
def test_what_slack_could_not_take_waits_and_goes_out_the_next_night_once(
    state: State, tmp_path: Path, way: type
) -> None:
    state.fail("*", *[Fault("status", status=503)] * 9)
    assert "the message is queued in" in tell(way(state, 0.4), tmp_path, NIGHTS[0], words("old"))
    state.faults.clear()
    told = tell(way(state), tmp_path, NIGHTS[1], words("new"))
    assert "sent late" in told
    assert heads(state) == ["new", "late"]
    assert "Late: from the night of 2026-11-01" in state.channel()[1].markup()
    tell(way(state), tmp_path, NIGHTS[2], words("newest"))
    assert heads(state) == ["new", "late", "newest"]


def test_a_late_message_that_fails_again_is_marked_late_once(state: State, tmp_path: Path) -> None:
    for stamp in NIGHTS[:2]:
        state.fail("*", *[Fault("status", status=503)] * 9)
        tell(bot(state, 0.4), tmp_path, stamp, words(stamp))
        state.faults.clear()
    tell(bot(state), tmp_path, NIGHTS[2], words("up again"))
    late = [message.markup() for message in state.channel()[1:]]
    assert [text.count("Late:") for text in late] == [1, 1]


def test_after_weeks_of_no_slack_only_the_last_few_messages_are_sent(state: State, tmp_path: Path) -> None:
    state.fail("*", *[Fault("status", status=429, retry_after="3600")] * 100)
    for stamp in NIGHTS[:20]:
        tell(bot(state), tmp_path, stamp, words(stamp))
    state.faults.clear()
    told = tell(bot(state), tmp_path, TONIGHT, words("now"))
    assert "7 of earlier nights" in told
    assert len(state.channel()) == 8, "tonight's, and those of the last week"


def test_a_slack_that_hangs_costs_the_night_its_budget_and_no_more(state: State, tmp_path: Path) -> None:
    state.fail("*", *[Fault("hang", taken=True)] * 9)
    begun = time.monotonic()
    told = tell(bot(state, 1.0), tmp_path, NIGHTS[0], words("old"))
    assert time.monotonic() - begun < 2.5
    assert "unknown whether the message was posted" in told
    state.faults.clear()
    tell(bot(state), tmp_path, NIGHTS[1], words("new"))
    assert sorted(heads(state)) == ["new", "old"], "it was there; it is not sent again"


def test_what_is_refused_is_said_once_and_fails(state: State, tmp_path: Path) -> None:
    state.fail("chat.postMessage", *[Fault("error", code="invalid_auth")] * 9)
    for stamp in NIGHTS[:2]:
        with pytest.raises(DashboardError, match=r"invalid_auth.*message\.txt"):
            tell(bot(state), tmp_path, stamp, words(stamp))
    state.faults.clear()
    tell(bot(state), tmp_path, NIGHTS[2], words("mended"))
    assert len(state.channel()) == 3


def test_a_message_that_slack_will_never_take_is_not_tried_every_night(state: State, tmp_path: Path) -> None:
    state.fail("chat.postMessage", Fault("error", code="msg_too_long"))
    with pytest.raises(DashboardError, match="msg_too_long"):
        tell(bot(state), tmp_path, NIGHTS[0], words("bad"))
    tell(bot(state), tmp_path, NIGHTS[1], words("good"))
    assert heads(state) == ["good"]


def test_a_message_that_a_person_deleted_is_not_posted_again(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    state.messages.clear()
    assert "message_not_found" in tell(bot(state), tmp_path, TONIGHT, words("two"))
    assert not state.channel()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{slack!r}, {shared!r}]
from tvmdash.notify.senders import slack as slack_util
from tvmdash.notify.channel import tell
from tvmdash.notify.payloads import Part, build
from tvmdash.notify.token import Secrets

def die(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

step, url, hook, output, stamp = sys.argv[1:]
if step == "before":
    slack_util.Slack.post = die
elif step == "after":
    post = slack_util.Slack.post
    slack_util.Slack.post = lambda *arguments, **named: (post(*arguments, **named), die())
secrets = Secrets(webhook_url=hook) if hook else Secrets(bot_token={token!r})
slack = slack_util.Slack(secrets, {channel!r}, 10, api_url=url)
tell(slack, Path(output), stamp, build("from the dead", "", [Part("details")]))
"""


def killed(state: State, output: Path, step: str, *, by_hook: bool = False) -> None:
    """A run that is killed just before or just after Slack takes the message."""
    program = KILLED.format(slack=str(Path(server.__file__).parent), shared=str(SHARED), token=TOKEN, channel=CHANNEL)
    argv = [sys.executable, "-c", program, step, state.url, state.hook if by_hook else "", str(output), TONIGHT]
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_run_killed_around_its_post_is_said_once_by_the_rerun(state: State, tmp_path: Path, step: str) -> None:
    killed(state, tmp_path, step)
    assert len(state.channel()) == (step == "after")
    tell(bot(state), tmp_path, TONIGHT, words("rerun"))
    assert heads(state) == ["rerun"]


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_run_killed_around_its_post_is_said_once_by_the_next_night(state: State, tmp_path: Path, step: str) -> None:
    killed(state, tmp_path, step)
    tell(bot(state), tmp_path, NIGHTS[21], words("next"))
    assert len(state.channel()) == 2
    assert any("from the dead" in message.markup() for message in state.channel())


@pytest.mark.parametrize("step", ["before", "after"])
def test_a_webhooks_run_killed_around_its_post_is_never_said_twice(state: State, tmp_path: Path, step: str) -> None:
    killed(state, tmp_path, step, by_hook=True)
    assert "earlier run ended" in tell(hook(state), tmp_path, TONIGHT, words("rerun"))
    assert len(state.channel()) == (step == "after")


def test_where_slack_cannot_be_searched_a_message_is_posted_unless_it_was_tried(state: State, tmp_path: Path) -> None:
    state.scopes = "chat:write"
    assert "is in Slack" in tell(bot(state), tmp_path, TONIGHT, words("here"))
    state.fail("chat.postMessage", Fault("reset", taken=True))
    for _ in range(2):
        assert "unknown whether" in tell(bot(state), tmp_path, NIGHTS[21], words("next"))
    assert heads(state) == ["here", "next"]


def test_a_lost_outbox_is_set_aside_and_the_message_looked_up(state: State, tmp_path: Path) -> None:
    for text in ("zero", "one"):
        tell(bot(state), tmp_path, TONIGHT, words(text))
    (tmp_path / OUTBOX_FILE).write_text('{"entries": [{"key": ')
    tell(bot(state), tmp_path, TONIGHT, words("two"))
    assert heads(state) == ["two"]
    assert (tmp_path / "outbox.broken.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"since": "20261101T031500Z", "entries": 1}',
        '{"since": "20261101T031500Z", "entries": [{"x": 1}]}',
    ],
)
def test_whatever_the_ledger_holds_the_night_goes_on(state: State, tmp_path: Path, content: str) -> None:
    (tmp_path / OUTBOX_FILE).write_text(content)
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert heads(state) == ["one"]


def test_nothing_is_posted_that_cannot_be_remembered(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        if path.name == OUTBOX_FILE:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(delivery_module.common, "write_json", full)
    with pytest.raises(DashboardError, match="could not be recorded"):
        tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert not state.calls


def test_two_runs_at_once_do_not_both_post(state: State, tmp_path: Path) -> None:
    with (tmp_path / ".routes.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(DashboardError, match="another run"):
            tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert not state.calls


def test_graphs_go_into_the_thread_once(state: State, tmp_path: Path) -> None:
    graph = tmp_path / "g.png"
    graph.write_bytes(b"\x89PNG")
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    for _ in range(2):
        assert "1 graphs" in attach(
            bot(state), tmp_path, TONIGHT, [Attachment("g.png", "A graph", graph)], words("more")
        )
    assert len(state.files) == 1
    assert len(state.thread()) == 1


@pytest.mark.parametrize(
    "fault", [Fault("status", status=500), Fault("status", status=429, retry_after="3600"), Fault("status", status=403)]
)
@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "upload", "files.completeUploadExternal"])
def test_a_graph_that_slack_does_not_take_fails_nothing(
    state: State, tmp_path: Path, method: str, fault: Fault
) -> None:
    graph = tmp_path / "g.png"
    graph.write_bytes(b"\x89PNG")
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    state.fail(method, *[fault] * 9)
    assert "Not all graphs" in attach(bot(state, 0.4), tmp_path, TONIGHT, [Attachment("g.png", "A graph", graph)], None)


def test_a_night_before_all_others_by_a_clock_that_was_turned_back_is_remembered(tmp_path: Path, state: State) -> None:
    outbox = Outbox(tmp_path / OUTBOX_FILE, NIGHTS[0])
    for night in NIGHTS:
        outbox.put(Entry(night, night, Stage.SENT))
    tell(bot(state), tmp_path, "19700101T000010Z", words("one"))
    assert "already" in tell(bot(state), tmp_path, "19700101T000010Z", words("one"))
    assert heads(state) == ["one"]


ONE, OTHER = "exp_reports", "subsys_reporter"


def section(title: str, ping: str = "", *, of_night: bool = True) -> ChannelSection:
    part = Part(f"{title} says\n{format_pings([ping])}".strip(), (ping,) if ping else ())
    return ChannelSection(TONIGHT, title, (part,), of_night=of_night)


def add(slack: Slack | None, home: Home, name: str, told: ChannelSection) -> str:
    home.output(name).mkdir(parents=True, exist_ok=True)
    return tell_section(slack, home, home.output(name), Night(TONIGHT, "running"), told)


def test_a_night_has_one_message_in_a_channel_to_which_each_adds_its_section(state: State, tmp_path: Path) -> None:
    home = Home(tmp_path)
    add(bot(state), home, OTHER, section("Subsystems"))
    add(bot(state), home, ONE, section("Experiments", "<@U0FIRST001>"))
    add(bot(state), home, "deadline", section("⏰ CGO in 4 days", of_night=False))
    (message,) = state.channel()
    text = message.markup()
    assert text.index("Experiments says") < text.index("Subsystems says") < text.index("CGO in 4 days says")
    assert text.count("No experiment ran") == 1
    before = len(state.calls)
    assert "already in Slack" in add(bot(state), home, ONE, section("Experiments", "<@U0FIRST001>"))
    assert len(state.calls) == before


def test_whom_a_later_section_pings_is_pinged_once_in_the_thread_as_an_edit_pings_nobody(
    state: State, tmp_path: Path
) -> None:
    home = Home(tmp_path)
    add(bot(state), home, ONE, section("Experiments", "<@U0FIRST001>"))
    for _ in range(2):
        add(bot(state), home, OTHER, section("Subsystems", "<@U0LAST0001>"))
    assert [reply.pings() for reply in state.thread()] == [["<@U0LAST0001>"]]
    assert len(state.channel()) == 1


def test_sections_that_wait_go_out_together(state: State, tmp_path: Path) -> None:
    home = Home(tmp_path)
    state.fail("*", *[Fault("status", status=503)] * 9)
    assert "queued" in add(bot(state, 0.4), home, ONE, section("Experiments"))
    state.faults.clear()
    add(bot(state), home, OTHER, section("Subsystems", "<@U0LAST0001>"))
    (message,) = state.channel()
    assert (message.edits, message.pings(), state.thread()) == (0, ["<@U0LAST0001>"], [])


def test_by_a_webhook_each_section_is_a_message_with_the_nights_headline(state: State, tmp_path: Path) -> None:
    home = Home(tmp_path)
    add(hook(state), home, ONE, section("Experiments"))
    add(hook(state), home, OTHER, section("Subsystems"))
    assert heads(state) == ["❔ No experiment ran"] * 2


def test_a_reminder_alone_has_its_own_headline(state: State, tmp_path: Path) -> None:
    add(bot(state), Home(tmp_path), "deadline", section("⏰ CGO in 4 days", of_night=False))
    assert heads(state) == ["⏰ CGO in 4 days"]


def leave_old(folder: Path, stamp: str, **more: object) -> None:
    """What a version of before November 2026 left of a message."""
    folder.mkdir(parents=True, exist_ok=True)
    entry = {"stamp": stamp, "key": f"of {stamp}", "since": 1.0, "state": "sent", "channel": CHANNEL, **more}
    common.write_json(folder / "slack.json", {"schema_version": 1, "messages": [entry]})


def test_what_an_older_version_sent_this_night_is_edited_and_what_waited_goes_out(state: State, tmp_path: Path) -> None:
    home = Home(tmp_path)
    ts = bot(state).post(words("old"), "k", time.monotonic() + 9)
    leave_old(home.output(ONE), TONIGHT, ts=ts)
    waits = {"text": "waited", "blocks": list(words("waited").blocks)}
    leave_old(home.output(OTHER), NIGHTS[19], state="queued", message=waits)
    add(bot(state), home, ONE, section("Experiments"))
    assert heads(state) == ["❔ No experiment ran", "late"]
    assert "waited" in state.channel()[1].markup()
    own = tmp_path / "own"
    leave_old(own, TONIGHT, ts=ts)
    tell(bot(state), own, TONIGHT, words("mine"))
    assert heads(state) == ["mine", "late"], "an author's message likewise"
