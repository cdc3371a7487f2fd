"""One night after the other: what the detector says of each series, and what that makes of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np

from judging import causes, paired
from judging.evidence import Confirmation
from judging.exact import Exact, exact_numbers, remembered
from judging.memory import ALERT, BREAK, ENVIRONMENT, WHOLE, KnownShift, Memory
from judging.paired import AskPairs, PairsTonight
from judging.table import REACH, Table, TableRow
from tvmdash.incidents.annotations import Annotation
from tvmdash.incidents.ledger import EXPECTED, Ledger
from tvmdash.judge.history.cause import MACHINE, Reason, ReasonKind
from tvmdash.judge.history.change_points import change_points
from tvmdash.judge.history.fleet import fleet as change_fleet
from tvmdash.judge.history.fleet.ahead import Ahead, look_ahead
from tvmdash.judge.history.fleet.common import FleetRerun, find_common_shift, find_deviations
from tvmdash.judge.history.fleet.fleet import FleetState, NightDecision, night_threshold
from tvmdash.judge.history.levels import rebase
from tvmdash.judge.history.series import Decision, History, Kind, SeriesState, Settings, scale_series
from tvmdash.verdict import Controls

MOST_REPLAYED = 400
"""Nights that a rebuild judges; what lies before is scanned, without the fleet's view."""


@dataclass(frozen=True)
class Options:
    """The subsystem's config, as far as judging needs it."""

    settings: Settings = field(default_factory=Settings)
    controls: Controls = field(default_factory=Controls)
    confirm_nights: int = 10
    creep: float = 0.03
    annotations: tuple[Annotation, ...] = ()
    confirm_s: float = 0.0
    confirm_off: str = "not asked for"

    def is_control(self, row: TableRow) -> bool:
        """Tell whether the config names the series, or its experiment, as one whose program never changes."""
        return self.controls.has(row.experiment, row.key)


@dataclass(frozen=True)
class FleetNight:
    """One fleet on a night: what was given to the detector, and what it said.

    rows: all series of the fleet; histories and decisions are of those that were judged.
    """

    name: str
    rows: Mapping[str, int]
    histories: Mapping[str, History]
    before: FleetState
    controls: frozenset[str]
    decided: NightDecision


@dataclass(frozen=True)
class Judged:
    """One night of all fleets; exact: by row, the numbers that have no noise and are in none of them.

    beside: by row, what the ratios say of the series that are judged by them.
    """

    night: int
    fleets: tuple[FleetNight, ...]
    memory: Memory
    confirmation: Confirmation | None = None
    exact: Mapping[int, Exact] = field(default_factory=dict)
    beside: Mapping[int, PairsTonight] = field(default_factory=dict)

    def decisions(self) -> Iterator[tuple[int, Decision, FleetNight]]:
        """Yield each row with its decision and its fleet."""
        for fleet in self.fleets:
            for key, decision in fleet.decided.decisions.items():
                yield fleet.rows[key], decision, fleet


NIGHTS_AHEAD = 64
"""Nights looked through at once."""


@dataclass(frozen=True)
class _Seen:
    """A series' outlook on the nights up to `stop`, valid while its state and settings stay."""

    state: SeriesState
    settings: Settings
    stop: int
    ahead: Ahead | None

    def holds(self, state: SeriesState, settings: Settings, night: int) -> bool:
        alerted = self.ahead is not None and self.ahead.alert is not None and self.ahead.alert < night
        return night < self.stop and not alerted and self.state == state and self.settings == settings


@dataclass
class Screen:
    """A screen of the nights before `stop`, judged without re-runs: only series that may say something are judged."""

    table: Table
    stop: int
    settings: Settings
    _seen: dict[int, _Seen] = field(default_factory=dict)

    def suspects(
        self, night: int, rows: Mapping[str, int], state: FleetState, controls: AbstractSet[str]
    ) -> frozenset[str] | None:
        """Choose the series of a fleet that may say something; None: all, because the machine moved as a whole."""
        settings = replace(self.settings, threshold=night_threshold(self.settings, len(rows)))
        chosen, moved = set(), {}
        for key, row in rows.items():
            before = state.series.get(key, _UNKNOWN)
            ahead = self._look(row, night, before, settings)
            if ahead is None:
                chosen.add(key)
                moved.update(find_deviations({key: self.table.history(row, night)}, {key: before}))
                continue
            if ahead.alert == night:
                chosen.add(key)
            if night in ahead.deviations:
                moved[key] = ahead.deviations[night]
        if find_common_shift(moved, controls, night) is not None:
            return None
        return frozenset(chosen)

    def _look(self, row: int, night: int, state: SeriesState, settings: Settings) -> Ahead | None:
        """Look ahead in a series; None where its nights have to be judged one by one."""
        seen = self._seen.get(row)
        if seen is None or not seen.holds(state, settings, night):
            stop = min(self.stop, night + NIGHTS_AHEAD)
            history = self.table.history(row, stop - 1, REACH + stop - 1 - night)
            seen = _Seen(state, settings, stop, look_ahead(history, state, night, REACH, settings))
            self._seen[row] = seen
        return seen.ahead


