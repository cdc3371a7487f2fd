"""Routes of a home told together, each what it has not been told; and how they stand after that."""

from __future__ import annotations

import contextlib
import datetime
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.dashboard_info.home_secrets import find_secrets_of_home
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents.ledger import Ledger
from tvmdash.notify.config import Route, RouteKind, Routing, read_routing
from tvmdash.notify.delivery import Delivery, Due, Outbox, hold
from tvmdash.notify.errors import Budget
from tvmdash.notify.message import OUTBOX_FILE, Entry, State, incident_of
from tvmdash.notify.plan import Situation, make_plan
from tvmdash.notify.senders import Sender
from tvmdash.notify.senders.apprise import open_apprise
from tvmdash.notify.senders.github import format_address, open_issues
from tvmdash.notify.senders.mail import open_mail
from tvmdash.notify.senders.slack import open_channel
from tvmdash.notify.senders.webhook import open_webhook
from tvmdash.notify.slack_history import read_threads
from tvmdash.notify.state import SUBSYSTEM, RouteState, RouteStates, write_states
from tvmdash.notify.token import find_secrets
from tvmdash.verdict.account import Account, NightSeverity, read_account

SENDERS: Mapping[RouteKind, Callable[[Route, Path], Sender]] = {
    RouteKind.EMAIL: open_mail,
    RouteKind.WEBHOOK: open_webhook,
    RouteKind.GITHUB: open_issues,
    RouteKind.APPRISE: open_apprise,
    RouteKind.SLACK: open_channel,
}
"""Constructors of the senders."""


@dataclass(frozen=True)
class Told:
    """The outcome of telling one route; told: the marks of all that it ever told."""

    sent: int
    state: RouteState
    notes: tuple[str, ...] = ()
    told: frozenset[str] = frozenset()


def tell_routes(home: Home, night: str, moment: datetime.datetime | None = None) -> list[Told]:
    """Tell every route what it has not been told up to that night; DashboardError where the config has a fault.

    What goes wrong with a route is in what is returned, and raises nothing.
    """
    routing = read_routing(home)
    routes = [route for route in routing.routes.values() if route.kind is not RouteKind.SLACK]
    output = home.output(SUBSYSTEM)
    ledger, account = incident_file.read_ledger(home), _read_account(home, night)
    at = moment or common.utc_now()

    def tell(route: Route) -> Told:
        outbox = Outbox(output / f"{route.name}.json", night)
        now = Situation(route, routing, ledger, account, night, str(home.root), output, outbox, told=outbox.told)
        return _tell(now, home, at)

    # Each may take its whole budget, and none waits for another.
    with hold(output), ThreadPoolExecutor(max_workers=max(1, len(routes))) as pool:
        told = list(pool.map(lambda route: _guard(route, tell), routes))
        write_states(output, RouteStates(night, tuple(each.state for each in told)))
    return told


def tell_channels(
    home: Home, night: str, ledger: Ledger, routing: Routing, own: Route | None, threads: int
) -> list[Told]:
    """Tell incidents in threads of Slack: in stat_alerts' `own` channel, and in those of routes of kind slack.

    threads: how many new incidents of a night get one each; all others of that night share one.
    """
    output = home.output("stat_alerts")
    routes = [route for route in routing.routes.values() if route.kind is RouteKind.SLACK]
    nothing = Account(NightSeverity.UNKNOWN, "", (), "", is_whole=False, level=None)  # no thread tells a night

    def tell(route: Route) -> Told:
        secrets = find_secrets(route.secret_file, home.root)
        if secrets is None or not secrets.bot_token:
            remedy = "Put the app's Bot User OAuth Token into it; a webhook cannot post threads."
            raise DashboardError("no bot token found.", place=route.secret_file, remedy=remedy)
        folder = output / "channels" / route.name if route.name else output
        folder.mkdir(parents=True, exist_ok=True)
        outbox = Outbox(folder / OUTBOX_FILE, night, functools.partial(read_threads, folder / "threads", ledger, night))
        now = Situation(
            route,
            routing,
            ledger,
            nothing,
            night,
            str(home.root),
            folder,
            outbox,
            main=own is not None,
            threads=threads,
            told=outbox.told,
        )
        return _tell(now, home, common.utc_now())

    with hold(output):
        return [_guard(route, tell) for route in ([own] if own else []) + routes]


def _guard(route: Route, tell: Callable[[Route], Told]) -> Told:
    try:
        return tell(route)
    except DashboardError as error:
        return Told(0, RouteState(route.name or route.kind, route.kind, fault=str(error)))


def _tell(now: Situation, home: Home, moment: datetime.datetime) -> Told:
    plan = make_plan(now)
    return send_due(now.route, plan.due, now.outbox, home, moment, now.night, plan.hushed)


def send_due(
    route: Route,
    due: Sequence[Due],
    outbox: Outbox,
    home: Home,
    moment: datetime.datetime,
    night: str,
    hushed: tuple[str, ...] = (),
) -> Told:
    """Send these, and of what was not taken before what still counts."""
    end = route.quiet.find_end(moment) if route.quiet else None
    until = f"{end:%H:%M} {end.tzname()}" if end is not None else ""
    sender, fault = None, ""
    try:
        sender = SENDERS[route.kind](route, home.root)
    except DashboardError as error:
        fault = str(error)
    known, at = find_secrets_of_home(home), f"{moment:%Y-%m-%dT%H:%M:%SZ}"
    work = Delivery(sender, outbox, night, at, Budget(route.seconds), until, route.wake, known, fault=fault)
    work.tell(due, hushed)
    return _report(route, work)


def _report(route: Route, work: Delivery) -> Told:
    entries = list(work.outbox)
    waiting = [entry for entry in entries if entry.state in (State.WAITING, State.SENDING)]
    state = RouteState(
        route.name or route.kind,
        route.kind,
        told=max((entry.at for entry in entries if entry.state is State.SENT), default=""),
        waiting=len(waiting),
        held=sum(entry.held or work.is_held(entry) for entry in waiting),
        until=work.until,
        fault=work.fault,
        discussions=_list_discussions(route, entries),
    )
    return Told(work.sent, state, tuple(work.notes), work.outbox.told)


def _list_discussions(route: Route, entries: Sequence[Entry]) -> dict[str, str]:
    if route.kind is not RouteKind.GITHUB:
        return {}
    numbers = {incident_of(entry.key): entry.remote for entry in entries if entry.remote}
    return {incident: format_address(route, number) for incident, number in numbers.items() if incident}


def _read_account(home: Home, night: str) -> Account:
    record = None
    with contextlib.suppress(DashboardError):  # the account says that it cannot be read
        record = home.read_night(night)
    return read_account(home, night, record)
