"""Details of an incident that opens: what else changed beside TVM, and which functions of generated code moved."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from judging.table import Table
from tvmdash import common, records
from tvmdash.common import structured
from tvmdash.dashboard_info import DEPENDENCIES, Home
from tvmdash.errors import DashboardError
from tvmdash.incidents.events import Moved, MovedFunction, Opened
from tvmdash.incidents.ledger import CHANGE, OPENED, Event
from tvmdash.machine import hardware
from tvmdash.records.functions import FunctionNumber
from tvmdash.series import naming
from tvmdash.text import elide

_MACHINE = (
    *("system", "distribution", "libc", "python", "cpu_microcode", *hardware.STATE),
    *("cores", "memory_bytes", "gpus", "gpu_driver"),
)
_FACTS = {"ffi_version": "tvm-ffi", **DEPENDENCIES, "proved_with_numpy": "numpy"}
"""Facts of an artifact on which TVM stands, and what people call them."""


def with_notes(event: Event, home: Home, table: Table) -> Event:
    """Add what else changed at that night to an event that opens an incident about series."""
    if event.event != OPENED or event.data["kind"] != CHANGE or not event.data["moved"]:
        return event
    first = event.data["moved"][0]["series"]
    experiment = next(row.experiment for row in table.rows if row.key == first)
    notes = notes_of(home, experiment, event.data["after"], event.data["begin"])
    return replace(event, data={**event.data, "notes": notes})


def notes_of(home: Home, experiment: str, before: str, after: str) -> list[str]:
    """Write a sentence on each difference between two nights' data files beside TVM; none where one is not readable."""
    try:
        first, second = (common.read_json(home.data_file(experiment, stamp)) for stamp in (before, after))
        return list(_differences(first, second))
    except (DashboardError, AttributeError, TypeError):  # foreign data says nothing of itself
        return []


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[str]:
    then, now = first.get("night", {}), second.get("night", {})
    if then.get("fingerprint") != now.get("fingerprint"):
        changed = sorted(
            key for key, value in now.get("config", {}).items() if then.get("config", {}).get(key) != value
        )
        what = f" ({', '.join(changed)} of its config)" if changed else ""
        yield f"the experiment's own code or config changed{what}"
    pairs = [
        *((name, _machine(first).get(name), _machine(second).get(name)) for name in _MACHINE),
        *((shown, _facts(then).get(name), _facts(now).get(name)) for name, shown in _FACTS.items()),
    ]
    for name, old, new in pairs:
        if old != new and old is not None and new is not None:
            yield f"{name}: {elide(str(old), 40)} → {elide(str(new), 40)}"


def _machine(data: Mapping[str, Any]) -> Mapping[str, Any]:
    machine: Mapping[str, Any] = data.get("environment", {}).get("machine", {})
    return machine


def _facts(night: Mapping[str, Any]) -> Mapping[str, Any]:
    facts: Mapping[str, Any] = night.get("artifact", {}).get("facts", {})
    return facts


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
