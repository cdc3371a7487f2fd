"""The ground of a verdict: incidents that are told, suspects, and expected series without a value, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from judging.judge import Judged, Options
from judging.table import Table

from report.standings import SeriesStanding
from tvmdash.dashboard_info import BLOCKED, FAILED, JobResult, Night
from tvmdash.incidents.events import Moved
from tvmdash.incidents.ledger import ACKNOWLEDGED, DETECTOR, FALSE_ALARM, FIXED, MACHINE, Incident, Ledger, iso_of
from tvmdash.judge.means import combine_ratios
from tvmdash.records.metrics import BETTER, IN_TURN, is_worse
from tvmdash.series import naming
from tvmdash.verdict import Absence, BesideReference, Missing, OverMachines, Standing, Suspect


@dataclass(frozen=True)
class Findings:
    """The ground of a verdict.

    new, still: regressions that nobody has settled, found tonight and before. fixed: those whose last series went back
    tonight; withdrawn: those of which the detector says tonight that they were none.

    Of an incident that was found before, and that series joined tonight, new, better and changed hold these alone.
    """

    new: Sequence[Incident]
    still: Sequence[Incident]
    better: Sequence[Incident]
    changed: Sequence[Incident]
    machine: Sequence[Incident]
    suspects: Sequence[Suspect]
    missing: Sequence[Missing]
    counts: Mapping[Standing, int]
    beside: BesideReference | None = None
    fixed: Sequence[Incident] = ()
    withdrawn: Sequence[Incident] = ()
    machines: Mapping[str, OverMachines] = field(default_factory=dict)
    """By incident."""
    muted: int = 0
    """Series of which somebody wants nothing told."""
    controls: Mapping[Standing, int] = field(default_factory=dict)
    """Those of `counts` that say nothing of TVM."""
    in_turn: Mapping[Standing, int] = field(default_factory=Counter)
    """Those of `counts` whose turns pairs of processes took, which speaks from the first night on."""
    blind_of: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By metric and experiment, how many of TVM's series are blind or young, the most first.

    Not those that are told to differ from the reference.
    """

    @property
    def has_improved(self) -> bool:
        return bool(self.better or self.fixed)

    @property
    def is_new_beside(self) -> bool:
        """True where tonight's TVM differs from the reference, and that has not been told."""
        return self.beside is not None and self.beside.is_first and bool(self.beside.differences or self.beside.exact)

    @property
    def expected(self) -> int:
        return sum(self.counts.values()) - self.counts[Standing.GONE]

    @property
    def seen(self) -> int:
        return self.expected - self.counts[Standing.MISSING]

    def of_tvm(self, *standings: Standing) -> int:
        """Count the series that stand so, without the controls."""
        return sum(self.counts[each] - self.controls.get(each, 0) for each in standings)

    @property
    def seen_of_tvm(self) -> int:
        return self.of_tvm(*self.counts) - self.of_tvm(Standing.GONE, Standing.MISSING)

    @property
    def blind(self) -> int:
        return sum(self.blind_of.values())

    @property
    def decisive(self) -> tuple[int, int, int]:
        """The numbers of young, noisy and all series: of those measured in turn, where there are any."""
        if self.in_turn:
            return self.in_turn[Standing.YOUNG], self.in_turn[Standing.BLIND], sum(self.in_turn.values())
        return self.of_tvm(Standing.YOUNG), self.of_tvm(Standing.BLIND), self.seen_of_tvm

    @property
    def is_blind(self) -> bool:
        """True where most of what decides could not have shown anything."""
        young, noisy, seen = self.decisive
        return 2 * (young + noisy) > seen


