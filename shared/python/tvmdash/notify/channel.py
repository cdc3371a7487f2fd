"""Subsystems in Slack: the night's one message of a channel, of which each has a section, and messages of their own."""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tvmdash import common, config_util
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.config_util import ConfigError
from tvmdash.dashboard_info import Home, Night
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.errors import DashboardError
from tvmdash.notify import slack_history, token
from tvmdash.notify.delivery import Delivery, Due, Outbox, hold, make_identity
from tvmdash.notify.errors import Budget, DeliveryError
from tvmdash.notify.message import OUTBOX_FILE, Entry, Kept, Occasion, Outgoing, State
from tvmdash.notify.night import format_about, format_rest, make_opening, website_url
from tvmdash.notify.payloads import Part, Payload, build, escape, format_bold, format_pings
from tvmdash.notify.senders.slack import SCOPES, Slack, SlackSender
from tvmdash.notify.state import SUBSYSTEM
from tvmdash.text import clean_message, format_list, plain_output

SPEAKERS = ("exp_reports", "subsys_reporter", "deadline")
"""The subsystems that speak to Slack wherever there is a token, in the order of their sections.

Others do where their config names a channel.
"""
_SECTION, _CHECK_S = "section.json", 30.0


@dataclass(frozen=True)
class Attachment:
    """A file for the thread of a night's message."""

    name: str
    title: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class SlackConfig:
    """Slack settings from a subsystem's config; `env` must not hold the token."""

    channel: str
    token_file: str
    slack_seconds: float
    env: Mapping[str, str]


@dataclass(frozen=True)
class ChannelSection:
    """A subsystem's section of the message about the night `night`.

    title: of the section. of_night: the night's account stands above it.
    channel: the one that its night's message is in, set when the section is kept.
    """

    night: Stamp
    title: str
    parts: tuple[Part, ...]
    of_night: bool = True
    channel: str = ""


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
        return Slack(secrets, config.channel, config.slack_seconds, known=find_secrets_of_home(home))
    except DashboardError as error:
        raise DashboardError(f"{where}: {error}") from error


def find_slack_faults(config: SlackConfig, home: Home, where: str) -> tuple[str, ...]:
    """Return the faults in the Slack settings of a subsystem's config, for its `faults`; none without a token."""
    try:
        open_slack(config, home, where)
    except DashboardError as error:
        return (str(error),)
    return ()


@dataclass(frozen=True)
class Delivered:
    """The outcome of giving a message to Slack; posted: it is new there, not found, edited or kept."""

    words: str
    posted: bool = False


def tell(slack: Slack | None, output: Path, stamp: str, message: Payload) -> str:
    """Do as `deliver`; return its words."""
    return deliver(slack, output, stamp, message).words


def deliver(slack: Slack | None, output: Path, stamp: str, message: Payload) -> Delivered:
    """Leave a message as message.txt and message.json in `output`, and give it to Slack once.

    Told again, it is edited. A Slack that is down fails nothing: the message waits for the next night.
    DashboardError where Slack refuses and will again.
    """
    _leave(slack, output, message)
    if slack is None:
        return Delivered("No Slack token is configured; the message is only in message.txt.")
    with _hold_own(output, stamp) as outbox:
        return _deliver(slack, outbox, stamp, [Due(stamp, _make_outgoing(output, stamp, stamp, message), (stamp,))])


def tell_section(slack: Slack | None, home: Home, output: Path, tonight: Night, section: ChannelSection) -> str:
    """Add a subsystem's section to the night's message of its channel; as `tell` does.

    What a webhook took cannot be edited, so there the section is a message of its own. An edit pings nobody: whom the
    section adds to those that were pinged is pinged in the message's thread.
    """
    whole = f"All of it: {escape(str(output / 'message.txt'), 300)}."
    alone = _compose(home, tonight, [section], whole)
    if slack is None or not slack.can_edit:
        # One that an earlier run of the night left would be told again in another subsystem's message.
        (output / _SECTION).unlink(missing_ok=True)
        return tell(slack, output, tonight.stamp, alone)
    _leave(slack, output, alone)
    kept = structured.to_json(replace(section, channel=slack.channel))
    common.write_json(output / _SECTION, clean_message(kept, slack.known))
    with _hold_channel(slack, home, tonight.stamp) as outbox:
        sections = list(_read_sections(home, slack.channel, tonight.stamp))
        message = _compose(home, tonight, sections, whole)
        due = list(_list_due(outbox, home, tonight.stamp, message, sections))
        return _deliver(slack, outbox, tonight.stamp, due).words


def attach(slack: Slack, output: Path, stamp: str, attachments: Sequence[Attachment], note: Payload | None) -> str:
    """Put files, and a note after them, into the thread of the night's message, each at most once; a sentence, or "".

    What Slack does not take is left out: graphs are on the website, and fail nothing.
    """
    with _hold_own(output, stamp) as outbox:
        return _attach(slack, outbox, output, stamp, attachments, note)