_UNKNOWN = SeriesState()


def judge(
    table: Table,
    night: int,
    memory: Memory,
    ledger: Ledger,
    options: Options,
    again: FleetRerun | None = None,
    screen: Screen | None = None,
    *,
    pairs: AskPairs | None = None,
) -> Judged:
    """Judge the night; `memory` is as before it, with levels that begin anew. `again`: measures suspects again.

    pairs: measures those that are judged by their ratios again, in pairs. screen: knows which series can say something;
    only these have a decision then.
    """
    memory = _with_new_levels(table, night, memory, _known_breaks(table, night, ledger, options))
    exact = exact_numbers(table, night)
    memory = remembered(table, memory, exact)
    fleets: list[FleetNight] = []
    of_fleets = table.fleets(night)
    beside = _judge_pairs(table, night, of_fleets, exact, memory, ledger, pairs)
    for name, members in of_fleets.items():
        present = [row for row in members if row not in exact]
        state = memory.fleets.get(name, FleetState())
        of_ratios = {row: beside[row] for row in present if row in beside}
        rows = [row for row in present if row not in of_ratios]
        keys = {table.rows[row].key: row for row in rows}
        controls = _controls(table, night, rows, options)
        suspects = screen.suspects(night, keys, state, controls) if screen is not None else None
        some = keys if suspects is None else suspects
        histories = {key: table.history(row, night) for key, row in keys.items() if key in some}
        if suspects is None:
            decided = change_fleet.night(histories, state, controls=controls, settings=options.settings, rerun=again)
        else:
            decided = change_fleet.judge_few(
                histories, state, keys, night, controls=controls, settings=options.settings
            )
        decided = _with_causes(table, night, keys, controls, decided)
        every = {table.rows[row].key: row for row in present}
        histories |= {table.rows[row].key: table.history(row, night) for row in of_ratios}
        decided = _with_ratios(table, night, of_ratios, decided, state)
        fleets.append(FleetNight(name, every, histories, state, controls, decided))
    states = {**memory.fleets, **{fleet.name: fleet.decided.state for fleet in fleets}}
    memory = replace(memory, night=table.stamps[night], count=night + 1, fleets=states)
    judged = Judged(night, tuple(fleets), memory, exact=exact, beside=beside)
    return replace(judged, memory=memory.with_steps(dict(_steps(table, judged))))


def _judge_pairs(
    table: Table,
    night: int,
    fleets: Mapping[str, Sequence[int]],
    exact: Mapping[int, Exact],
    memory: Memory,
    ledger: Ledger,
    pairs: AskPairs | None,
) -> dict[int, PairsTonight]:
    """Judge the pairs of each machine's series, all of them together."""
    of_machine: dict[str, list[int]] = {}
    for members in fleets.values():
        for row in table.paired.intersection(members):
            if row not in exact:
                of_machine.setdefault(table.rows[row].machine, []).append(row)
    beside: dict[int, PairsTonight] = {}
    for rows in of_machine.values():
        beside |= paired.judge_rows(table, night, sorted(rows), memory, ledger, pairs)
    return beside


def _with_ratios(
    table: Table, night: int, beside: Mapping[int, PairsTonight], decided: NightDecision, before: FleetState
) -> NightDecision:
    """Add the decisions on the series that are judged by their ratios."""
    more = {}
    for row, said in beside.items():
        key = table.rows[row].key
        more[key] = paired.decision_of(said, before.series.get(key, SeriesState()), night)
    states = {**decided.state.series, **{key: decision.state for key, decision in more.items()}}
    return replace(decided, decisions={**decided.decisions, **more}, state=replace(decided.state, series=states))


def _with_causes(
    table: Table, night: int, keys: Mapping[str, int], controls: frozenset[str], decided: NightDecision
) -> NightDecision:
    """Add the cause of each shift; what is the machine's is no alert."""
    if decided.machine is not None and decided.cut is not None:
        cause = causes.of_fleet(table, keys.values(), decided.machine.cause, decided.cut, night)
        return replace(decided, machine=replace(decided.machine, cause=cause))
    decisions = dict(decided.decisions)
    if not any(decision.cut is not None for decision in decisions.values()):
        return decided
    rows = sorted({*(keys[key] for key in controls), *causes.unchanged(table, night, list(keys.values()))})
    for key, decision in decisions.items():
        if decision.kind != "quiet" and decision.cut is not None:
            cause = causes.cause_of(table, keys[key], decision, rows, night)
            kind: Kind = "environment" if cause.whose == MACHINE else "alert"
            decisions[key] = replace(decision, kind=kind, cause=cause, reason=Reason(ReasonKind.SHIFTED))
    return replace(decided, decisions=decisions)


