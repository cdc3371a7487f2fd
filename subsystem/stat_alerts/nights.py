"""Every night that has not been judged yet, in order, from the store and the detector's memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from judging import drift, exact_events, grouping, recovery
from judging import evidence as remeasured
from judging import memory as memories
from judging.details import name_functions, with_notes
from judging.judge import MOST_REPLAYED, FleetNight, Judged, Options, Screen, judge, scanned
from judging.memory import Memory
from judging.table import REACH, Table, read_table
from rerun import confirm as confirming
from rerun.confirm import Confirming

from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.incidents import file as incident_file
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents import replay
from tvmdash.incidents.ledger import DETECTOR, LEDGER_FILE, OPENED, Event, Ledger, iso_of
from tvmdash.judge.history.fleet.common import find_deviations
from tvmdash.judge.history.fleet.fleet import night_threshold, remove_common
from tvmdash.judge.history.series import SeriesState

_TABLE_REACH = max(REACH, drift.REACH) + 20
_log = logging.getLogger("stat_alerts")


@dataclass(frozen=True)
class Tonight:
    """The last night judged, its events, and the ledger with what people said as of now."""

    table: Table
    judged: Judged | None
    events: tuple[Event, ...]
    ledger: Ledger


def judge_pending(home: Home, output: Path, stamp: str, options: Options) -> Tonight:
    """Judge every night up to `stamp` that has not been; leave the ledger, the state and the decisions' inputs."""
    table, before = _begin(home, output, stamp, options)
    path = output / LEDGER_FILE
    written = incident_file.read(path)
    known = {event.key for event in written}
    after, judged = before, None
    events: list[Event] = []
    fresh: list[Event] = []
    previous = before
    screen = Screen(table, len(table.stamps) - 1, options.settings)
    view = _Past(written, iso_of(table.stamps[before.count])) if before.count < len(table.stamps) else None
    for night in range(before.count, len(table.stamps)):
        assert view is not None
        previous = after
        again = confirming.opened(
            home, output, table, night, tonight=table.stamps[night] == stamp, budget_s=options.confirm_s,
            off=options.confirm_off,
        )  # fmt: skip
        ledger = view.before(iso_of(table.stamps[night]))
        past = screen if night < screen.stop else None
        after, judged, events = one_night(table, night, after, ledger, options, again, past)
        events += exact_events.events_of(table, judged, ledger)
        events = [name_functions(with_notes(event, home, table), home, table) for event in events]
        view.add(events)
        fresh += [event for event in events if event.key not in known]
        _keep_inputs(output, table, judged, events, options)
    # the ledger first: killed in between, the next start finds its own events there and adds none twice
    incident_file.append(path, fresh)
    if judged is not None:
        memories.write(output, previous, after)
    return Tonight(table, judged, tuple(events), ledgers.fold(incident_file.read(path)))


class _Past:
    """The ledger as it stood before each night: what people said later does not change what was judged then."""

    def __init__(self, written: Sequence[Event], first: str) -> None:
        self._ledger = ledgers.fold(event for event in written if event.at < first)
        self._people = [event for event in written if event.at >= first and event.who != DETECTOR]

    def before(self, moment: str) -> Ledger:
        """Return the ledger at `moment`; each is asked for once, in order."""
        self.add([event for event in self._people if event.at <= moment])
        self._people = [event for event in self._people if event.at > moment]
        return self._ledger

    def add(self, events: Sequence[Event]) -> None:
        self._ledger = ledgers.fold(events, self._ledger)


def one_night(
    table: Table,
    night: int,
    memory: Memory,
    ledger: Ledger,
    options: Options,
    again: Confirming | None = None,
    screen: Screen | None = None,
) -> tuple[Memory, Judged, list[Event]]:
    """Judge one night: recoveries, the detector with its re-runs, incidents, creep.

    Return the memory after the night, and its events.
    """
    memory, events = recovery.recoveries(table, night, memory, ledger)
    ledger = ledgers.fold(events, ledger)
    if again is None:
        judged = judge(table, night, memory, ledger, options, screen=screen)
    else:
        judged = again.judged(lambda asking: judge(table, night, memory, ledger, options, asking, pairs=asking.pairs))
    memory, back = recovery.taken_back(table, judged, ledger)
    judged = replace(judged, memory=memory)
    events += back
    ledger = ledgers.fold(back, ledger)
    events += grouping.events_of(table, judged, ledger, options)
    events += drift.events_of(table, night, judged.memory, ledger, options)
    return judged.memory, judged, events


