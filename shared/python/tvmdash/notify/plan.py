"""The messages that a route has yet to send, from the incidents and the night's verdict, and the owners they ping."""

from __future__ import annotations

import fnmatch
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import VARIANT_SIGN, experiment_of, host_of
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import (
    CONFIRMED,
    DETECTOR,
    MACHINE,
    SETTLED,
    Change,
    Incident,
    Ledger,
    iso_of,
)
from tvmdash.notify import text
from tvmdash.notify.config import Owner, Route, RouteKind, Routing
from tvmdash.notify.delivery import LATE_DAYS, Due, Outbox, make_identity
from tvmdash.notify.message import Item, Message, Occasion, State, incident_of, opening_of
from tvmdash.records.metrics import CHANGED
from tvmdash.series.naming import strip_host
from tvmdash.verdict import Level
from tvmdash.verdict.account import Account

_MOST_SERIES = 50
"""Of an incident, in a message."""
_FOLLOWED_DAYS = 30
"""Days after its last change for which a settled incident's message is kept up to date."""


@dataclass(frozen=True)
class Situation:
    """A home as the night `night` left it, for one route.

    output: what messages are told apart by; it is of this machine and home. told: the marks of what the outbox told.
    main: stat_alerts has a channel of its own. threads: how many new incidents of a night get a message each, where the
    others share one; 0: all.
    """

    route: Route
    routing: Routing
    ledger: Ledger
    account: Account
    night: str
    home: str
    output: Path
    outbox: Outbox
    main: bool = False
    threads: int = 0
    told: frozenset[str] = frozenset()

    def make_id(self, key: str) -> str:
        """Return the message's ID, the same for each try."""
        return make_identity(self.output, self.route.name, key)


@dataclass(frozen=True)
class Plan:
    """The messages in the order in which they are to be sent, and the incidents that wait for a silence to end."""

    due: tuple[Due, ...]
    hushed: tuple[str, ...]


@dataclass(frozen=True)
class _News:
    """The changes of an incident that the route has not told; all of it where it is new."""

    incident: Incident
    event: Occasion
    marks: tuple[str, ...]
    changes: tuple[Change, ...] = ()
    joined: tuple[str, ...] = ()


def make_plan(now: Situation) -> Plan:
    own = [incident for incident in now.ledger.incidents.values() if not incident.into]
    mine = [incident for incident in own if is_for(now.route, now.routing.owners, incident)]
    silent = {incident.id for incident in mine if now.ledger.silent(incident, iso_of(now.night))}
    news, hushed = list[_News](), list[str]()
    for incident in mine:
        if find_level(incident) not in now.route.at_once | now.route.digest:
            continue
        found = _find_news(now, incident)
        if found is None:
            continue
        if incident.id not in silent:
            news.append(found)
        elif found.event is Occasion.OPENED:
            hushed.append(incident.id)
    news.sort(
        key=lambda item: (item.event is not Occasion.OPENED, not item.incident.is_worse, -item.incident.magnitude)
    )
    at_once = [item for item in news if find_level(item.incident) in now.route.at_once]
    together = [item for item in news if find_level(item.incident) in now.route.digest]
    opened = [item for item in at_once if item.event is Occasion.OPENED]
    rest = opened[now.threads :] if now.threads else []
    alone = [_make_due(now, item) for item in at_once if item not in rest]
    shared = [_make_shared(now, rest)] if rest else []
    kept = _keep_up_to_date(now, {incident.id: incident for incident in mine if incident.id not in silent})
    return Plan((*alone, *shared, *_make_night(now, together), *kept), tuple(hushed))


def _find_news(now: Situation, incident: Incident) -> _News | None:
    opened = opening_of(incident.id)
    changes = [change for change in incident.changes[1:] if (change.who, change.state) != (DETECTOR, CONFIRMED)]
    by_mark = {f"{incident.id} {change.at} {change.who} {change.state}": change for change in changes}
    nights = sorted({moved.joined for moved in incident.moved if moved.joined})
    joined = {f"{incident.id} joined {night}": night for night in nights}
    bisected = [f"{incident.id} bisected"] if incident.bisected else []
    marks = (opened, *joined, *by_mark, *bisected)
    if opened not in now.told:
        return _News(incident, Occasion.OPENED, marks) if _is_new(now, incident) else None
    left = [mark for mark in marks if mark not in now.told]
    if not left:
        return None
    untold = tuple(change for mark, change in by_mark.items() if mark in left)
    closed = bool(untold) and incident.state in SETTLED
    event = Occasion.CLOSED if closed else Occasion.UPDATED
    return _News(incident, event, tuple(left), untold, tuple(night for mark, night in joined.items() if mark in left))


def _is_new(now: Situation, incident: Incident) -> bool:
    """Return True where it was found lately, on this route, and is not over; or it waited for a silence, still open."""
    if incident.id in now.outbox.hushed:
        return incident.is_open
    days = (common.parse_stamp(now.night) - common.parse_stamp(incident.found)).total_seconds() / 86400
    return now.outbox.since <= incident.found <= now.night and days <= LATE_DAYS and incident.state not in SETTLED


