"""`python3 -m dashboard routes HOME`: who is told what; a test through each route; what waits, sent now."""

from __future__ import annotations

import argparse
import datetime
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.notify.channel import send_test
from tvmdash.notify.config import Owner, Route, RouteKind, Routing, read_routing
from tvmdash.notify.errors import Budget
from tvmdash.notify.message import Item, Message, Occasion
from tvmdash.notify.service import SENDERS, Told, tell_routes
from tvmdash.notify.state import RouteState, format_fault, format_held, read_states
from tvmdash.notify.token import find_secrets
from tvmdash.text import format_list, plain_output

_OK, _FAILED, _USAGE = 0, 1, 2
_TEST_S = 30.0


@plain_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 where a route failed, 2 where that is not what can be asked."""
    parsed = _make_parser().parse_args(arguments)
    home = Home(parsed.home.expanduser().resolve())
    try:
        routing = read_routing(home)
        if not routing.routes:
            raise DashboardError("no routes configured.", place=home.config_file, remedy="See docs/how-to/routes.md.")
        if parsed.test is not None:
            return _test(home, _choose(routing, parsed.test, home))
        return _send(home) if parsed.send else _show(home, routing)
    except DashboardError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m dashboard routes", description="Show, test and run the routes for messages."
    )
    parser.add_argument("home", type=Path, metavar="HOME")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--test", nargs="*", metavar="ROUTE",
        help="send a test message through all routes, or only these, without pinging anyone (on GitHub: an issue that "
             "is closed at once)",
    )  # fmt: skip
    what.add_argument(
        "--send", action="store_true", help="send held messages now, e.g. after quiet hours; for use in cron"
    )
    return parser


def _show(home: Home, routing: Routing) -> int:
    """The routes with what they tell and how they stand, then the owners."""
    states = {state.name: state for state in read_states(home)}
    lines = [line for route in routing.routes.values() for line in _describe(route, routing, states.get(route.name))]
    lines += ["", *(f"owners[{at}]: {_describe_owner(owner)}" for at, owner in enumerate(routing.owners))]
    sys.stdout.write("\n".join(lines).rstrip() + "\n")
    return _FAILED if any(state.fault for state in states.values()) else _OK


def _describe(route: Route, routing: Routing, state: RouteState | None) -> Iterator[str]:
    named = [owner.name or f"owners[{at}]" for at, owner in enumerate(routing.owners) if route.name in owner.routes]
    whose = f"what belongs to {format_list(named, 5)}" if named else "everything"
    modes = (("at once", route.at_once), ("in a digest", route.digest))
    told = "; ".join(f"{mode} {format_list(sorted(levels), 8)}" for mode, levels in modes if levels)
    yield f"{route.name} ({route.kind}) tells {whose}: {told}."
    if route.quiet:
        wake = f", but for {format_list(sorted(route.wake), 8)}" if route.wake else ""
        yield f"  Quiet from {route.quiet.begin:%H:%M} to {route.quiet.end:%H:%M} {route.quiet.zone}{wake}."
    if state is None:
        yield "  Nothing sent on it yet."
        return
    if state.told:
        yield f"  Last used on {state.told}."
    if state.held:
        yield f"  {format_held(state)}."
    if state.fault:
        yield f"  {format_fault(state)}"


def _describe_owner(owner: Owner) -> str:
    globs = ((name, getattr(owner, name)) for name in ("experiment", "series", "host"))
    whose = ", ".join(f"{name} {glob}" for name, glob in globs if glob != "*") or "everything"
    people = format_list([*owner.slack, *owner.email, *owner.github], 8) or "nobody"
    return f"{f'{owner.name}: ' * bool(owner.name)}{whose}; a regression pings {people}."


def _choose(routing: Routing, names: Sequence[str], home: Home) -> list[Route]:
    unknown = [name for name in names if name not in routing.routes]
    if unknown:
        known = format_list(list(routing.routes), 20)
        raise DashboardError(f"no route {unknown[0]!r} in $.routes. Routes: {known}.", place=home.config_file)
    return [route for name, route in routing.routes.items() if not names or name in names]


def _test(home: Home, routes: Sequence[Route]) -> int:
    code = _OK
    for route in routes:
        try:
            if route.kind is RouteKind.SLACK:
                sys.stdout.write(f"{route.name}: {_test_slack(home, route)}\n")
                continue
            sender = SENDERS[route.kind](route, home.root)
            message = _make_test(route, home)
            Budget(_TEST_S).spend(lambda limit_s: sender.send(message, limit_s, ""), again=False)  # noqa: B023 - called here
            sys.stdout.write(f"{route.name}: test message accepted.{_say_where(route)}\n")
        except DashboardError as error:
            code = _FAILED
            sys.stderr.write(f"{route.name}: {error}\n")
    return code


def _test_slack(home: Home, route: Route) -> str:
    secrets = find_secrets(route.secret_file, home.root)
    if secrets is None or not secrets.bot_token:
        raise DashboardError(
            "no bot token found.", place=route.secret_file, remedy="See docs/how-to/slack.md for the steps."
        )
    return send_test(secrets, route.channel)


def _say_where(route: Route) -> str:
    if route.kind is RouteKind.EMAIL:
        return f" Sent to {format_list(route.to or (route.sender,), 5)}."
    return ""


def _make_test(route: Route, home: Home) -> Message:
    lines = ("The dashboard can report changes here. This test was sent by hand and pings nobody.",)
    return Message(
        id=uuid.uuid4().hex,
        event=Occasion.TEST,
        night=common.stamp_of(common.utc_now()),
        title=f"Test of the route {route.name}",
        items=(Item("", lines),),
        people=() if route.to or route.kind is not RouteKind.EMAIL else (route.sender,),
        home=str(home.root),
    )


def _send(home: Home) -> int:
    """Tell the routes what waits, as of the last night."""
    stamps = home.night_stamps()
    if not stamps:
        raise DashboardError("no night has run yet.", place=home.root)
    told = tell_routes(home, stamps[-1], datetime.datetime.now(datetime.UTC))
    sys.stdout.write("\n".join(summarize(told)) + "\n")
    return _FAILED if any(each.state.fault for each in told) else _OK


def summarize(told: Sequence[Told]) -> list[str]:
    """A line for each route: what it took, what is wrong, what waits."""
    return [_summarize(each) for each in told]


def _summarize(told: Told) -> str:
    state = told.state
    sentences = [f"{told.sent} message{'' if told.sent == 1 else 's'} sent"] if told.sent else []
    sentences += [format_held(state)] if state.held else []
    sentences += list(told.notes)
    text = "; ".join(sentences)
    if state.fault:
        return " ".join(filter(None, (format_fault(state), f"Besides: {text}." if text else "")))
    return f"{state.name}: {text or 'nothing to tell'}."
