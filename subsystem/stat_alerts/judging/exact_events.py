"""Exact numbers that changed tonight as incidents: one for each change of TVM, told the same night."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from judging import recovery
from judging.exact import RECENT, Exact
from judging.judge import Judged
from judging.table import Table
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.events import Moved, Opened
from tvmdash.incidents.ledger import CHANGE, COMPILER, CONFIRMED, DETECTOR, NOT_TVMS, Event, Ledger, iso_of
from tvmdash.records import Build
from tvmdash.records.metrics import judge_exact_change


def events_of(table: Table, judged: Judged, ledger: Ledger) -> list[Event]:
    """Open an incident, confirmed at once, for all exact numbers that changed since the night before for one reason.

    Then end the regressions of `ledger` whose number is no worse than before, with a TVM that does not come before
    theirs.
    """
    together: dict[_Change, list[Exact]] = {}
    own: dict[str, list[Exact]] = {}
    for number in judged.exact.values():
        if number.is_changed:
            own.setdefault(table.rows[number.row].experiment, []).append(number)
    for experiment, numbers in own.items():
        together.setdefault(_change_of(table, experiment, numbers), []).extend(numbers)
    opened = [event for change, numbers in together.items() for event in _opened(table, change, numbers)]
    return [*opened, *_recoveries(table, judged.night, ledger)]


@dataclass(frozen=True)
class _Change:
    """The change that several numbers share. experiment: empty where it is TVM's, which all experiments measure."""

    after: int
    versions: tuple[str, str]
    blame: str
    experiment: str


def _change_of(table: Table, experiment: str, numbers: Sequence[Exact]) -> _Change:
    night, after = numbers[0].night, max(number.after for number in numbers)
    versions = (table.version(numbers[0].row, after), table.version(numbers[0].row, night))
    blame = _blame(table.build(experiment, after), table.build(experiment, night), versions)
    return _Change(after, versions, blame, "" if blame == COMPILER else experiment)


def _recoveries(table: Table, night: int, ledger: Ledger) -> Iterator[Event]:
    rows = {series.key: row for row, series in enumerate(table.rows)}
    for incident in ledger.open():
        lost = [moved for moved in incident.moved if moved.is_exact and moved.worse and not moved.recovered]
        begin = table.index_of(incident.begin)
        back = {moved.series: night for moved in lost if _is_back(table, rows.get(moved.series), night, moved, begin)}
        if back:
            yield from recovery.recovered(table, night, incident, back, rows)


def _is_back(table: Table, row: int | None, night: int, moved: Moved, begin: int) -> bool:
    if row is None or not math.isfinite(value := float(table.values[row, night - table.offset])):
        return False
    builds = {table.measured(table.rows[row].experiment, at): at for at in (night, begin)}
    if len(builds) > 1 and table.order_builds(row, {str(at): at for at in builds.values()}, night)[0] == str(night):
        return False
    change = value - moved.before
    return not table.rows[row].is_regression(change, moved.before, value)


def _opened(table: Table, change: _Change, numbers: Sequence[Exact]) -> Iterator[Event]:
    begin, last = table.stamps[numbers[0].night], table.stamps[change.after]
    in_order = sorted(numbers, key=lambda number: table.rows[number.row].key)
    keys = [table.rows[number.row].key for number in in_order]
    digest = hashlib.sha256(json.dumps(["exact", begin, keys]).encode()).hexdigest()[:4]
    opened = Opened(
        kind=CHANGE,
        begin=begin,
        after=last,
        found=begin,
        versions=change.versions,
        artifacts=(table.artifact(numbers[0].row, change.after), table.artifact(numbers[0].row, numbers[0].night)),
        blame=change.blame,
        moved=tuple(_moved(table, number, change.blame) for number in in_order),
        fleet=table.rows[numbers[0].row].fleet,
        direction="none",
    )
    event = Event.of(iso_of(begin), DETECTOR, ledgers.OPENED, f"i{begin[:8]}-{digest}", opened)
    yield event
    reason = "an exact number has no noise: the difference is there"
    yield ledgers.changed(event.incident, CONFIRMED, at=event.at, who=DETECTOR, words=reason)


def _blame(then: Build, now: Build, version: Sequence[str]) -> str:
    """Blame a change between two builds of one experiment."""
    own = then.fingerprint != now.fingerprint
    known = then.artifact is not None and now.artifact is not None
    same = then.artifact == now.artifact if known else version[0] == version[1] != ""
    if same:
        return "experiment" if own else "machine"
    return "unknown" if own else COMPILER


def _moved(table: Table, number: Exact, blame: str) -> Moved:
    series = table.rows[number.row]
    relative = number.before != 0
    effect = (number.value - number.before) / (abs(number.before) if relative else 1.0)
    worse = None if blame in NOT_TVMS else judge_exact_change(series, number.before, number.value)
    return Moved(
        series.key, series.name, series.metric, series.unit, worse, number.before, number.value, effect,
        relative=relative, nights=1, kind=series.kind, processes=number.processes, workload=series.workload,
        experiment=series.experiment, machine=series.machine,
    )  # fmt: skip


def inputs_of(table: Table, judged: Judged, key: str) -> dict[str, list[Any]]:
    """Return what the incident about a series rests on: its last nights' values, and how many processes agreed on each.

    The last but one is the night that it was compared with.
    """
    row = next(row for row, series in enumerate(table.rows) if series.key == key)
    stop, after = judged.night + 1 - table.offset, judged.exact[row].after - table.offset
    lately = [at for at in range(max(0, stop - RECENT), stop - 1) if math.isfinite(table.values[row, at])]
    nights = [*(at for at in lately if at != after), after, stop - 1]
    return {
        "stamps": [table.stamps[table.offset + at] for at in nights],
        "values": [float(table.values[row, at]) for at in nights],
        "alike": [int(table.alike[row, at]) for at in nights],
        "functions": [int(table.code[row, at]) for at in nights],
    }
