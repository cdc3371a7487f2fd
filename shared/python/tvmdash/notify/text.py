"""The words for incidents and nights on routes, and messages as plain text, HTML and Markdown."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvmdash import common
from tvmdash.common.http_util import is_link
from tvmdash.dashboard_info import WEBSITE, Home
from tvmdash.incidents.differences import describe_why
from tvmdash.incidents.headline import format_headline, format_range
from tvmdash.incidents.ledger import ACKNOWLEDGED, CHANGE, DETECTOR, MACHINE, NEW, OPEN_STATES, Change, Incident
from tvmdash.incidents.next_step import (
    format_acknowledge,
    format_address,
    format_next_step,
    format_night_address,
    format_status,
)
from tvmdash.incidents.text import format_bisection, format_incident
from tvmdash.notify.message import Item, Message
from tvmdash.notify.payloads import GOOD, NOTE
from tvmdash.records.metrics import CHANGED
from tvmdash.text import clean, escape_markdown, format_list
from tvmdash.verdict.account import Account

_COLUMNS, _NAMED = 78, 5


def format_title(incident: Incident) -> str:
    between = format_range(incident.versions) if incident.kind == CHANGE else ""
    return f"{format_headline(incident)}{f' since {between}' if between else ''}"


def format_news(incident: Incident, changes: Sequence[Change], joined: Sequence[str]) -> str:
    """Say in two or three words what is new of it."""
    if changes:
        return _format_change(changes[-1])
    return "More series moved" if joined else "Bisected"


def _format_change(change: Change) -> str:
    who = "" if change.who == DETECTOR else f" by {change.who}"
    return f"{change.state.replace('_', ' ').capitalize()}{who}"


def describe_new(incident: Incident, website: str, home: str) -> Item:
    """A new incident: what moved, since when, how sure that is, and what to do next."""
    told, why = format_incident(incident), describe_why(Home(Path(home)).output(WEBSITE), incident)
    lines = (*told.lines, *([f"What changed: {why}."] if why else []), told.since)
    return Item("", lines, format_address(website, incident), tuple(_list_commands(incident, home)))


def _list_commands(incident: Incident, home: str) -> Iterator[tuple[str, str]]:
    if incident.is_open:
        yield "Next", format_next_step(incident, home)
        if incident.state != ACKNOWLEDGED:
            yield "To acknowledge it", format_acknowledge(incident, home)


def describe_news(
    incident: Incident, changes: Sequence[Change], joined: Sequence[str], website: str, home: str
) -> Item:
    """Describe the changes of an incident since it was told."""
    lines = [
        f"{_format_change(change)}{f': {change.words.strip()}' if change.words.strip() else '.'}" for change in changes
    ]
    more = [moved.name for moved in incident.moved if moved.joined in joined]
    if more:
        lines.append(f"{len(more)} more series moved that night: {format_list(more, _NAMED)}.")
    if incident.bisected:
        lines.append(format_bisection(incident.bisected))
    return Item("", tuple(lines), format_address(website, incident), tuple(_list_commands(incident, home)))


def format_state(incident: Incident) -> str:
    """Name the incident's state; "" where it is new."""
    return "" if incident.state == NEW else incident.state.replace("_", " ").capitalize()


def choose_icon(incident: Incident) -> str:
    """Choose a tick for what is settled, and for what got better."""
    unsure = (incident.kind == MACHINE or incident.way == CHANGED) and incident.state in OPEN_STATES
    return NOTE if incident.is_open or unsure else GOOD


def describe_briefly(incident: Incident, website: str) -> Item:
    """An incident among others: what moved, and where more is said."""
    headline = ": ".join(filter(None, (format_state(incident), format_headline(incident))))
    return Item(f"{choose_icon(incident)} {headline}", (f"Incident {incident.id}.",), format_address(website, incident))


def describe_night(account: Account, night: str, website: str, home: str) -> Item:
    """Say why the night is called what it is, and where more is told."""
    status = (("How the night went", format_status(home)),)
    clauses = tuple(f"{clause}." for clause in account.clauses)
    return Item("", clauses, format_night_address(website, night), status)