def attach_to_section(
    slack: Slack, home: Home, stamp: str, attachments: Sequence[Attachment], note: Payload | None
) -> str:
    """Do as `attach` in the thread of the channel's one message of the night."""
    with _hold_channel(slack, home, stamp) as outbox:
        return _attach(slack, outbox, home.output(SUBSYSTEM), stamp, attachments, note)


def _attach(
    slack: Slack, outbox: Outbox, output: Path, stamp: str, attachments: Sequence[Attachment], note: Payload | None
) -> str:
    entry = outbox.find(stamp)
    if not slack.can_edit or entry is None or entry.state is not State.SENT or not entry.remote:
        return ""
    sender, budget = SlackSender(slack), Budget(slack.seconds)
    try:
        for item in attachments:
            if item.name not in entry.attached:
                content = item.path.read_bytes()
                entry = outbox.change(entry, attached=(*entry.attached, item.name))
                put = functools.partial(sender.attach, entry.remote, item.name, item.title, content)
                budget.spend(put, again=False)
    except DeliveryError as error:
        return f"Not all graphs are in Slack: {error}."
    except OSError as error:
        return f"Not all graphs are in Slack: {error.filename}: {error.strerror}."
    if note is not None:
        _deliver(slack, outbox, stamp, [_make_reply(output, stamp, "graphs", note)])
    return f"{len(attachments)} graphs are in its thread." if attachments else ""


def _leave(slack: Slack | None, output: Path, message: Payload) -> None:
    known = slack.known if slack else ()
    common.write_text(output / "message.txt", clean_message(message.plain(), known))
    common.write_json(output / "message.json", clean_message(message.to_json(), known))


@contextlib.contextmanager
def _hold_own(output: Path, stamp: str) -> Iterator[Outbox]:
    with hold(output):
        yield _open(output / OUTBOX_FILE, stamp, slack_history.read_messages(output))


def _open(path: Path, stamp: str, older: Iterable[Entry]) -> Outbox:
    # Where it is there but damaged, the older messages were sent since.
    return Outbox(path, stamp, None if path.exists() else lambda: Kept(stamp, (), tuple(older)))


@contextlib.contextmanager
def _hold_channel(slack: Slack, home: Home, stamp: str) -> Iterator[Outbox]:
    folder = home.output(SUBSYSTEM) / "channels"
    with hold(folder):
        yield _open(folder / f"{slack.channel}.json", stamp, _read_older(home, slack, stamp))


def _read_older(home: Home, slack: Slack, stamp: str) -> Iterator[Entry]:
    """Yield the entries for this channel from when each subsystem had its own messages: waiting ones, and tonight's."""
    for name in SPEAKERS:
        for entry in slack_history.read_messages(home.output(name)):
            if entry.message is not None:
                yield replace(entry, key=f"{entry.key} {name}")
            elif entry.key == stamp and entry.remote.startswith(f"{slack.channel} "):
                yield entry


def _read_sections(home: Home, channel: str, stamp: str) -> Iterator[ChannelSection]:
    for name in SPEAKERS:
        with contextlib.suppress(DashboardError):
            section = structured.read(ChannelSection, home.output(name) / _SECTION, max_bytes=4 << 20)
            if section is not None and (section.night, section.channel) == (stamp, channel):
                yield section


def _compose(home: Home, night: Night, sections: Sequence[ChannelSection], whole: str) -> Payload:
    """The message: the account of the night, where a section is of that, then the sections."""
    website = website_url(home)
    if not any(section.of_night for section in sections):
        return build(sections[0].title, "", sections[0].parts)
    headline, parts = make_opening(home, night)
    for section in sections:
        parts += [Part(format_bold(section.title))] if section.title and len(sections) > 1 else []
        parts += section.parts
    return build(headline, format_about(night, website), parts, format_rest(night, website, whole))


def _list_due(
    outbox: Outbox, home: Home, stamp: str, message: Payload, sections: Sequence[ChannelSection]
) -> Iterator[Due]:
    pings = {ping: f"{stamp} pinged {ping}" for section in sections for part in section.parts for ping in part.pings}
    yield Due(stamp, _make_outgoing(home.output(SUBSYSTEM), stamp, stamp, message), (stamp, *pings.values()))
    entry, told = outbox.find(stamp), outbox.told
    new = [ping for ping, mark in pings.items() if mark not in told]
    if entry is not None and entry.state is State.SENT and new:
        titles = [section.title for section in sections if any(set(part.pings) & set(new) for part in section.parts)]
        payload = build(f"More of the night: {format_list(titles, 3)}", "", [Part(format_pings(new), tuple(new))])
        due = _make_reply(home.output(SUBSYSTEM), stamp, " ".join(new), payload)
        yield replace(due, marks=(*due.marks, *(pings[ping] for ping in new)))


