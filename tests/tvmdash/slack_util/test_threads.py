"""Replies are said once, in their order, and wait while Slack cannot take them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slack import server
from tests.slack.server import CHANNEL, TOKEN, Fault, State
from tvmdash.errors import DashboardError
from tvmdash.slack_util import Slack
from tvmdash.slack_util.delivery import tell
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Message, build
from tvmdash.slack_util.threads import Reply, entry_of, is_sent, reply
from tvmdash.slack_util.token import Secrets

NIGHT = "20261121T031500Z"


@pytest.fixture
def state() -> Iterator[State]:
    with server.slack_server() as started:
        yield started
    assert not started.violations


def bot(state: State, seconds: float = 10.0) -> Slack:
    return Slack(Secrets(bot_token=TOKEN), CHANNEL, Patience(seconds), api_url=state.url, settle_s=0.0)


def words(text: str) -> Message:
    return build(text, "", [])


def told(state: State) -> list[str]:
    return [message.blocks[0]["text"]["text"] for message in state.thread()]


def test_a_reply_is_said_once_by_its_mark_whatever_its_words(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, NIGHT, words("root"))
    assert reply(bot(state), tmp_path, NIGHT, [Reply("a", words("one")), Reply("b", words("two"))]) == ""
    assert reply(bot(state), tmp_path, NIGHT, [Reply("a", words("in other words"))]) == ""
    assert told(state) == ["one", "two"]
    assert is_sent(tmp_path, NIGHT)


def test_what_waits_goes_out_before_what_is_new_and_needs_not_be_given_again(state: State, tmp_path: Path) -> None:
    tell(bot(state), tmp_path, NIGHT, words("root"))
    state.fail("*", *[Fault("status", status=503)] * 9)
    assert "A reply is queued" in reply(bot(state, 0.4), tmp_path, NIGHT, [Reply("a", words("one"))])
    assert not is_sent(tmp_path, NIGHT)
    state.faults.clear()
    reply(bot(state), tmp_path, NIGHT, [Reply("b", words("two"))])
    assert told(state) == ["one", "two"]


def test_a_refusal_is_an_error_and_a_reply_that_slack_will_never_take_is_not_tried_again(
    state: State, tmp_path: Path
) -> None:
    tell(bot(state), tmp_path, NIGHT, words("root"))
    state.fail("chat.postMessage", Fault("error", code="not_in_channel"), Fault("error", code="msg_too_long"))
    with pytest.raises(DashboardError, match=r"not_in_channel.*/invite"):
        reply(bot(state), tmp_path, NIGHT, [Reply("a", words("one")), Reply("b", words("two"))])
    reply(bot(state), tmp_path, NIGHT, [])
    assert told(state) == ["two"]
    entry = entry_of(tmp_path, NIGHT)
    assert entry is not None
    assert {mark: saved.state for mark, saved in entry.replies.items()} == {"a": "refused", "b": "sent"}


def test_there_is_no_thread_before_its_message_is_sent_and_none_by_webhook(state: State, tmp_path: Path) -> None:
    assert "no thread" in reply(bot(state), tmp_path, NIGHT, [Reply("a", words("one"))])
    hook = Slack(Secrets(webhook_url=state.hook), "", Patience(10), api_url=state.url)
    tell(hook, tmp_path, NIGHT, words("root"))
    assert "no thread" in reply(hook, tmp_path, NIGHT, [Reply("a", words("one"))])
    assert not state.thread()


def test_a_reply_is_found_among_many_others(state: State, tmp_path: Path) -> None:
    state.page = 3
    tell(bot(state), tmp_path, NIGHT, words("root"))
    replies = [Reply(str(number), words(str(number))) for number in range(8)]
    reply(bot(state), tmp_path, NIGHT, replies)
    (tmp_path / "slack.json").unlink()
    tell(bot(state), tmp_path, NIGHT, words("root"), since=0.0)
    reply(bot(state), tmp_path, NIGHT, replies)
    assert len(state.thread()) == 8
    assert len(state.channel()) == 1
