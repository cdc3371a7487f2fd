"""The states of the routes after a night: routes.json of each subsystem that serves some."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

ROUTES_FILE, IN_SLACK_FILE = "routes.json", "in_slack.json"
SUBSYSTEM, THREADS = "routes", "stat_alerts"
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class RouteState:
    """A route. told: when it last took something (ISO 8601 UTC), "" where it never did.

    waiting: how many messages have yet to be sent, of which `held` wait for the end of its quiet hours at `until` (as
    in 07:00 CET). fault: why the rest was not sent, "" where the route works. discussions: where people talk of an
    incident, by its ID.
    """

    name: str
    kind: str
    told: str = ""
    waiting: int = 0
    held: int = 0
    until: str = ""
    fault: str = ""
    discussions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RouteStates:
    """The routes as they were after the night `night` was told."""

    night: Stamp
    routes: tuple[RouteState, ...] = ()


@dataclass(frozen=True)
class InSlack:
    """A subsystem's own message in Slack about the night `night`, in place of its report there.

    `headline`, and `details` below it. words: all of it, said where there is no headline. page: the page of the
    website that has all of it.
    """

    night: Stamp
    words: str = ""
    headline: str = ""
    details: str = ""
    page: str = ""


def write_states(output: Path, states: RouteStates) -> None:
    """Leave them in a subsystem's output; nothing where there are none."""
    if not states.routes:
        (output / ROUTES_FILE).unlink(missing_ok=True)
        return
    common.write_json(output / ROUTES_FILE, {"schema_version": 1, **structured.to_json(states)})


def read_states(home: Home) -> Iterator[RouteState]:
    """Yield those of all routes of the home; of a damaged file nothing."""
    for subsystem in (THREADS, SUBSYSTEM):
        with contextlib.suppress(DashboardError):
            states = structured.read(RouteStates, home.output(subsystem) / ROUTES_FILE, max_bytes=_MAX_BYTES)
            yield from states.routes if states else ()


def format_held(state: RouteState) -> str:
    return (
        f"{state.held} message{' waits' if state.held == 1 else 's wait'} for {state.until}, the end of its quiet hours"
    )


def format_fault(state: RouteState) -> str:
    """Describe the route's fault in a sentence; "" without one."""
    if not state.fault:
        return ""
    failing = state.waiting - state.held
    waits = f" {failing} message{'' if failing == 1 else 's'} will be tried again the next night." if failing else ""
    return f"Route {state.name} ({state.kind}) does not work: {state.fault.rstrip('.')}.{waits}"
