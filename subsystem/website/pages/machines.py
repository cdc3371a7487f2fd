"""The machines that measured: what is known of the newest, what changed from night to night, tonight's telemetry.

`machines.json` in the site keeps the facts of each night that was ever read, so that a data file is read once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from files import graphs
from files.files import write_data
from files.graphs import SiteGraph
from render import page as pages
from views.context import SiteContext
from views.strip import machine_changes

from tvmdash import common
from tvmdash.dashboard_info import Home, host_of
from tvmdash.errors import DashboardError
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import MACHINE
from tvmdash.machine.identity import format_change
from tvmdash.pages import TelemetryRun
from tvmdash.text import elide, format_bytes, format_list

FACTS_FILE = "machines.json"
SCHEMA_VERSION = 1
_BYTES = frozenset({"memory_bytes"})
_LONG = 160
_MOST_CHANGES = 50

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Fact:
    """One line about a machine."""

    name: str
    words: str


@dataclass(frozen=True)
class Change:
    """What differed on a night from the one before that is known."""

    stamp: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class RunView:
    """The machine during one run of tonight."""

    run: TelemetryRun
    graph: SiteGraph | None


@dataclass(frozen=True)
class MeasuredBy:
    """A machine as the series name it, with its first and last night, and on how many it measured."""

    name: str
    first: str
    last: str
    nights: int


def measured_by(machines: Mapping[str, Sequence[str]]) -> list[MeasuredBy]:
    """All machines of the nights, oldest first; the machine that was seen last comes first."""
    stamps_of: dict[str, list[str]] = {}
    for stamp, names in machines.items():
        for name in names:
            stamps_of.setdefault(name, []).append(stamp)
    rows = [MeasuredBy(name, stamps[0], stamps[-1], len(stamps)) for name, stamps in stamps_of.items()]
    return sorted(rows, key=lambda row: (row.last, row.nights), reverse=True)


def write_machines(context: SiteContext, new: Path) -> None:
    """Write machines.html, and what the next publish need not read again."""
    nights = _nights(context)
    newest = next(iter(reversed(list(nights.items()))), None)
    runs = context.telemetry.runs
    text = pages.render(
        "machines.html",
        context.frame("machines"),
        newest=newest[0] if newest else None,
        facts=list(format_facts(newest[1])) if newest else [],
        known=len(nights),
        first=next(iter(nights), None),
        identity=context.home.machine(),
        exchanged=[
            (night.stamp, format_change(change)) for night in context.last_nights for change in night.machine_changes
        ],
        changes=list(_changes(nights))[::-1],
        measured_by=measured_by(context.machines),
        incidents=[
            (incident, format_headline(incident)) for incident in context.alerts.incidents if incident.kind == MACHINE
        ],
        annotations=[annotation for annotation in context.alerts.annotations if annotation.kind == "machine"],
        telemetry_stamp=context.telemetry.stamp,
        tonight=context.tonight.stamp,
        runs=[
            RunView(run, graphs.take_picture(context.telemetry_file(run.graph.file), "telemetry", new, context.old))
            for run in runs
        ],
        faults=context.faults["Telemetry"],
    )
    (new / "machines.html").write_text(text, encoding="utf-8")
    _keep(new / FACTS_FILE, nights)


def _nights(context: SiteContext) -> dict[str, Facts]:
    """The facts by night, oldest first: those known already, and those of the last nights that are not."""
    known = _read(context.old / FACTS_FILE)
    measured = context.home.experiments_with_data()
    names = [name for name in measured if not host_of(name)] or measured
    for stamp in _worth_reading(context):
        if stamp not in known:
            facts = read_facts(context.home, names, stamp)
            if facts:
                known[stamp] = facts
    return dict(sorted(known.items()))


def _worth_reading(context: SiteContext) -> list[str]:
    """The last nights, and both sides of each change of machine that the store knows."""
    nights = list(context.own_machines)
    changed = sorted(machine_changes(context.own_machines))[-_MOST_CHANGES:]
    before = [nights[nights.index(stamp) - 1] for stamp in changed]
    return sorted({*context.shown_stamps, *changed, *before})


def read_facts(home: Home, names: Sequence[str], stamp: str) -> Facts | None:
    """What the first readable data file of that night says of its machine."""
    for name in names:
        path = home.data_file(name, stamp)
        if path.is_file():
            with contextlib.suppress(DashboardError, KeyError, TypeError):
                facts = common.read_json(path)["environment"]["machine"]
                if isinstance(facts, dict):
                    return facts
    return None


def _read(path: Path) -> dict[str, Facts]:
    with contextlib.suppress(DashboardError, KeyError, TypeError, AttributeError):
        value = common.read_json(path)
        if value["schema_version"] == SCHEMA_VERSION:
            return {stamp: dict(value["machines"][digest]) for stamp, digest in value["nights"].items()}
    return {}


def _keep(path: Path, nights: Mapping[str, Facts]) -> None:
    machines: dict[str, Facts] = {}
    digests = {}
    for stamp, facts in nights.items():
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
        machines[digest] = facts
        digests[stamp] = digest
    value = {"schema_version": SCHEMA_VERSION, "machines": machines, "nights": digests}
    write_data(str(path), value)


def _changes(nights: Mapping[str, Facts]) -> Iterator[Change]:
    before: Facts | None = None
    for stamp, facts in nights.items():
        if before is not None and facts != before:
            yield Change(stamp, tuple(_differences(before, facts)))
        before = facts


def _differences(before: Facts, after: Facts) -> Iterator[Fact]:
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if isinstance(was, list) and isinstance(now, list):
            gone = [f"-{item}" for item in was if item not in now]
            come = [f"+{item}" for item in now if item not in was]
            yield Fact(_name(name), format_list([*come, *gone], 12) or "another order")
        else:
            yield Fact(_name(name), f"{_format_fact(name, was)} → {_format_fact(name, now)}")


def format_facts(facts: Facts) -> Iterator[Fact]:
    """A line for each that says something."""
    for name, value in facts.items():
        if value not in (None, "", {}, []):
            yield Fact(_name(name), _format_fact(name, value))


def _name(name: str) -> str:
    return str(name).replace("_", " ")


def _format_fact(name: str, value: object) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _BYTES and isinstance(value, (int, float)):
        return format_bytes(value)
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return elide(str(value), _LONG)