def _make_due(now: Situation, news: _News) -> Due:
    incident, level = news.incident, find_level(news.incident)
    opening = opening_of(incident.id)
    is_first = news.event is Occasion.OPENED
    # The same news has the same key at each try, so that it is sent once.
    key = opening if is_first else f"{incident.id} {hashlib.sha256(repr(news.marks).encode()).hexdigest()[:12]}"
    people, pings = _find_people(now, [news])
    message = Message(
        id=now.make_id(key),
        event=news.event,
        night=now.night,
        title=text.format_title(incident),
        items=(_make_titled_item(now, news) if _is_shared(now, opening) else _make_item(now, news),),
        level=level,
        news=_format_news(now, news),
        is_minor=not is_first and len(news.joined) == len(news.marks),
        first="" if is_first else now.make_id(opening),
        people=people,
        owners=tuple(list_names(find_owners(now.routing.owners, incident))),
        home=now.home,
        incident=_shorten(incident),
        series=len(incident.moved),
    )
    return Due(key, message, (*news.marks, *pings), frozenset({level}))


def _format_news(now: Situation, news: _News) -> str:
    """Say what is new; of a new incident its state, where the sent message is kept up to date."""
    if news.event is not Occasion.OPENED:
        return text.format_news(news.incident, news.changes, news.joined)
    return text.format_state(news.incident) if now.route.kind is RouteKind.SLACK else ""


def _is_shared(now: Situation, opening: str) -> bool:
    """Return True where one message told it first together with others."""
    return any(entry.remote and entry.key != opening and opening in entry.marks for entry in now.outbox)


def _make_shared(now: Situation, news: Sequence[_News]) -> Due:
    """The new incidents beyond those that get a message each, in one."""
    marks = tuple(mark for item in news for mark in item.marks)
    people, pings = _find_people(now, news)
    key = f"more {now.night} {hashlib.sha256(repr(marks).encode()).hexdigest()[:12]}"
    message = _list_together(now, key, now.night, [item.incident for item in news])
    levels = frozenset(find_level(item.incident) for item in news)
    return Due(key, replace(message, people=people), (*marks, *pings), levels)


def _list_together(now: Situation, key: str, night: str, incidents: Sequence[Incident]) -> Message:
    website = now.routing.website_url
    return Message(
        id=now.make_id(key),
        event=Occasion.OPENED,
        night=night,
        title=f"{len(incidents)} more incidents of the night of {common.format_day(night)}",
        items=tuple(text.describe_briefly(incident, website) for incident in incidents),
        home=now.home,
    )


def _keep_up_to_date(now: Situation, incidents: Mapping[str, Incident]) -> Iterator[Due]:
    """The first messages of incidents as they are by now, where the route shows them in place of what was sent."""
    if now.route.kind is not RouteKind.SLACK:
        return
    for entry in now.outbox:
        told = [incidents[name] for mark in entry.marks if (name := incident_of(mark)) in incidents]
        followed = any(incident.is_open or _count_settled(incident, now.night) <= _FOLLOWED_DAYS for incident in told)
        if not followed or entry.state is not State.SENT or not entry.remote:
            continue
        if opening_of(told[0].id) != entry.key:
            yield Due(entry.key, _list_together(now, entry.key, entry.night, told))
            continue
        (incident,) = told
        news = _News(incident, Occasion.OPENED, entry.marks)
        (people, _), due = _find_people(replace(now, told=frozenset()), [news]), _make_due(now, news)
        yield Due(entry.key, replace(due.message, night=entry.night, people=people))


def _count_settled(incident: Incident, night: str) -> float:
    """Count the days since its last change."""
    last = common.parse_stamp(incident.changes[-1].at.replace("-", "").replace(":", ""))
    return (common.parse_stamp(night) - last).total_seconds() / 86400


def _make_item(now: Situation, news: _News) -> Item:
    website = now.routing.website_url
    if news.event is Occasion.OPENED:
        return text.describe_new(news.incident, website, now.home)
    return text.describe_news(news.incident, news.changes, news.joined, website, now.home)