def describe_failures(failures: Sequence[str]) -> Item:
    more = len(failures) - _NAMED
    return Item("Failed", (*failures[:_NAMED], *([f"{more} more; the status names them."] if more > 0 else ())))


def describe_open(incidents: Sequence[Incident]) -> Item:
    return Item("Still open", (f"{format_list([format_title(incident) for incident in incidents], _NAMED)}.",))


def describe_missed(missed: Sequence[tuple[str, str]]) -> Item:
    """List nights whose own messages could not be sent."""
    return Item("Delayed messages", tuple(f"{common.format_day(night)}: {title}." for night, title in missed))


def format_subject(message: Message) -> str:
    """Format one line for a list of messages."""
    return clean(" ".join(message.headline.split()))[:250]


def format_plain(message: Message) -> str:
    """Format the message for a terminal or a mail program."""
    end = "\n".join(["-- ", *map(clean, list_end(message))])
    return "\n\n".join(["\n".join(_wrap(message.headline)), *map(_format_item, message.items), end]) + "\n"


def _format_item(item: Item) -> str:
    said = [*_wrap(item.title), *(line for text in item.lines for line in _wrap(text))]
    to_do = [f"Look at it: {clean(item.address)}"] if item.address else []
    for purpose, command in item.commands:
        to_do += [f"{purpose}:", f"  {clean(command)}"]
    return "\n\n".join("\n".join(lines) for lines in (said, to_do) if lines)


def list_end(message: Message) -> list[str]:
    """Name the owners, the night and the home."""
    owners = [f"Owners: {format_list(message.owners, _NAMED)}."] if message.owners else []
    return [*owners, f"Night of {common.format_day(message.night)}, home {message.home}."]


def _wrap(text: str) -> list[str]:
    return [
        part
        for line in text.splitlines()
        # Addresses and commands stay whole.
        for part in textwrap.wrap(clean(line), _COLUMNS, break_long_words=False, break_on_hyphens=False)
    ]


def format_html(message: Message) -> str:
    """Format the message for a mail program that shows HTML; it loads nothing from outside."""
    parts = [f"<h2>{_escape(message.headline)}</h2>"]
    for item in message.items:
        parts += [f"<h3>{_escape(item.title)}</h3>"] if item.title else []
        parts += [f"<p>{_escape(line)}</p>" for text in item.lines for line in text.splitlines()]
        if is_link(item.address):
            parts.append(f'<p><a href="{_escape(item.address)}">{_escape(item.address)}</a></p>')
        parts += [f"<p>{_escape(purpose)}:</p>\n<pre>{_escape(command)}</pre>" for purpose, command in item.commands]
    end = " ".join(list_end(message))
    body = "\n".join([*parts, f"<hr>\n<p>{_escape(end)}</p>"])
    head = f'<head><meta charset="utf-8"><title>{_escape(format_subject(message))}</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>\n{body}\n</body></html>\n'


def _escape(text: str) -> str:
    return html.escape(clean(" ".join(text.split())))


def format_markdown(items: Sequence[Item], *, cc: Sequence[str] = (), end: Sequence[str] = ()) -> str:
    """Format things told as GitHub shows them, which pings the logins in `cc`; end: lines below all."""
    parts = list[str]()
    for item in items:
        parts += [f"### {escape_markdown(item.title)}"] if item.title else []
        parts += [escape_markdown(line) for text in item.lines for line in text.splitlines()]
        parts += [f"[Look at it]({item.address})"] if is_link(item.address) else []
        parts += [f"{escape_markdown(purpose)}:\n\n{_format_code(command)}" for purpose, command in item.commands]
    parts += [f"cc {' '.join(f'@{login}' for login in cc)}"] if cc else []
    return "\n\n".join([*parts, *map(escape_markdown, end)]) + "\n"


def _format_code(command: str) -> str:
    return f"```\n{clean(command).replace('```', '` ` `')}\n```"