def find(
    tonight: Night,
    table: Table,
    judged: Judged,
    ledger: Ledger,
    stands: Mapping[int, SeriesStanding],
    beside: BesideReference | None,
    options: Options,
) -> Findings:
    """Collect the findings on the night; `stands` says by row how each series stands."""
    stamp = table.stamps[judged.night]
    reported = [incident for incident in ledger.incidents.values() if ledger.silent(incident, iso_of(stamp)) is None]
    open_ones = [incident for incident in reported if incident.is_open and incident.state != ACKNOWLEDGED]
    news = [part for incident in reported if (part := incident.moved_on(stamp)) is not None]
    new = [part for part in news if part.is_open and part.state != ACKNOWLEDGED]
    known = {incident.id for incident in new}
    muted = _find_muted(table, ledger, stands, iso_of(stamp))
    changed = [part for part in news if not part.is_worse and _has_changed(part)]
    controls = [stand.kind for row, stand in stands.items() if options.is_control(table.rows[row])]
    of_tvm = {row: stand for row, stand in stands.items() if not options.is_control(table.rows[row])} or stands
    differ = {difference.series for difference in beside.differences} if beside else set()
    unseeing = [
        row
        for row, stand in of_tvm.items()
        if stand.kind in {Standing.BLIND, Standing.YOUNG} and naming.id_of(table.rows[row].key) not in differ
    ]
    blind_of = Counter((table.rows[row].metric, table.rows[row].experiment) for row in unseeing)
    over_machines = compare(table, stands, list({part.id: part for part in (*open_ones, *news)}.values()))
    return Findings(
        new=new,
        still=[incident for incident in open_ones if incident.id not in known],
        better=[part for part in news if _is_better(part) and part not in changed],
        changed=changed,
        machine=[part for part in news if _is_machines(part) and not part.is_open],
        suspects=_suspects(table, stands, muted),
        missing=_missing(tonight, table, stands),
        counts=Counter(stand.kind for stand in stands.values()),
        beside=beside,
        fixed=[incident for incident in reported if _has_ended(incident, FIXED, iso_of(stamp))],
        withdrawn=[incident for incident in reported if _has_ended(incident, FALSE_ALARM, iso_of(stamp))],
        machines={item.incident: item for item in over_machines},
        muted=len(muted),
        in_turn=Counter(
            stand.kind for row, stand in of_tvm.items() if stand.paired and table.rows[row].metric not in IN_TURN[1:]
        ),
        blind_of=dict(blind_of.most_common()),
        controls=Counter(controls if len(controls) < len(stands) else ()),
    )


def _is_better(incident: Incident) -> bool:
    return bool(incident.moved) and incident.way == BETTER and not _is_machines(incident)


def _is_machines(incident: Incident) -> bool:
    return incident.kind == MACHINE


def _has_ended(incident: Incident, state: str, now: str) -> bool:
    last = incident.changes[-1]
    return (last.at, last.who, last.state) == (now, DETECTOR, state)


def _has_changed(incident: Incident) -> bool:
    """Tell whether a number in it moved that has no better way, or none that is held against TVM."""
    return any(moved.worse is None for moved in incident.moved)


def _find_muted(table: Table, ledger: Ledger, rows: Iterable[int], now: str) -> frozenset[int]:
    if not ledger.silences_at(now):
        return frozenset()
    return frozenset(row for row in rows if ledger.is_muted(table.rows[row].key, table.rows[row].name, now))


def _suspects(table: Table, stands: Mapping[int, SeriesStanding], muted: AbstractSet[int]) -> list[Suspect]:
    """List the suspects, the worst first."""
    suspects = []
    for row, stand in stands.items():
        if stand.kind == Standing.SUSPECT and stand.effect is not None and row not in muted:
            series = table.rows[row]
            worse = is_worse(stand.effect, series.direction)
            size = (stand.effect, worse, stand.low, stand.high, stand.paired, stand.relative)
            suspects.append(Suspect(series.key, series.name, *size))
    return sorted(suspects, key=lambda suspect: (suspect.worse is False, suspect.worse is None, -abs(suspect.effect)))


