"""The machines that measured: what is known of the newest, what changed from night to night, tonight's telemetry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from files import graphs
from files.graphs import SiteGraph
from render import page as pages
from views.context import SiteContext

from tvmdash.dashboard_info import host_of
from tvmdash.dashboard_info.pages import TelemetryRun
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import MACHINE
from tvmdash.machine.identity import format_change
from tvmdash.text import elide, format_bytes, format_list

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
    """The differences of a night from the one before that is known."""

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
    """List all machines of the nights; the machine that was seen last comes first."""
    stamps_of: dict[str, list[str]] = {}
    for stamp, names in machines.items():
        for name in names:
            stamps_of.setdefault(name, []).append(stamp)
    rows = [MeasuredBy(name, stamps[0], stamps[-1], len(stamps)) for name, stamps in stamps_of.items()]
    return sorted(rows, key=lambda row: (row.last, row.nights), reverse=True)


def write_machines(context: SiteContext, new: Path) -> None:
    nights = _nights(context)
    newest = next(iter(reversed(list(nights.items()))), None)
    runs = context.telemetry.runs
    text = pages.render(
        "machines/machines.html",
        context.frame("machines"),
        newest=newest[0] if newest else None,
        facts=list(format_facts(newest[1])) if newest else [],
        known=len(nights),
        first=next(iter(nights), None),
        identity=context.home.machine(),
        exchanged=[
            (night.stamp, format_change(change)) for night in context.last_nights for change in night.machine_changes
        ],
        changes=list(_changes(nights))[: -_MOST_CHANGES - 1 : -1],
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


def _nights(context: SiteContext) -> dict[str, Facts]:
    """Read the facts by night, oldest first, as the home's own machine has them where it measures."""
    measured = context.home.experiments_with_data()
    return context.read_machine([name for name in measured if not host_of(name)] or measured)


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
    """Yield a line for each that says something."""
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
