"""A night's work on one route: what is due is sent once, and what was not taken is kept for the next try."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from tvmdash import structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.home_secrets import find_secrets_of_home
from tvmdash.routes.apprise import open_apprise
from tvmdash.routes.budget import Budget
from tvmdash.routes.channel import open_channel
from tvmdash.routes.config import Route, RouteKind
from tvmdash.routes.github import format_address, open_issues
from tvmdash.routes.mail import open_mail
from tvmdash.routes.message import Event, Message
from tvmdash.routes.outcome import BusyError, DeliveryError, IncompleteError, RefusedError
from tvmdash.routes.plan import Due, Situation, incident_of, make_plan, opening_of
from tvmdash.routes.record import Entry, Record, State
from tvmdash.routes.state import RouteState
from tvmdash.routes.webhook import open_webhook
from tvmdash.text import clean_message

_FAILURES = 2
"""Messages that were not taken, after which no other is tried that time."""


class Sender(Protocol):
    """One way of telling. safe_twice: a message that is sent twice does no more than one."""

    @property
    def safe_twice(self) -> bool: ...

    def send(self, message: Message, limit_s: float, remote: str) -> str:
        """Send it, or for an incident that the other side calls `remote` bring that up to date; what it calls it.

        DeliveryError where it was not taken.
        """
        ...


SENDERS: Mapping[RouteKind, Callable[[Route, Path], Sender]] = {
    RouteKind.EMAIL: open_mail,
    RouteKind.WEBHOOK: open_webhook,
    RouteKind.GITHUB: open_issues,
    RouteKind.APPRISE: open_apprise,
    RouteKind.SLACK: open_channel,
}
"""What opens each kind; incidents are told in Slack by stat_alerts, in threads."""


@dataclass(frozen=True)
class Told:
    """How many messages a route took, what must be said besides, and how it stands."""

    sent: int
    state: RouteState
    notes: tuple[str, ...] = ()


def tell_route(now: Situation, record: Record, home: Home, moment: datetime.datetime) -> Told:
    """Send what is due at that moment."""
    older = [entry for entry in record if entry.state is State.WAITING]
    missed = [entry for entry in older if entry.message and entry.message.event is Event.NIGHT]
    now = replace(
        now,
        since=record.since,
        told=record.told,
        hushed=frozenset(record.hushed),
        missed=tuple((entry.night, entry.message.title) for entry in missed if entry.message),
    )
    plan = make_plan(now)
    return send_due(now.route, plan.due, record, home, moment, now.night, plan.hushed)


def send_due(
    route: Route,
    due: Sequence[Due],
    record: Record,
    home: Home,
    moment: datetime.datetime,
    night: str,
    hushed: tuple[str, ...] = (),
) -> Told:
    """Send these, and of what was not taken before what still counts."""
    secrets = find_secrets_of_home(home)
    end = route.quiet.find_end(moment) if route.quiet else None
    entries = [_make_entry(item, record, route, night, secrets, held=end is not None) for item in due]
    notes = record.begin(entries, hushed, night)
    work = _Work(route, record, home, moment, held=end is not None)
    work.tell()
    until = f"{end:%H:%M} {end.tzname()}" if end is not None else ""
    return work.report(notes, until)


def _make_entry(due: Due, record: Record, route: Route, night: str, secrets: tuple[str, ...], *, held: bool) -> Entry:
    before = record.find(due.key)
    message = structured.from_json(Message, clean_message(structured.to_json(due.message), secrets), "message")
    entry = before or Entry(due.key, night, State.WAITING)
    waits = held and not due.levels & route.wake
    return replace(entry, marks=due.marks, message=message, held=waits)


class _Work:
    """One time of telling one route."""

    def __init__(self, route: Route, record: Record, home: Home, moment: datetime.datetime, *, held: bool) -> None:
        self._route, self._record, self._home, self._held = route, record, home, held
        self._at = f"{moment:%Y-%m-%dT%H:%M:%SZ}"
        self._budget = Budget(route.seconds)
        self._sent = self._failures = 0
        self._fault = ""
        self._notes: list[str] = []

    def tell(self) -> None:
        """What may have been taken the last time, then the rest in its order."""
        try:
            sender = SENDERS[self._route.kind](self._route, self._home.root)
        except DashboardError as error:
            self._fault = str(error)
            return
        uncertain = [entry for entry in self._record if entry.state is State.SENDING and not self._is_held(entry)]
        waiting = [entry for entry in self._record if entry.state is State.WAITING and not entry.held]
        for entry in (*uncertain, *(entry for entry in waiting if not self._is_folded(entry))):
            if self._failures < _FAILURES:
                self._send(sender, entry)

    def _is_held(self, entry: Entry) -> bool:
        return self._held and entry.message is not None and entry.message.level not in self._route.wake

    def _is_folded(self, entry: Entry) -> bool:
        """Whether another message tells it: a night that was missed."""
        return any(entry.key in other.marks for other in self._record if other.key != entry.key)

    def _send(self, sender: Sender, entry: Entry) -> None:
        message, is_again = entry.message, entry.state is State.SENDING
        if message is None or (is_again and not sender.safe_twice):
            self._give_up(entry, "an earlier run ended while sending it")
            return
        remote = self._find_remote(entry, message)
        entry = self._record.change(entry, state=State.SENDING, tries=entry.tries + 1, at=self._at)
        try:
            name = self._budget.spend(lambda limit_s: sender.send(message, limit_s, remote), again=sender.safe_twice)
        except IncompleteError as error:
            self._notes.append(str(error))
            self._settle(entry, remote)
        except (BusyError, RefusedError) as error:
            self._fail(entry, error, State.SENDING if is_again else State.WAITING)
        except DeliveryError as error:
            if sender.safe_twice:
                self._fail(entry, error, State.SENDING)
            else:
                self._give_up(entry, str(error))
        else:
            self._settle(entry, name or remote)

    def _find_remote(self, entry: Entry, message: Message) -> str:
        """What the other side calls what the message is about, where it told that of the first one."""
        keys = (opening_of(message.incident),) if message.incident else entry.marks
        return next((other.remote for other in self._record if other.key in keys and other.remote), "")

    def _settle(self, entry: Entry, remote: str) -> None:
        self._sent += 1
        self._record.change(entry, state=State.SENT, why="", remote=remote, message=None)
        for other in self._record:
            if other.state is State.WAITING and other.key in entry.marks:
                self._record.change(other, state=State.SENT, why=f"told by {entry.key}", message=None)

    def _fail(self, entry: Entry, error: DashboardError, state: State) -> None:
        self._failures += 1
        self._fault = str(error)
        self._record.change(entry, state=state, why=str(error))

    def _give_up(self, entry: Entry, why: str) -> None:
        self._notes.append(f"unknown whether {entry.key} was delivered ({why}); it is not sent again")
        self._record.change(entry, state=State.GIVEN_UP, why=why, message=None)

    def report(self, notes: Sequence[str], until: str) -> Told:
        """How it went."""
        entries = list(self._record)
        waiting = [entry for entry in entries if entry.state in (State.WAITING, State.SENDING)]
        state = RouteState(
            self._route.name,
            self._route.kind,
            told=max((entry.at for entry in entries if entry.state is State.SENT), default=""),
            waiting=len(waiting),
            held=sum(entry.held or self._is_held(entry) for entry in waiting),
            until=until,
            fault=self._fault,
            discussions=self._list_discussions(entries),
        )
        return Told(self._sent, state, (*notes, *self._notes))

    def _list_discussions(self, entries: Sequence[Entry]) -> dict[str, str]:
        if self._route.kind is not RouteKind.GITHUB:
            return {}
        numbers = {incident_of(entry.key): entry.remote for entry in entries if entry.remote}
        return {incident: format_address(self._route, number) for incident, number in numbers.items() if incident}