def _make_reply(output: Path, stamp: str, what: str, payload: Payload) -> Due:
    """Make a message for the thread of the night's."""
    key = f"{stamp} {what}"
    return Due(key, replace(_make_outgoing(output, stamp, key, payload), first=stamp), (key, stamp))


def _make_outgoing(output: Path, stamp: str, key: str, payload: Payload) -> Outgoing:
    identity = make_identity(output, "slack", key)
    return Outgoing(identity, Occasion.NIGHT, stamp, payload.text, (), payload=payload)


def _deliver(slack: Slack, outbox: Outbox, stamp: str, due: Sequence[Due]) -> Delivered:
    """Send them and describe the outcome; DashboardError where Slack refuses."""
    work = Delivery(
        SlackSender(slack), outbox, stamp, f"{common.utc_now():%Y-%m-%dT%H:%M:%SZ}", Budget(slack.seconds),
        known=slack.known,
    )  # fmt: skip
    work.tell(due)
    if work.is_refused:
        raise DashboardError(f"{work.fault.rstrip('.')}. The message is in message.txt.")
    words = " ".join((_describe(outbox.find(stamp), work), *(f"{note}." for note in work.notes)))
    return Delivered(words, posted=work.sent > 0)


def _describe(entry: Entry | None, work: Delivery) -> str:
    if entry is None or entry.state is State.GIVEN_UP:
        why = f": {entry.why}" if entry and entry.why else ""
        return f"This night's message is not sent again{why}."
    if entry.state is State.WAITING:
        return f"{work.fault or entry.why}: the message is queued in {OUTBOX_FILE} and will be sent the next night."
    if entry.state is State.SENDING:
        return f"{work.fault or entry.why}: unknown whether the message was posted. The next night checks for it."
    if work.edited:
        return "This night's message in Slack was edited."
    late = f" {work.sent - 1} of earlier nights were sent late." if work.sent > 1 else ""
    return f"The message is in Slack.{late}" if work.sent else "The message is already in Slack."


def check(home: Home) -> list[str]:
    """Send a test for each way in which the home's subsystems speak to Slack; a sentence for each that is good.

    DashboardError says everything that is not.
    """
    good: list[str] = []
    faults: list[str] = []
    seen: set[tuple[token.Secrets, str]] = set()
    for name, config in _list_speakers(home):
        try:
            secrets = token.find_secrets(str(config.get("token_file", token.DEFAULT_FILE)), home.root)
            channel = str(config.get("channel", ""))
            if secrets is None or (secrets, channel) in seen:
                continue
            seen.add((secrets, channel))
            good.append(f"{name}: {send_test(secrets, channel)}")
        except DashboardError as error:
            faults.append(f"{name}: {error}")
    if not good and not faults:
        remedy = (
            f"put the token into {token.DEFAULT_FILE} (mode 600) and activate exp_reports; see docs/how-to/slack.md"
        )
        faults.append(f"{home.root}: no active subsystem has a Slack token: {remedy}.")
    if faults:
        raise DashboardError("\n".join([*good, *faults]))
    return good


def _list_speakers(home: Home) -> Iterator[tuple[str, dict[str, Any]]]:
    folder = home.configs("subsystem")
    for path in sorted(folder.glob("*/config.json")):
        config = common.read_json(path)
        if (
            isinstance(config, dict)
            and config.get("active") is True
            and (path.parent.name in SPEAKERS or config.get("channel"))
        ):
            yield path.parent.name, config


def send_test(secrets: token.Secrets, channel: str) -> str:
    """Post a test message, which pings nobody; a sentence about where it is, and what the token lacks."""
    slack, budget = Slack(secrets, channel, _CHECK_S), Budget(_CHECK_S)
    scopes = budget.spend(lambda limit_s: slack.scopes(time.monotonic() + limit_s), again=True)
    text = "Test message, sent by hand. The dashboard can post here; this message pings nobody."
    payload, key = build("Test of the TVM dashboard", escape(text), []), uuid.uuid4().hex
    budget.spend(lambda limit_s: slack.post(payload, key, time.monotonic() + limit_s), again=False)
    destination = f"the channel {channel}" if slack.can_edit else "the webhook's channel"
    lacking = [
        f"{' or '.join(sorted(any_of))} ({use})" for any_of, use in SCOPES.items() if scopes and not any_of & scopes
    ]
    advice = f" The token lacks {', '.join(lacking)}." if lacking else ""
    return f"posted the test message to {destination}, using the secret from {secrets.origin}.{advice}"


@plain_output()
def main(arguments: Sequence[str]) -> int:
    """Run `check HOME`; 0 where every test arrived, 1 where one did not, 2 where that is not what was asked."""
    if len(arguments) != 2 or arguments[0] != "check":
        sys.stderr.write("usage: python3 -m tvmdash.slack_util check HOME\n")
        return 2
    try:
        sys.stdout.write("\n".join([*check(Home(Path(arguments[1]))), ""]))
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
