"""All routes of a home told together, and how they stand after that."""

from __future__ import annotations

import contextlib
import datetime
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tvmdash import common
from tvmdash.account import Account, read_account
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files import lock
from tvmdash.incidents import file as incident_file
from tvmdash.routes.config import Route, RouteKind, Routing, read_routing
from tvmdash.routes.deliver import Told, tell_route
from tvmdash.routes.plan import Situation
from tvmdash.routes.record import Record
from tvmdash.routes.state import SUBSYSTEM, RouteState, RouteStates, write_states

_LOCK = ".routes.lock"
_LOCK_S = 10.0


def tell_routes(home: Home, night: str, moment: datetime.datetime | None = None) -> list[Told]:
    """Tell every route what it has not been told up to that night; DashboardError where the config has a fault.

    What goes wrong with a route is in what is returned, and raises nothing.
    """
    routing = read_routing(home)
    routes = [route for route in routing.routes.values() if route.kind is not RouteKind.SLACK]
    output = home.output(SUBSYSTEM)
    output.mkdir(parents=True, exist_ok=True)
    held = lock.take(output / _LOCK, within_s=_LOCK_S)
    if held is None:
        raise DashboardError("another run is sending on the routes. Try again when it has finished.", place=output)
    with held:
        told = _tell_all(home, output, night, routing, routes, moment or common.utc_now())
        write_states(output, RouteStates(night, tuple(each.state for each in told)))
    return told


def _tell_all(
    home: Home, output: Path, night: str, routing: Routing, routes: list[Route], moment: datetime.datetime
) -> list[Told]:
    ledger = incident_file.read_ledger(home)
    account = _read_account(home, night)

    def tell(route: Route) -> Told:
        try:
            record = Record(output / f"{route.name}.json", night)
            now = Situation(route, routing, ledger, account, night, str(home.root), output, record.since)
            return tell_route(now, record, home, moment)
        except DashboardError as error:
            return Told(0, RouteState(route.name, route.kind, fault=str(error)))

    with ThreadPoolExecutor(max_workers=max(1, len(routes))) as pool:
        return list(pool.map(tell, routes))


def _read_account(home: Home, night: str) -> Account:
    record = None
    with contextlib.suppress(DashboardError):  # the account says that it cannot be read
        record = home.read_night(night)
    return read_account(home, night, record)
