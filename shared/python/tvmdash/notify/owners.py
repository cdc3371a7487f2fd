"""Whose an incident is."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from tvmdash.dashboard_info import VARIANT_SIGN, experiment_of, host_of
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import MACHINE, Incident
from tvmdash.notify.config import Owner, Route, RouteKind, Routing
from tvmdash.records.metrics import CHANGED
from tvmdash.series.naming import strip_host
from tvmdash.verdict import Level

_LOCAL, _ALL = "local", "*"


def find_owners(owners: Sequence[Owner], incident: Incident) -> list[Owner]:
    """Those of at least one of its series; of an incident without series, those of all that its machine measures."""
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
