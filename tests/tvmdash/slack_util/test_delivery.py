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
from tvmdash.errors import DashboardError
from tvmdash.slack_util import Slack, delivery
from tvmdash.slack_util.delivery import Attachment, attach, tell
from tvmdash.slack_util.ledger import Ledger
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Message, Part, build
from tvmdash.slack_util.token import Secrets

NIGHTS = [f"202611{day:02d}T031500Z" for day in range(1, 30)]
TONIGHT = NIGHTS[20]
SHARED = Path(__file__).resolve().parents[3] / "shared" / "python"


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


def bot(state: State, seconds: float = 10.0) -> Slack:
    return Slack(Secrets(bot_token=TOKEN), CHANNEL, Patience(seconds), api_url=state.url, settle_s=0.0)


def hook(state: State, seconds: float = 10.0) -> Slack:
    return Slack(Secrets(webhook_url=state.hook), "", Patience(seconds), api_url=state.url)


def words(text: str) -> Message:
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
    assert "may be from an earlier run" in tell(bot(state, 0.4), tmp_path, TONIGHT, words("second"))
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
    assert not (tmp_path / "slack.json").exists()


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
    assert "Late: message from the night of Sunday 1 November 2026" in state.channel()[1].markup()
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
    assert "17 messages of earlier nights were too old" in told
    assert len(state.channel()) == 4


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
    assert state.calls == ["chat.postMessage"] * 2
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
from tvmdash import slack_util
from tvmdash.slack_util.delivery import tell
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Part, build
from tvmdash.slack_util.token import Secrets

def die(*arguments, **named):
    os.kill(os.getpid(), signal.SIGKILL)

step, url, hook, output, stamp = sys.argv[1:]
if step == "before":
    slack_util.Slack.post = die
elif step == "after":
    post = slack_util.Slack.post
    slack_util.Slack.post = lambda *arguments: (post(*arguments), die())
secrets = Secrets(webhook_url=hook) if hook else Secrets(bot_token={token!r})
slack = slack_util.Slack(secrets, {channel!r}, Patience(10), api_url=url)
tell(slack, Path(output), stamp, build("from the dead", "", [Part("details")]))
"""


def killed(state: State, output: Path, step: str, *, by_hook: bool = False) -> None:
    """A run that is killed just before or just after Slack takes the message."""
    program = KILLED.format(slack=str(Path(server.__file__).parent), shared=str(SHARED), token=TOKEN, channel=CHANNEL)
    argv = [sys.executable, "-c", program, step, state.url, state.hook if by_hook else "", str(output), TONIGHT]
    done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, timeout=60, check=False)
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
    assert "webhook cannot check" in tell(hook(state), tmp_path, TONIGHT, words("rerun"))
    assert len(state.channel()) == (step == "after")


@pytest.mark.parametrize("untried", [{"untried": True, "why": "any words"}, {"why": "nothing is known of it"}])
def test_a_message_that_was_only_looked_for_is_posted_where_slack_cannot_be_searched(
    state: State, tmp_path: Path, untried: dict[str, object]
) -> None:
    state.scopes = "chat:write"
    key = delivery._key(tmp_path, TONIGHT)
    entry = {"stamp": TONIGHT, "key": key, "since": 1.0, "state": "sending", "attached": [], **untried}
    (tmp_path / "slack.json").write_text(json.dumps({"messages": [entry]}))
    assert "in Slack" in tell(bot(state), tmp_path, TONIGHT, words("here"))
    assert heads(state) == ["here"]


def test_a_lost_ledger_is_set_aside_and_the_message_looked_up(state: State, tmp_path: Path) -> None:
    for text in ("zero", "one"):
        tell(bot(state), tmp_path, TONIGHT, words(text))
    (tmp_path / "slack.json").write_text('{"messages": [{"stamp": ')
    tell(bot(state), tmp_path, TONIGHT, words("two"))
    assert heads(state) == ["two"]
    assert (tmp_path / "slack.broken.json").exists()


def test_what_is_whole_in_a_damaged_ledger_is_not_said_again(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    known = common.read_json(tmp_path / "slack.json")
    for _ in range(2):
        common.write_json(
            tmp_path / "slack.json", {**known, "messages": [*known["messages"], {"stamp": "yesterday"}, 5]}
        )
        tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert (heads(state), state.calls.count("conversations.history")) == (["one"], 0)
    assert sorted(path.name for path in tmp_path.glob("slack.broken*")) == ["slack.broken.json", "slack.broken2.json"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"messages": 1}',
        '{"messages": [{"x": 1}]}',
        '{"messages": [{"stamp": "x", "key": "", "since": 0, "attached": []}]}',
    ],
)
def test_whatever_the_ledger_holds_the_night_goes_on(state: State, tmp_path: Path, content: str) -> None:
    (tmp_path / "slack.json").write_text(content)
    tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert heads(state) == ["one"]


def test_nothing_is_posted_that_cannot_be_remembered(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, value: object) -> None:
        if path.name == "slack.json":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(delivery.common, "write_json", full)
    with pytest.raises(DashboardError, match="could not be recorded"):
        tell(bot(state), tmp_path, TONIGHT, words("one"))
    assert not state.calls


def test_two_runs_at_once_do_not_both_post(state: State, tmp_path: Path) -> None:
    with (tmp_path / ".slack.lock").open("w") as held:
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


def test_the_ledger_forgets_the_oldest_nights(tmp_path: Path, state: State) -> None:
    ledger = Ledger(tmp_path)
    for number in range(70):
        ledger.put(delivery.Entry(f"2026{number // 28 + 1:02d}{number % 28 + 1:02d}T000000Z", "k", 0.0))
    assert len(Ledger(tmp_path).entries) == 60


def test_a_night_before_all_others_by_a_clock_that_was_turned_back_is_remembered(tmp_path: Path, state: State) -> None:
    ledger = Ledger(tmp_path)
    for number in range(60):
        ledger.put(delivery.Entry(f"2026{number // 28 + 1:02d}{number % 28 + 1:02d}T000000Z", "k", 0.0))
    tell(bot(state), tmp_path, "19700101T000010Z", words("one"))
    assert "already" in tell(bot(state), tmp_path, "19700101T000010Z", words("one"))
    assert heads(state) == ["one"]
