"""One message a night: posted once, edited on a rerun, queued while Slack cannot take it, never said twice."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, config_util, structured
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.home_secrets import find_secrets_of_home
from tvmdash.slack_util import token
from tvmdash.slack_util.client import Slack
from tvmdash.slack_util.errors import MESSAGE_FAULTS, BusyError, RefusedError, SlackError, UncertainError
from tvmdash.slack_util.ledger import FILE, GIVEN_UP, QUEUED, REFUSED, SENDING, SENT, Entry, Ledger, hold_lock
from tvmdash.slack_util.patience import Patience
from tvmdash.slack_util.payloads import Message
from tvmdash.text import clean_message

MAX_LATE, MAX_LATE_DAYS = 3, 7
"""How many messages of earlier nights are sent late, and how old they may be."""
_UNKNOWN = "it may be in Slack, which a webhook cannot check"
_log = logging.getLogger("slack")


@dataclass(frozen=True)
class Delivered:
    """How giving a message to Slack went, in words; posted: it was, and not found there, edited or kept."""

    words: str
    posted: bool = False


@dataclass(frozen=True)
class Attachment:
    """A file for the thread of a night's message."""

    name: str
    title: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class SlackConfig:
    """What the config of a subsystem that speaks in Slack has for it; `env` must not hold the token."""

    channel: str
    token_file: str
    slack_seconds: float
    env: Mapping[str, str]


def open_slack(config: SlackConfig | Mapping[str, Any], home: Home, where: str) -> Slack | None:
    """The Slack of a subsystem's config; None where there is no token."""
    if not isinstance(config, SlackConfig):
        config = structured.from_json(SlackConfig, dict(config), where)
    token.refuse_in_config(config.env, where)
    with contextlib.suppress(ConfigError):  # a top-level config that cannot be read stops the night by itself
        everywhere = config_util.read_config(home.config_file, config_util.HOME_FIELDS)
        token.refuse_in_config(everywhere["env"], "config/config.json")
    secrets = token.find_secrets(config.token_file, home.root)
    if secrets is None:
        return None
    try:
        return Slack(secrets, config.channel, Patience(config.slack_seconds), known=find_secrets_of_home(home))
    except DashboardError as error:
        raise DashboardError(f"{where}: {error}") from error


def find_slack_faults(config: SlackConfig, home: Home, where: str) -> tuple[str, ...]:
    """What is wrong with the Slack of a subsystem's config, for its `faults`; nothing where there is no token."""
    try:
        open_slack(config, home, where)
    except DashboardError as error:
        return (str(error),)
    return ()


def tell(slack: Slack | None, output: Path, stamp: str, message: Message, *, since: float | None = None) -> str:
    """Leave the message as message.txt and message.json in `output`, and give it to Slack; a sentence about that."""
    return deliver(slack, output, stamp, message, since=since).words


def deliver(
    slack: Slack | None, output: Path, stamp: str, message: Message, *, since: float | None = None
) -> Delivered:
    """The same, with what came of it as a value.

    With `since` (seconds of the epoch), a message that `output` does not know is looked for in the channel, among
    those after that moment, before it is posted: files that were lost make nothing be said twice.
    DashboardError where Slack refuses and will again. A Slack that is down fails nothing: the message waits.
    """
    known = slack.known if slack else ()
    common.write_text(output / "message.txt", clean_message(message.plain(), known))
    common.write_json(output / "message.json", clean_message(message.to_json(), known))
    if slack is None:
        return Delivered("No Slack token is configured; the message is only in message.txt.")
    with hold_lock(output):
        ledger = Ledger(output)
        delivered = _Delivery(slack, ledger, _key(output, stamp)).tonight(stamp, message, since)
    _log.info("%s", delivered.words)
    return delivered


