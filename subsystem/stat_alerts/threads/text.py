"""What is said of incidents in Slack, as values: the first message of a thread, and its replies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved
from tvmdash.incidents.headline import format_headline, format_range
from tvmdash.incidents.ledger import Change, Incident
from tvmdash.incidents.next_step import PAGE, format_address, format_next_step
from tvmdash.incidents.text import format_incident, format_night
from tvmdash.records.metrics import CHANGED
from tvmdash.slack_util.parts import GOOD, NOTE, format_in_a_line
from tvmdash.slack_util.payloads import Message, Part, build, code, escape, format_bold, link
from tvmdash.slack_util.threads import Reply

_LINES = 2500


@dataclass(frozen=True)
class Setting:
    """Where an incident is looked at (`website`, `home`), and the markup that pings its owners."""

    website: str
    home: str
    find_pings: Callable[[Incident], tuple[str, ...]]


def rank(incident: Incident) -> tuple[bool, bool, float, str]:
    """Sorts what matters most first: what got worse, TVM's doing, the size."""
    size = max((abs(moved.effect) for moved in incident.moved), default=abs(incident.size or 0.0))
    return not incident.is_worse, incident.kind != ledgers.CHANGE, -size, incident.id


def first_message(incidents: Sequence[Incident], night: str, setting: Setting) -> Message:
    """The message that a thread hangs on, of one incident or of several, as they are now."""
    if len(incidents) == 1:
        (incident,) = incidents
        described = format_incident(incident)
        parts = [Part(escape("\n".join([*described.lines, described.since]), _LINES)), *_ping(incident, setting)]
        if incident.is_open:
            parts.append(Part(code(format_next_step(incident, setting.home))))
        return build(_title(incident, whole=True), _about(incident, setting.website), parts)
    verdict = f"{len(incidents)} more incidents of the night {format_night(night)}"
    parts = [_row(incident, setting) for incident in sorted(incidents, key=rank)]
    rest = _format_rest(setting.website)
    return build(verdict, "State changes are posted in this thread.", parts, rest)


def _ping(incident: Incident, setting: Setting) -> list[Part]:
    """Who is pinged by the message: the owners of what is open."""
    pings = setting.find_pings(incident) if incident.is_open else ()
    return [Part(format_in_a_line(pings), pings)] if pings else []


def _title(incident: Incident, *, whole: bool = False) -> str:
    """With its icon and state; `whole`: also between which TVMs it came."""
    settled = incident.state not in ledgers.OPEN_STATES
    unsure = incident.kind == ledgers.MACHINE or incident.way == CHANGED
    icon = NOTE if incident.is_open or (unsure and not settled) else GOOD
    state = "" if incident.state == ledgers.NEW else f"{_state(incident.state)}: "
    between = format_range(incident.versions) if whole and incident.kind == ledgers.CHANGE else ""
    return f"{icon} {state}{format_headline(incident)}{f' since {between}' * bool(between)}"


def _state(state: str) -> str:
    return state.replace("_", " ").capitalize()


def _about(incident: Incident, website: str) -> str:
    return f"{_state(incident.state)} · {_link(incident, website)}"


def _link(incident: Incident, website: str) -> str:
    text = f"incident {incident.id}"
    address = format_address(website, incident)
    return link(address, text) if address else escape(text, 120)


def _row(incident: Incident, setting: Setting) -> Part:
    pings = [part.markup for part in _ping(incident, setting)]
    text = " · ".join([format_bold(_title(incident), 150), _link(incident, setting.website), *pings])
    return Part(text, setting.find_pings(incident) if pings else (), group="rows")


def _page(website: str) -> str:
    return f"{website.rstrip('/')}/{PAGE}"


def _format_rest(website: str) -> str:
    return f"All of them: {link(_page(website), 'alerts')}." if website else ""


def mark_of(incident: Incident, change: Change) -> str:
    """The same for the same change of state, however often it is told."""
    return _digest([incident.id, change.at, change.who, change.state])


def change_reply(incident: Incident, change: Change, *, named: bool) -> Reply:
    """One change of an incident's state; with its headline where the thread is of several incidents."""
    who = "" if change.who == ledgers.DETECTOR else f" by {change.who}"
    about = escape(f"{format_headline(incident)} ({incident.id})", 600) if named else ""
    text = change.words.strip() or _AS_USUAL.get(change.state, "")
    parts = [Part(escape(text[:1].upper() + text[1:], _LINES))] if text else []
    return Reply(mark_of(incident, change), build(f"{_state(change.state)}{who}", about, parts))


_AS_USUAL = {
    ledgers.ACKNOWLEDGED: "Somebody is looking at it.",
    ledgers.EXPECTED: "Accepted: the new level is the baseline.",
    ledgers.FIXED: "Closed.",
    ledgers.FALSE_ALARM: "It was none.",
}


def growth_reply(incident: Incident, more: Sequence[Moved], setting: Setting, *, named: bool) -> Reply:
    """Series that turned out to have moved at the same night; it pings owners whom nothing pinged before."""
    about = escape(f"{format_headline(incident)} ({incident.id})", 600) if named else ""
    text = "\n".join(format_incident(replace(incident, moved=tuple(more), size=None, notes=())).lines)
    title = f"{len(more)} more series moved at the same night" if len(more) > 1 else "One more series moved that night"
    mark = _digest([incident.id, "grown", sorted(moved.series for moved in more)])
    known = replace(incident, moved=tuple(moved for moved in incident.moved if moved not in more))
    before = setting.find_pings(known) if known.is_open else ()
    added = replace(incident, moved=tuple(more))
    pings = tuple(ping for ping in setting.find_pings(added) if ping not in before) if added.is_open else ()
    cc = [Part(format_in_a_line(pings), pings)] if pings else []
    return Reply(mark, build(title, about, [Part(escape(text, _LINES)), *cc]))


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode("utf-8", errors="replace")).hexdigest()[:20]
