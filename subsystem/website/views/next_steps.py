"""The commands that come next for an incident, to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from tvmdash.dashboard_info import Home
from tvmdash.incidents.ledger import CHANGE, Incident
from tvmdash.incidents.next_step import PROGRAM, name_tvms
from views.series import SeriesView


@dataclass(frozen=True)
class Step:
    """A command, and what it is for."""

    purpose: str
    command: str


def list_steps(incident: Incident, series: SeriesView | None, home: Home) -> tuple[Step, ...]:
    """What can be asked about the incident; `series` is its worst that is still measured."""
    return tuple(_list_steps(incident, series, home))


def _list_steps(incident: Incident, series: SeriesView | None, home: Home) -> Iterator[Step]:
    before, after = name_tvms(incident, home)
    if series is not None and before and after and before != after and incident.kind == CHANGE:
        words = f"HOME {shlex.quote(series.experiment)} {shlex.quote(series.id)} --good {before} --bad {after}"
        yield Step("Find the commit", f"{PROGRAM} bisect {words} --incident {incident.id}")
        experiment = f"--experiments {shlex.quote(series.experiment)}"
        yield Step("Remeasure both now", f"{PROGRAM} compare HOME {before} {after} {experiment}")
        if after.startswith("git:"):
            yield Step("Try a fix", f"{PROGRAM} try HOME git:BRANCH --against {after} {experiment}")
    yield Step("See the evidence", f"{PROGRAM} explain HOME {incident.id}")
    if series is not None:
        receipt = shlex.quote(f"{series.experiment}/{series.last_stamp}")
        yield Step("Remeasure its last value", f"{PROGRAM} reproduce HOME {receipt} {shlex.quote(series.id)}")
    yield Step("Acknowledge it", f"{PROGRAM} incidents HOME ack {incident.id}")
    yield Step("Silence it for a week", f"{PROGRAM} incidents HOME silence {incident.id} --days 7")