def _find_people(now: Situation, news: Sequence[_News]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Find whom to ping, and the marks of that: owners of what got worse and is open, not pinged for it before."""
    people, marks = dict[str, None](), list[str]()
    kind, name, routing = now.route.kind, now.route.name, now.routing
    for incident in (item.incident for item in news if item.incident.is_open):
        owners = find_owners(routing.owners, incident)
        for person in list_people(
            [each for each in owners if is_pinged_by(each, kind, name, routing, main=now.main)], kind
        ):
            mark = f"{incident.id} pinged {person}"
            if mark not in now.told:
                people[person] = None
                marks.append(mark)
    return tuple(people), tuple(marks)


def _make_night(now: Situation, news: Sequence[_News]) -> Iterator[Due]:
    """The night's one message, where there is anything to tell in it."""
    level = now.account.level or Level.NO_DATA
    is_wanted = level in now.route.digest and not (now.account.level is None and now.route.is_judged_only)
    key = f"night {now.night}"
    waiting = [entry for entry in now.outbox if entry.state is State.WAITING and entry.night != now.night]
    missed = [
        (entry.night, entry.message.title)
        for entry in waiting
        if entry.message and entry.message.event is Occasion.NIGHT
    ]
    if key in now.told or not (news or missed or is_wanted):
        return
    people, pings = _find_people(now, news)
    website, told = now.routing.website_url, {item.incident.id for item in news}
    still = [incident for incident in now.ledger.open() if incident.id not in told]
    still = [incident for incident in still if is_for(now.route, now.routing.owners, incident)]
    items = [text.describe_night(now.account, now.night, website, now.home)]
    items += [text.describe_failures(now.account.failures)] if now.account.failures else []
    items += [_make_titled_item(now, item) for item in news]
    items += [text.describe_open(still)] if still else []
    items += [text.describe_missed(missed)] if missed else []
    owners = [owner for item in news for owner in find_owners(now.routing.owners, item.incident)]
    message = Message(
        id=now.make_id(key),
        event=Occasion.NIGHT,
        night=now.night,
        title=now.account.headline,
        items=tuple(items),
        level=level,
        people=people,
        owners=tuple(list_names(owners)),
        home=now.home,
    )
    marks = (key, *(f"night {night}" for night, _ in missed), *(mark for item in news for mark in item.marks), *pings)
    yield Due(key, message, marks, frozenset({level, *(find_level(item.incident) for item in news)}))


def _make_titled_item(now: Situation, news: _News) -> Item:
    incident = news.incident
    what = "New" if news.event is Occasion.OPENED else text.format_news(incident, news.changes, news.joined)
    return replace(_make_item(now, news), title=f"{what}: {text.format_title(incident)}")


def _shorten(incident: Incident) -> Incident:
    """The incident with the series that moved the farthest for the worse: it may have thousands."""
    return replace(incident, moved=tuple(incident.worst_first[:_MOST_SERIES]))


_LOCAL, _ALL = "local", "*"


def find_owners(owners: Sequence[Owner], incident: Incident) -> list[Owner]:
    """Find the owners of at least one of its series; without series, of all that its machine measures."""
    return [owner for owner in owners if _owns(owner, incident)]


def _owns(owner: Owner, incident: Incident) -> bool:
    if not incident.moved:
        whole = owner.series == owner.experiment == _ALL
        return whole and (owner.host == _ALL or fnmatch.fnmatch(incident.machine, owner.host))
    return any(_owns_series(owner, moved) for moved in incident.moved)


def _owns_series(owner: Owner, moved: Moved) -> bool:
    name = moved.experiment
    without_tvm = name.partition(VARIANT_SIGN)[0]
    return (
        _matches(owner.series, moved.name, moved.series, moved.workload)
        and _matches(owner.experiment, name, without_tvm, strip_host(name), experiment_of(name))
        and _matches(owner.host, host_of(name) or _LOCAL, moved.machine)
    )


def _matches(pattern: str, *names: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for name in names)


def find_level(incident: Incident) -> Level:
    """The level of the night's verdict that it stands for; a move of the machine counts as a change."""
    settled_by_itself = incident.kind == MACHINE and incident.blame == MACHINE
    if settled_by_itself or incident.way == CHANGED:
        return Level.CHANGED
    return Level.REGRESSION if incident.is_worse else Level.IMPROVED


def is_for(route: Route, owners: Sequence[Owner], incident: Incident) -> bool:
    """Return True for incidents of the owners that name the route; for all where none does."""
    named = [owner for owner in owners if route.name in owner.routes]
    return not named or bool(find_owners(named, incident))


def is_pinged_by(owner: Owner, kind: RouteKind, route: str, routing: Routing, *, main: bool = False) -> bool:
    """Return True where this is the one route of its kind that pings the owner.

    It is the first that the owner names, else `main`, which has no name, where there is one, else the first that
    nobody names.
    """
    own = [name for name in owner.routes if routing.routes[name].kind is kind]
    named = {name for other in routing.owners for name in other.routes}
    for_all = [name for name, other in routing.routes.items() if other.kind is kind and name not in named]
    return next(iter([*own, *([""] if main else []), *for_all]), None) == route


def list_people(owners: Sequence[Owner], kind: RouteKind) -> tuple[str, ...]:
    """Their names on routes of that kind, each once."""
    names = {RouteKind.SLACK: "slack", RouteKind.EMAIL: "email", RouteKind.GITHUB: "github"}
    lists = (getattr(owner, names[kind]) for owner in owners) if kind in names else ()
    return tuple(dict.fromkeys(person for people in lists for person in people))


def list_names(owners: Sequence[Owner]) -> list[str]:
    return list(dict.fromkeys(owner.name for owner in owners if owner.name))