def attach(slack: Slack, output: Path, stamp: str, attachments: Sequence[Attachment], note: Message | None) -> str:
    """Put files, and a note after them, into the thread of the night's message, each at most once; a sentence, or "".

    What Slack does not take is left out: graphs are on the website, and fail nothing.
    """
    with hold_lock(output):
        ledger = Ledger(output)
        entry = ledger.entries.get(stamp)
        if not slack.can_edit or entry is None or entry.state != SENT or entry.channel != slack.channel:
            return ""
        try:
            count = _attach(slack, ledger, entry, attachments, note)
        except SlackError as error:
            return f"Not all graphs are in Slack: {error}."
        except OSError as error:
            return f"Not all graphs are in Slack: {error.filename}: {error.strerror}."
    return f"{count} graphs are in its thread." if count else ""


def _attach(slack: Slack, ledger: Ledger, entry: Entry, attachments: Sequence[Attachment], note: Message | None) -> int:
    for item in attachments:
        if item.name not in entry.attached:
            content = item.path.read_bytes()
            entry = ledger.change(entry, attached=(*entry.attached, item.name))
            slack.upload(entry.ts, item.name, item.title, content)
    if note is not None and note.digest not in entry.attached:
        entry = ledger.change(entry, attached=(*entry.attached, note.digest))
        slack.reply(entry.ts, note, f"{entry.key}.{note.digest}")
    return len(attachments)


def _key(output: Path, stamp: str) -> str:
    """The same for every run of one subsystem, home and night; it marks the message in Slack."""
    identity = "\n".join((os.uname().nodename, str(output.resolve()), stamp))
    return hashlib.sha256(identity.encode("utf-8", errors="surrogateescape")).hexdigest()[:32]


