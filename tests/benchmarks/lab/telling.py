"""What was told in a home, read from the ledger's events alone: of which series, since when, how much, whose it was."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tests.benchmarks.lab.data import night_of
from tests.benchmarks.lab.world import World
from tvmdash import common
from tvmdash.incidents.events import Joined, Moved, Opened, Recovered
from tvmdash.incidents.ledger import CREEP, JOINED, OPENED, RECOVERED, Event


@dataclass(frozen=True)
class Telling:
    """One thing told on `night`: the rows' level changed after the night `after`, not later than `begin`.

    series: the key of the series, or of the fleet. effect, low, high: as fractions (units of its scatter for a signed
    number). worse: None where that is not said. blame: compiler, machine or unknown. is_whole: of all series of a fleet
    at once. is_back: a recovery.
    """

    series: str
    night: int
    after: int
    begin: int
    rows: tuple[int, ...]
    effect: float
    low: float | None = None
    high: float | None = None
    worse: bool | None = None
    blame: str = "unknown"
    is_whole: bool = False
    is_back: bool = False
    is_creep: bool = False
    relative: bool = True


def tellings(events: Iterable[Event], world: World, rows: Mapping[str, int]) -> Iterator[Telling]:
    """All that the events tell, in their order; `rows`: by the ID of a series."""
    opened: dict[str, Opened] = {}
    effects: dict[tuple[str, str], float] = {}
    for event in events:
        night = night_of(common.stamp_of(_moment(event.at)))
        if event.event == OPENED:
            opened[event.incident] = event.read(Opened)
            yield from _of_fleet(opened[event.incident], night, world)
        if event.event in {OPENED, JOINED}:
            moved = (event.read(Opened) if event.event == OPENED else event.read(Joined)).moved
            effects |= {(event.incident, series.series): series.effect for series in moved}
            yield from _of_moved(opened[event.incident], moved, night, rows)
        if event.event == RECOVERED:
            back = event.read(Recovered)
            for series in back.series:
                effect = -effects[event.incident, series]
                yield _back(opened[event.incident], series, effect, night_of(back.since), night, rows)


def _moment(at: str) -> datetime.datetime:
    return common.parse_stamp(at.replace("-", "").replace(":", ""))


def _of_moved(incident: Opened, moved: Iterable[Moved], night: int, rows: Mapping[str, int]) -> Iterator[Telling]:
    after, begin = night_of(incident.after), night_of(incident.begin)
    for series in moved:
        row = rows[series.series.partition("~")[0]]
        yield Telling(
            series.series, night, after, begin, (row,), series.effect, series.low, series.high, series.worse,
            incident.blame, is_creep=incident.kind == CREEP, relative=series.relative,
        )  # fmt: skip


def _of_fleet(incident: Opened, night: int, world: World) -> Iterator[Telling]:
    if incident.size is None:
        return
    name = incident.fleet.removeprefix("numbers of ")
    if incident.fleet_kind == "numbers":
        rows = [at for at, row in enumerate(world.rows) if row.experiment.name == name]
    else:
        is_time = incident.fleet_kind == "times"
        rows = [at for at, row in enumerate(world.rows) if row.number is None and world.is_time[at] == is_time]
    after, begin = night_of(incident.after), night_of(incident.begin)
    is_creep = incident.kind == CREEP
    yield Telling(
        incident.fleet, night, after, begin, tuple(rows), incident.size, blame=incident.blame, is_whole=True,
        is_creep=is_creep,
    )  # fmt: skip


def _back(incident: Opened, series: str, effect: float, since: int, night: int, rows: Mapping[str, int]) -> Telling:
    """A recovery tells a change the other way."""
    row = rows[series.partition("~")[0]]
    return Telling(series, night, since - 1, since, (row,), effect, blame=incident.blame, is_back=True)
