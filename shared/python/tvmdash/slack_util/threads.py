"""Replies in the thread of a message that `slack_delivery` posted: each once, in order, queued while Slack is down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash.errors import DashboardError
from tvmdash.slack_util.client import Slack
from tvmdash.slack_util.errors import MESSAGE_FAULTS, BusyError, RefusedError, UncertainError
from tvmdash.slack_util.ledger import GIVEN_UP, QUEUED, REFUSED, SENDING, SENT, Entry, Ledger, SavedReply, hold_lock
from tvmdash.slack_util.payloads import Message

_GONE = frozenset(("thread_not_found", "message_not_found", "invalid_thread_ts", "cannot_reply_to_message"))


@dataclass(frozen=True)
class Reply:
    """What is said in a thread; two replies of one thread are the same where their `mark` is."""

    mark: str
    message: Message


def entry_of(output: Path, stamp: str) -> Entry | None:
    """What is known of the message of `stamp` in `output`."""
    return Ledger(output).entries.get(stamp)


def is_sent(output: Path, stamp: str) -> bool:
    """Whether Slack has the message, and all that was to be said in its thread."""
    entry = entry_of(output, stamp)
    waiting = entry is not None and any(reply.waits for reply in entry.replies.values())
    return entry is not None and entry.state == SENT and not waiting


def reply(slack: Slack, output: Path, stamp: str, replies: Sequence[Reply]) -> str:
    """Say `replies`, and those that wait, in the thread of the message of `stamp`; why not all were, or "".

    What is given is written down before anything is sent: from then on it needs not be given again.
    DashboardError where Slack refuses and will again.
    """
    with hold_lock(output):
        ledger = Ledger(output)
        entry = ledger.entries.get(stamp)
        if not slack.can_edit or entry is None or entry.state != SENT or entry.channel != slack.channel:
            return "It has no thread in this channel."
        new = {item.mark: SavedReply(QUEUED, item.message) for item in replies if item.mark not in entry.replies}
        entry = ledger.change(entry, replies={**entry.replies, **new}) if new else entry
        try:
            for mark in [mark for mark, saved in entry.replies.items() if saved.waits]:
                entry = _say(slack, ledger, entry, mark)
        except (BusyError, UncertainError) as error:
            return f"A reply is queued: {error}."
        except RefusedError as error:
            raise DashboardError(str(error)) from None
    return ""


def _say(slack: Slack, ledger: Ledger, entry: Entry, mark: str) -> Entry:
    """Send one reply, unless the thread has it; the ledger knows each step before it is taken."""
    saved = entry.replies[mark]
    assert saved.message is not None
    try:
        if _is_there(slack, entry, mark, saved):
            return _put(ledger, entry, mark, SavedReply(SENT))
        entry = _put(ledger, entry, mark, replace(saved, state=SENDING, why=""))
        slack.reply(entry.ts, saved.message, _key(entry, mark))
    except BusyError:
        _put(ledger, entry, mark, replace(saved, why=""))
        raise
    except RefusedError as error:
        if error.code in MESSAGE_FAULTS | _GONE:
            state = REFUSED if error.code in MESSAGE_FAULTS else GIVEN_UP
            return _put(ledger, entry, mark, SavedReply(state, why=str(error)))
        _put(ledger, entry, mark, replace(saved, state=QUEUED, why=str(error)))
        raise
    return _put(ledger, entry, mark, SavedReply(SENT))


def _is_there(slack: Slack, entry: Entry, mark: str, saved: SavedReply) -> bool:
    """Whether the thread has the reply: also asked before the first try, for a ledger may have been lost."""
    try:
        return slack.find_reply(entry.ts, _key(entry, mark)) is not None
    except RefusedError as error:
        if error.code != "missing_scope":
            raise
        if saved.state == QUEUED:
            return False
        raise UncertainError(f"could not check whether a reply was posted: {error}") from None


def _put(ledger: Ledger, entry: Entry, mark: str, saved: SavedReply) -> Entry:
    return ledger.change(entry, replies={**entry.replies, mark: saved})


def _key(entry: Entry, mark: str) -> str:
    return f"{entry.key}.{mark}"