def _steps(table: Table, judged: Judged) -> Iterator[tuple[str, KnownShift]]:
    for row, decision, fleet in judged.decisions():
        if decision.kind != "quiet" and decision.cut is not None and decision.effect is not None:
            kind = ALERT if decision.kind == "alert" else ENVIRONMENT
            effect = decision.effect
            if fleet.decided.machine is not None:
                kind, effect = WHOLE, float(np.expm1(fleet.decided.machine.shift))
            size = float(np.log1p(effect)) if decision.state.unit is None else 0.0
            yield table.rows[row].key, KnownShift(table.stamps[decision.cut], size, kind)


def _controls(table: Table, night: int, rows: Sequence[int], options: Options) -> frozenset[str]:
    """Return the config's controls of the fleet; else half of the series that have long been on one artifact."""
    given = frozenset(row.key for row in map(table.rows.__getitem__, rows) if options.is_control(row))
    if given:
        return given
    unchanged = sorted(table.rows[row].key for row in causes.unchanged(table, night, rows))
    # half, as controls do not count as series that moved; none if all are: then nothing is TVM's
    return frozenset(unchanged[::2]) if len(unchanged) < len(rows) else frozenset()


def _known_breaks(table: Table, night: int, ledger: Ledger, options: Options) -> dict[int, int]:
    """Find the rows whose level begins anew, and where: at annotated breaks and accepted incidents.

    They apply from the later of the night that they are about and the night after they were written.
    """
    begins: dict[int, int] = {}
    for annotation in options.annotations:
        for experiment, versions in table.versions.items():
            if not annotation.is_break:
                break
            stamp = annotation.night(versions) if annotation.kind == "commit" else annotation.place
            if stamp is None or table.index_of(max(stamp, _stamp(annotation.at))) != night:
                continue
            for row, series in enumerate(table.rows):
                if series.experiment == experiment and annotation.covers(experiment, series.name):
                    begins[row] = table.index_of(stamp)
    rows = {series.key: row for row, series in enumerate(table.rows)}
    for incident in ledger.incidents.values():
        last = incident.changes[-1]
        if last.state == EXPECTED and table.index_of(max(incident.begin, _stamp(last.at))) == night:
            begin = table.index_of(incident.begin)
            begins.update({rows[moved.series]: begin for moved in incident.moved if moved.series in rows})
    return begins


def _stamp(moment: str) -> str:
    return moment.replace("-", "").replace(":", "")


def _with_new_levels(table: Table, night: int, memory: Memory, begins: Mapping[int, int]) -> Memory:
    """Begin a new level of the rows at a night; later beginnings that are known stay."""
    fleets, steps = dict(memory.fleets), {}
    for row, begin in begins.items():
        series = table.rows[row]
        fleet = fleets.get(series.fleet, FleetState())
        state = fleet.series.get(series.key, SeriesState())
        if state.start < begin:
            fleets[series.fleet] = replace(
                fleet, series={**fleet.series, series.key: begun_anew(table.history(row, night), state, begin)}
            )
            steps[series.key] = KnownShift(table.stamps[begin], 0.0, BREAK)
    return replace(memory, fleets=fleets).with_steps(steps)


def begun_anew(history: History, state: SeriesState, night: int) -> SeriesState:
    return rebase(scale_series(history, state), state, night)


def scanned(table: Table, stop: int, settings: Settings) -> Memory:
    """Return the memory before the night `stop` from each series' full scan alone: for nights long past."""
    fleets: dict[str, dict[str, SeriesState]] = {}
    steps: dict[str, tuple[KnownShift, ...]] = {}
    for row, series in enumerate(table.rows):
        until = slice(0, stop - table.offset)
        at = (row, until)
        history = History(table.values[at], table.std[at], table.repeats[at], offset=table.offset)
        if np.isfinite(history.values).any():
            alerts, state = change_points(history, settings=settings)
            fleets.setdefault(series.fleet, {})[series.key] = state
            steps[series.key] = tuple(_past_steps(table, alerts))
    states = {name: FleetState(series) for name, series in fleets.items()}
    return Memory(table.stamps[stop - 1] if stop else "", stop, states, steps)


def _past_steps(table: Table, alerts: Iterable[Decision]) -> Iterator[KnownShift]:
    for alert in alerts:
        if alert.cut is not None and alert.state.unit is None:
            yield KnownShift(table.stamps[alert.cut], float(np.log1p(alert.effect or 0.0)), ALERT)