def _begin(home: Home, output: Path, stamp: str, options: Options) -> tuple[Table, Memory]:
    """Read the table that is needed and the memory to go on from; from the store alone where there is no usable one."""
    again = remeasured.read_pairs(output)
    table = read_table(home, stamp, _TABLE_REACH, again)
    try:
        memory = memories.read(output, stamp)
        if memory.count > len(table.stamps) or table.index_of(_next(memory.night)) != memory.count:
            raise DashboardError("the stored nights differ from those that were judged.")
        if memory.count >= len(table.stamps) - (_TABLE_REACH - max(REACH, drift.REACH)) or not table.offset:
            return table, memory
        raise DashboardError(f"{len(table.stamps) - memory.count} nights have not been judged.")
    except DashboardError as error:
        if len(table.stamps) > 1:  # on the first night there is nothing to go on from
            _log.info("%s Recomputing everything from the store.", error)
    table = read_table(home, stamp, None, again)
    first = max(0, len(table.stamps) - MOST_REPLAYED)
    return table, scanned(table, first, options.settings) if first else Memory()


def _next(stamp: str) -> str:
    """Return a text that sorts just behind the stamp and before any other stamp."""
    return f"{stamp}~" if stamp else ""


def _keep_inputs(output: Path, table: Table, judged: Judged, events: Sequence[Event], options: Options) -> None:
    """Leave what the night's new incidents were decided from, so that `explain` can decide it again."""
    incidents: dict[str, Any] = {}
    fleets = {fleet.name: fleet for fleet in judged.fleets}
    for event in events:
        if event.event != OPENED or event.data["kind"] == ledgers.CREEP:
            continue
        exact = [moved for moved in event.data["moved"] if moved.get("processes") is not None]
        if exact:
            rests = {moved["name"]: exact_events.inputs_of(table, judged, moved["series"]) for moved in exact}
            incidents[event.incident] = {"exact": rests}
            continue
        fleet = fleets[event.data["fleet"]]
        if event.data.get("size") is not None:
            states = {name: fleet.before.series.get(name, SeriesState()) for name in fleet.histories}
            rows = find_deviations(fleet.histories, states)
            kept = replay.keep_fleet(rows, sorted(fleet.controls), judged.night)
            incidents[event.incident] = replay.inputs_of({}, kept)
            continue
        by_pairs = {table.rows[row].key: said for row, said in judged.beside.items()}
        told = {
            moved["name"]: by_pairs[moved["series"]] for moved in event.data["moved"] if moved["series"] in by_pairs
        }
        ratios = {
            name: replay.keep_pairs(said.model, said.found, said.prior)
            for name, said in told.items()
            if said.found is not None
        }
        others = [moved for moved in event.data["moved"] if moved["name"] not in ratios]
        series = {moved["name"]: _kept(judged, moved["series"], options) for moved in others}
        incidents[event.incident] = {**replay.inputs_of(series, None), **({"paired": ratios} if ratios else {})}
    if incidents:
        folder = output / replay.FOLDER
        folder.mkdir(exist_ok=True)
        stamp = table.stamps[judged.night]
        common.write_json(folder / f"{stamp}.json", {"schema_version": 1, "night": stamp, "incidents": incidents})


def _kept(judged: Judged, key: str, options: Options) -> dict[str, Any]:
    fleet = next(fleet for fleet in judged.fleets if key in fleet.rows)
    settings = replace(options.settings, threshold=night_threshold(options.settings, len(fleet.rows)))
    return replay.keep_inputs(
        fleet.histories[key], _as_judged(fleet, key, judged.night), settings, fleet.decided.decisions[key]
    )


def _as_judged(fleet: FleetNight, key: str, night: int) -> SeriesState:
    """Return the state with which the series was judged: tonight freed of what the whole machine did."""
    state = fleet.before.series.get(key, SeriesState())
    common_shift = fleet.decided.common
    if common_shift is None or common_shift.blame == "compiler":
        return state
    row = find_deviations({key: fleet.histories[key]}, {key: state}).get(key)
    return remove_common(state, row, common_shift.shift, night)