def _missing(tonight: Night, table: Table, stands: Mapping[int, SeriesStanding]) -> list[Missing]:
    """List by experiment the series without a value, the one that lacks most first."""
    expected: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    for row, stand in stands.items():
        if stand.kind != Standing.GONE:
            expected[table.rows[row].experiment] += 1
            lacking[table.rows[row].experiment] += stand.kind == Standing.MISSING
    jobs = {job.name: job for job in tonight.experiments}
    missing = []
    for name, count in lacking.most_common():
        if count:
            job = jobs.get(name)
            title = job.title if job is not None and job.title else name
            missing.append(Missing(name, title, count, expected[name], _absence(job, measured=count < expected[name])))
    return missing


def _absence(job: JobResult | None, *, measured: bool) -> Absence:
    """Find why series of an experiment are missing; `measured`: others of it have a value."""
    if job is None:
        return Absence.NO_VALUE if measured else Absence.NOT_RUN
    return {FAILED: Absence.FAILED, BLOCKED: Absence.BLOCKED}.get(job.state, Absence.NO_VALUE)


FEWEST_COMBINED = 5
"""One number over machines is told from so many on."""
_MEASURED = {Standing.STEADY, Standing.BLIND, Standing.UNCHANGED, Standing.YOUNG, Standing.SUSPECT, Standing.MOVED}


def compare(table: Table, stands: Mapping[int, SeriesStanding], incidents: Sequence[Incident]) -> list[OverMachines]:
    """Compare machines for each incident whose points more than one of them measures tonight."""
    points: dict[str, list[int]] = {}
    for row, series in enumerate(table.rows):
        if series.machine:
            points.setdefault(naming.point_of(series.experiment, series.metric, series.labels), []).append(row)
    rows = {series.key: row for row, series in enumerate(table.rows)}
    point_of = {row: rows_of for rows_of in points.values() for row in rows_of}
    found = (_compare(table, stands, incident, rows, point_of) for incident in incidents)
    return [item for item in found if item is not None]


def _compare(
    table: Table,
    stands: Mapping[int, SeriesStanding],
    incident: Incident,
    rows: Mapping[str, int],
    point_of: Mapping[int, Sequence[int]],
) -> OverMachines | None:
    moved = {
        rows[part.series]: part for part in incident.moved if part.series in rows and rows[part.series] in point_of
    }
    alike = dict.fromkeys(row for own in moved for row in point_of[own])
    on = _names(table, moved)
    least = min((abs(part.effect) for part in moved.values()), default=0.0)
    others = [row for row in alike if row in stands and stands[row].kind in _MEASURED and _name(table, row) not in on]
    calm = _names(table, [row for row in others if _would_show(stands[row], least)])
    unknown = [name for name in _names(table, others) if name not in calm]
    if len(on) + len(calm) + len(unknown) < 2:
        return None
    ratios = _list_ratios(moved, table)
    is_everywhere = not calm and not unknown
    combined = _combine(ratios) if len(ratios) >= FEWEST_COMBINED and is_everywhere else ()
    name = ""
    if len({id(point_of[row]) for row in moved}) == 1:
        name = naming.strip_host(table.rows[next(iter(moved))].name)
    return OverMachines(incident.id, tuple(on), tuple(calm), tuple(unknown), name, *combined)


def _would_show(stand: SeriesStanding, effect: float) -> bool:
    """Return True where it did not move, and a change of this size would have been told."""
    return stand.kind is Standing.UNCHANGED or (
        stand.kind is Standing.STEADY and stand.visible is not None and stand.visible <= effect
    )


def _list_ratios(moved: Mapping[int, Moved], table: Table) -> list[float]:
    """Return the geometric mean of after / before on each machine."""
    by_machine: dict[str, list[float]] = {}
    for row, part in moved.items():
        if part.relative and part.effect > -1:
            by_machine.setdefault(_name(table, row), []).append(math.log1p(part.effect))
    return [math.exp(float(np.mean(logs))) for logs in by_machine.values()]


def _combine(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the change over machines with its interval."""
    mean = combine_ratios(ratios)
    low, high = mean.bounds
    return mean.value - 1, low - 1, high - 1


def _names(table: Table, rows: Sequence[int] | Mapping[int, object]) -> list[str]:
    return sorted({_name(table, row) for row in rows})


def _name(table: Table, row: int) -> str:
    return table.rows[row].machine
