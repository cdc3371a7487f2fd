"""Functions of generated code that moved in the exact numbers of an incident."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from judging.table import Table
from tvmdash import records
from tvmdash.common import structured
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved, MovedFunction, Opened
from tvmdash.incidents.ledger import OPENED, Event
from tvmdash.records.functions import FunctionNumber
from tvmdash.series import naming

MOST = 20
"""Functions named of one number."""
Functions = Mapping[str, FunctionNumber]


def name_functions(event: Event, home: Home, table: Table) -> Event:
    """Name the functions that moved in each exact number of an event that opens an incident about any."""
    if event.event != OPENED:
        return event
    opened = event.read(Opened)
    if not any(moved.is_exact for moved in opened.moved):
        return event
    experiments = {row.key: row.experiment for row in table.rows}
    of = {experiments[moved.series] for moved in opened.moved if moved.is_exact}
    nights = {stamp: dict(_read(home, of, stamp)) for stamp in (opened.after, opened.begin)}
    moved = tuple(_with_functions(moved, nights[opened.after], nights[opened.begin]) for moved in opened.moved)
    return replace(event, data=structured.to_json(replace(opened, moved=moved)))


def _read(home: Home, experiments: set[str], stamp: str) -> Iterator[tuple[tuple[str, str], Functions]]:
    """Yield by ID and unit of a series its functions on that night."""
    for experiment in sorted(experiments):
        with contextlib.suppress(DashboardError):  # told where it was read for the index
            for point in records.read_data(home.data_file(experiment, stamp), experiment).values():
                if point.functions:
                    yield (point.key.id, point.unit), point.functions


def _with_functions(
    moved: Moved, before: Mapping[tuple[str, str], Functions], after: Mapping[tuple[str, str], Functions]
) -> Moved:
    key = naming.id_of(moved.series), moved.unit
    then, now = before.get(key), after.get(key)
    if then is None or now is None:
        return moved
    changed = [name for name in then.keys() | now.keys() if then.get(name) != now.get(name)]
    functions = sorted((_describe(name, then, now) for name in changed), key=_order)
    return replace(moved, functions=tuple(functions[:MOST]), more_functions=max(0, len(functions) - MOST))


def _describe(name: str, then: Functions, now: Functions) -> MovedFunction:
    before, after = (known[name].value if name in known else None for known in (then, now))
    return MovedFunction(name, before, after)


def _order(function: MovedFunction) -> tuple[float, str]:
    return -abs((function.after or 0.0) - (function.before or 0.0)), function.name
