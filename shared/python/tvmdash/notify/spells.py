"""That nights do not run, told once on every route that tells all; and that they run again."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.common import structured
from tvmdash.common.files import lock
from tvmdash.common.structured import Stamp
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.notify.config import Route, RouteKind, Routing
from tvmdash.notify.delivery import Due, Outbox, make_identity
from tvmdash.notify.message import Item, Message, Occasion
from tvmdash.notify.service import Told, send_due
from tvmdash.notify.state import SUBSYSTEM as ROUTES
from tvmdash.notify.state import THREADS, RouteState
from tvmdash.notify.token import DEFAULT_FILE, find_secrets
from tvmdash.verdict import Level

_FOLDER, _CURRENT, _LOCK, _LOCK_S = "watch", "current.json", ".watch.lock", 30.0


@dataclass(frozen=True)
class Spell:
    """Nights that did not run: `night` should have, and none is complete since `last` ("" where none ever was).

    is_over: nights run again, as that of `night`. items: what is told of it.
    """

    night: str
    last: str
    title: str
    items: tuple[Item, ...]
    is_over: bool = False

    @property
    def first_key(self) -> str:
        """The key of the message that tells its begin."""
        return f"quiet since {self.last or 'ever'}"

    @property
    def key(self) -> str:
        """The key of its message."""
        return f"{self.first_key} over" if self.is_over else self.first_key


@dataclass(frozen=True)
class _Current:
    """The spell that was told last, kept until its end is told."""

    night: Stamp
    last: str


def tell_quiet(home: Home, routing: Routing, spell: Spell, moment: datetime.datetime) -> tuple[bool, list[Told]]:
    """Tell every route that tells all of this spell, each once; whether it is a new one, and how the telling went."""
    with _hold(home) as folder:
        before = _read_current(folder)
        is_new = before is None or before.last != spell.last
        if is_new:
            current = _Current(spell.night, spell.last)
            common.write_json(folder / _CURRENT, {"schema_version": 1, **structured.to_json(current)})
        return is_new, [_tell(home, route, spell, moment) for route in list_watching(home, routing)]


def tell_end(
    home: Home, routing: Routing, make_end: Callable[[str], Spell], moment: datetime.datetime
) -> tuple[bool, list[Told]]:
    """Tell the end of the spell that was told last, where its begin was told; whether there was one.

    make_end: is given the night since which none had been complete.
    """
    with _hold(home) as folder:
        before = _read_current(folder)
        if before is None:
            return False, []
        spell = make_end(before.last)
        told = [_tell(home, route, spell, moment) for route in list_watching(home, routing)]
        # Until every route has told the end, the next `watch` tells it on those that have not.
        if not any(each.state.waiting or each.state.fault for each in told):
            (folder / _CURRENT).unlink()
        return True, told


@contextlib.contextmanager
def _hold(home: Home) -> Iterator[Path]:
    folder = home.output(ROUTES) / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    held = lock.take(folder / _LOCK, within_s=_LOCK_S)
    if held is None:
        raise DashboardError("another `watch` is sending. Try again when it has finished.", place=folder)
    with held:
        yield folder


def _read_current(folder: Path) -> _Current | None:
    """Read it; None where nights run, or what was kept of them is damaged: the spell counts as new then."""
    try:
        current = structured.read(_Current, folder / _CURRENT, max_bytes=1 << 16)
    except DashboardError:
        return None
    return None if current is not None and current.last and not common.is_stamp(current.last) else current


def list_watching(home: Home, routing: Routing) -> list[Route]:
    """The routes that no owner names, or all where each is an owner's; and the Slack channel of stat_alerts."""
    named = {name for owner in routing.owners for name in owner.routes}
    routes = [route for name, route in routing.routes.items() if name not in named] or list(routing.routes.values())
    channels = {route.channel for route in routes if route.kind is RouteKind.SLACK}
    own = _find_channel(home)
    return [*routes, own] if own and own.channel not in channels else routes


def _find_channel(home: Home) -> Route | None:
    """The channel in which stat_alerts speaks, where it does."""
    try:
        value = common.read_json(home.config("subsystem", THREADS) / "config.json")
    except DashboardError:
        return None
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    channel, file = str(fields.get("channel") or ""), str(fields.get("token_file") or DEFAULT_FILE)
    if fields.get("active") is not True or not channel:
        return None
    return Route(THREADS, RouteKind.SLACK, channel=channel, secret_file=file)


def _find_file(home: Home, route: Route) -> Path:
    return home.output(ROUTES) / _FOLDER / f"{route.name}.json"


def _tell(home: Home, route: Route, spell: Spell, moment: datetime.datetime) -> Told:
    try:
        if route.name == THREADS and find_secrets(route.secret_file, home.root) is None:
            return Told(0, RouteState(route.name, route.kind))  # it speaks where there is a token
        outbox = Outbox(_find_file(home, route), spell.night)
        is_due = spell.key not in outbox.told and (not spell.is_over or spell.first_key in outbox.told)
        due = (_make_due(home, route, spell),) if is_due else ()
        return send_due(route, due, outbox, home, moment, spell.night)
    except DashboardError as error:
        return Told(0, RouteState(route.name, route.kind, fault=str(error)))


def _make_due(home: Home, route: Route, spell: Spell) -> Due:
    output = home.output(ROUTES)
    message = Message(
        id=make_identity(output, route.name, spell.key),
        event=Occasion.RUNS_AGAIN if spell.is_over else Occasion.QUIET,
        night=spell.night,
        title=spell.title,
        items=spell.items,
        level=None if spell.is_over else Level.NO_DATA,
        first=make_identity(output, route.name, spell.first_key) if spell.is_over else "",
        home=str(home.root),
    )
    return Due(spell.key, message, tuple(dict.fromkeys((spell.key, spell.first_key))), frozenset({Level.NO_DATA}))