class _Delivery:
    """Tonight's message, then those of earlier nights that wait."""

    def __init__(self, slack: Slack, ledger: Ledger, key: str) -> None:
        self._slack = slack
        self._ledger = ledger
        self._key = key

    def tonight(self, stamp: str, message: Message, since: float | None) -> Delivered:
        """A sentence or more about how it went; DashboardError where Slack refuses."""
        entry = self._ledger.entries.get(stamp) or self._make_unknown(stamp, since)
        try:
            is_sent = entry.state == SENT
            delivered = Delivered(self._edit(entry, message)) if is_sent else self._send(entry, message)
            return replace(delivered, words=" ".join((delivered.words, *self._send_backlog(stamp))))
        except BusyError as error:
            return Delivered(f"{error}: the message is queued in {FILE} and will be sent the next night.")
        except UncertainError as error:
            return Delivered(f"{error}: unknown whether the message was posted. {self._format_next_step()}")
        except RefusedError as error:
            raise DashboardError(f"{error} The message is in message.txt.") from None

    def _make_unknown(self, stamp: str, since: float | None) -> Entry:
        """An entry for a message of which nothing is known."""
        looks = self._is_lost() or (since is not None and self._slack.can_edit)
        untried = looks and not self._ledger.was_broken
        begun = time.time() if since is None else min(since, time.time())
        return Entry(stamp, self._key, begun, SENDING if looks else QUEUED, untried=untried)

    def _is_lost(self) -> bool:
        """After a ledger that was lost, a message is looked for before it is sent; a webhook cannot look."""
        return self._ledger.was_broken and self._slack.can_edit

    def _format_next_step(self) -> str:
        if self._slack.can_edit:
            return "The next night checks for it and sends it if it is missing."
        return "It is not sent again, because a webhook cannot check for duplicates."

    def _edit(self, entry: Entry, message: Message) -> str:
        if entry.digest == message.digest:
            return "The message is already in Slack."
        if not self._slack.can_edit:
            return "Slack has this night's earlier message; a webhook cannot edit it, so nothing was posted."
        if entry.channel != self._slack.channel:
            return f"This night's message is already in the channel {entry.channel} and was not changed."
        try:
            self._slack.edit(entry.ts, message, entry.key)
        except RefusedError as error:
            if error.code not in {"message_not_found", "cant_update_message", "edit_window_closed"}:
                raise
            return f"This night's message can no longer be edited ({error.code}); it is not sent again."
        except SlackError as error:
            return f"This night's message in Slack may be from an earlier run: {error}."
        self._ledger.change(entry, digest=message.digest)
        return "This night's message in Slack was edited."

    def _send(self, entry: Entry, message: Message, note: str = "") -> Delivered:
        """Post, after looking for what may be there already; the ledger knows each step before it is taken.

        `note` stands in front of a message that is late; what waits in the ledger is without it.
        """
        if entry.state == REFUSED and entry.digest == message.digest:
            raise RefusedError(entry.why)
        if entry.state == GIVEN_UP:
            return Delivered(f"This night's message is not sent again: {entry.why}.")
        entry = replace(entry, message=message, channel=self._slack.channel)
        if entry.state == SENDING:
            ts = self._find(entry)
            if ts:
                entry = self._ledger.change(entry, state=SENT, ts=ts, message=None)
                return Delivered("It was already in Slack." if note else self._edit(entry, message))
        ts = self._post(entry, message.marked(note) if note else message)
        self._ledger.change(entry, state=SENT, ts=ts, digest=message.digest, message=None)
        return Delivered("The message is in Slack.", posted=True)

    def _find(self, entry: Entry) -> str | None:
        if not self._slack.can_edit:
            self._ledger.change(entry, state=GIVEN_UP, why=_UNKNOWN, message=None)
            raise UncertainError("An earlier run ended while posting this message")
        self._ledger.put(entry)
        try:
            return self._slack.find(entry.key, entry.since)
        except RefusedError as error:
            if error.code != "missing_scope":
                raise
            if entry.untried:
                return None
            raise UncertainError(
                f"An earlier run did not learn whether the message was posted, and it could not be checked: {error}"
            ) from None
        except SlackError as error:
            if entry.untried:
                raise
            raise UncertainError(str(error)) from None

    def _post(self, entry: Entry, message: Message) -> str:
        entry = self._ledger.change(entry, state=SENDING, why="", untried=False)
        try:
            return self._slack.post(message, entry.key, entry.since)
        except BusyError as error:
            self._ledger.change(entry, state=QUEUED, why=str(error))
            raise
        except UncertainError as error:
            if not self._slack.can_edit:
                self._ledger.change(entry, state=GIVEN_UP, why=_UNKNOWN, message=None)
            else:
                self._ledger.change(entry, why=str(error))
            raise
        except RefusedError as error:
            state = REFUSED if error.code in MESSAGE_FAULTS else QUEUED
            self._ledger.change(entry, state=state, why=str(error), digest=message.digest)
            raise

    def _send_backlog(self, tonight: str) -> list[str]:
        """Send what waits of earlier nights, oldest first; sentences about it. Nothing here fails tonight's message."""
        waiting = [self._ledger.entries[stamp] for stamp in sorted(self._ledger.entries) if stamp < tonight]
        waiting = [entry for entry in waiting if entry.waits]
        fresh = [entry for entry in waiting if _age_days(entry.stamp, tonight) <= MAX_LATE_DAYS][-MAX_LATE:]
        old = [entry for entry in waiting if entry not in fresh]
        for entry in old:
            self._ledger.change(entry, state=GIVEN_UP, why="it was too old when Slack became reachable", message=None)
        sentences = [f"{len(old)} messages of earlier nights were too old to be sent."] if old else []
        try:
            sentences += [self._send_late(entry) for entry in fresh]
        except SlackError as error:
            sentences.append(f"A message from an earlier night is still queued: {error}.")
        return sentences

    def _send_late(self, entry: Entry) -> str:
        moment = common.parse_stamp(entry.stamp)
        night = f"{moment:%A} {moment.day} {moment:%B} {moment.year}"
        note = f"Late: message from the night of {night}, when Slack could not be reached."
        assert entry.message is not None
        self._send(entry, entry.message, note)
        return f"The message of {entry.stamp} was sent late."


def _age_days(stamp: str, tonight: str) -> float:
    return (common.parse_stamp(tonight) - common.parse_stamp(stamp)).total_seconds() / 86400
