"""All series of a home as one table of numbers: a row a series, a column a night."""

from __future__ import annotations

import bisect
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from judging.evidence import PairsOfNight
from tvmdash.dashboard_info import Home
from tvmdash.judge import Pairs
from tvmdash.judge.history.noise import FloatArray, IntArray
from tvmdash.judge.history.series import History
from tvmdash.judge.model import locate
from tvmdash.machine.identity import MachineIdentity
from tvmdash.records import Build
from tvmdash.records.metrics import ENOUGH_RATIOS, FEWEST_ALONE, RATIOS, Direction, FleetKind, Kind, is_regression
from tvmdash.series import naming, store
from tvmdash.series.naming import id_of
from tvmdash.series.packed import counts, floats, integers
from tvmdash.series.store import Series
from tvmdash.verdict.remeasured import RatioRun

REACH = 300
"""Nights of history that a night is judged with."""
SCALE_NIGHTS, CHAINED_SCALE_NIGHTS = 60, 3
"""Nights whose median is a level; fewer where places wander with the errors that add up."""
_NIGHTS_OF_ORDER = 60
"""Commits older than that were measured in their order."""
GONE_NIGHTS = 30
"""Nights without a value after which a series has ended."""


@dataclass(frozen=True)
class TableRow:
    """One series. fleet: the key of the machine and kind of metric that it is judged with. key: its ID, once a unit.

    labels: what was measured; they name its point. direction, kind, tolerance: of the number. fleet_name: the fleet,
    for people; fleet_kind: what its series are.
    """

    key: str
    experiment: str
    metric: str
    unit: str
    direction: Direction
    name: str
    fleet: str
    labels: Mapping[str, Any] = field(default_factory=dict)
    kind: Kind = "time"
    fleet_name: str = ""
    fleet_kind: FleetKind = "times"
    tolerance: float = 0.0
    workload: str = ""

    @property
    def machine(self) -> str:
        """The machine that measures it, as its records call it; empty where they do not say."""
        return naming.machine_of(self.labels)

    def is_regression(self, effect: float, before: float, after: float) -> bool | None:
        """Return True where the number got worse by `effect`, False where better, None where it only changed."""
        return is_regression(effect, after - before, self.direction, self.tolerance)


@dataclass(frozen=True)
class Measured:
    """Which TVM was measured: the key of its artifact where that is `recorded`, else its version."""

    name: str
    recorded: bool


@dataclass(frozen=True)
class Ratios:
    """By row and night, NaN where nothing was measured beside a reference.

    logs: the mean logarithm of the ratio; std: of one pair of processes; pairs: how many there were.
    """

    logs: FloatArray
    std: FloatArray
    pairs: FloatArray


@dataclass(frozen=True)
class InTurn:
    """One night's pairs of a series. build: its name, which builds that ran the same share; artifact: its own."""

    night: int
    build: str
    artifact: str
    code: int
    pairs: Pairs


@dataclass(frozen=True)
class Again:
    """Pairs of two artifacts that were measured again on a night."""

    night: int
    artifact: str
    beside: str
    ratio: RatioRun


def pairs_again(night: int, build: str, base: str, ratio: RatioRun) -> Pairs:
    """Convert a re-measured ratio of two builds into the judge's pairs."""
    return Pairs(night, build, base, ratio.log, ratio.std, ratio.pairs, ratio.layout, ratio.layout)


@dataclass(frozen=True)
class Table:
    """`values[row, column]` is night `offset + column`; NaN where there is no value.

    values: as judged: those of `paired` rows are free of what the machine did; unjudged: as measured, where that
    differs. ratios: of what was measured beside a reference; again: by the ID of a series, what was measured again in
    pairs. chained: paired rows whose errors add up from night to
    night. code, content: numbers for the generated code that was timed and for all that ran with it, 0 where unknown;
    alike: -1 where unknown. stamps: all nights of the home, from its first. versions, builds: by experiment and stamp.
    committed: of artifacts that are builds of commits, when.
    """

    stamps: tuple[str, ...]
    offset: int
    rows: tuple[TableRow, ...]
    values: FloatArray
    std: FloatArray
    repeats: FloatArray
    code: IntArray
    content: IntArray
    alike: IntArray
    versions: Mapping[str, Mapping[str, str]]
    builds: Mapping[str, Mapping[str, Build]] = field(default_factory=dict)
    committed: Mapping[str, str] = field(default_factory=dict)
    unjudged: FloatArray | None = None
    ratios: Ratios = field(default_factory=lambda: Ratios(*(np.empty((0, 0)) for _ in range(3))))
    again: Mapping[str, Sequence[Again]] = field(default_factory=dict)
    paired: frozenset[int] = frozenset()
    chained: frozenset[int] = frozenset()

    @property
    def measured_values(self) -> FloatArray:
        """The values as they were measured."""
        return self.values if self.unjudged is None else self.unjudged

    def history(self, row: int, night: int, reach: int = REACH) -> History:
        """Return the row's last `reach` nights up to `night`."""
        stop = night + 1 - self.offset
        start = max(0, stop - reach)
        part = (row, slice(start, stop))
        return History(self.values[part], self.std[part], self.repeats[part], self.offset + start)

    def in_turn(self, row: int, night: int) -> list[InTurn]:
        """Return the row's pairs up to `night`, the oldest first; builds that ran the same have one name."""
        stop = night + 1 - self.offset
        columns = np.isfinite(self.ratios.logs[row, max(0, stop - REACH) : stop]).nonzero()[0] + max(0, stop - REACH)
        names = self._names(row, columns)
        logs, stds, counts = (
            np.nan_to_num(part[row, columns]).tolist()
            for part in (self.ratios.logs, self.ratios.std, self.ratios.pairs)
        )
        measured = []
        for at, (column, artifact, reference) in enumerate(self._measured_on(row, columns)):
            night, build = self.offset + column, names[artifact]
            pairs = Pairs(night, build, names.get(reference, reference), logs[at], stds[at], max(1, int(counts[at])))
            measured.append(InTurn(night, build, artifact, int(self.code[row, column]), pairs))
        return measured

    def _measured_on(self, row: int, columns: Iterable[int]) -> Iterator[tuple[int, str, str]]:
        """Yield each column's artifact and reference; names of their own where they are not known."""
        for column in map(int, columns):
            build = self.build(self.rows[row].experiment, self.offset + column)
            yield column, build.artifact or f"of {column}", build.reference or f"beside {column}"

    def _names(self, row: int, columns: Iterable[int]) -> dict[str, str]:
        """Name each artifact by the first that ran the same code, byte for byte, while it was timed.

        An artifact stays one build, whatever else its content depends on did.
        """
        of_artifact: dict[str, str] = {}
        of_content: dict[int, str] = {}
        for column, artifact, _ in self._measured_on(row, columns):
            content = int(self.content[row, column])
            of_artifact.setdefault(artifact, of_content.get(content, artifact) if content else artifact)
            if content:
                of_content.setdefault(content, of_artifact[artifact])
        return of_artifact

    def measured_alone(self, row: int, artifact: str, night: int) -> list[int]:
        """Return the nights before `night` on which the row has a value of that artifact."""
        known = np.isfinite(self.values[row, : night - self.offset]).nonzero()[0].tolist()
        experiment = self.rows[row].experiment
        return [self.offset + at for at in known if self.build(experiment, self.offset + at).artifact == artifact]

    def again_before(self, row: int, night: int) -> list[Pairs]:
        """Return the row's pairs that earlier nights measured again."""
        runs = [run for run in self.again.get(id_of(self.rows[row].key), ()) if self.offset <= run.night < night]
        if not runs:
            return []
        stop = night + 1 - self.offset
        names = self._names(row, np.isfinite(self.ratios.logs[row, :stop]).nonzero()[0])
        return [
            pairs_again(run.night, names.get(run.artifact, run.artifact), names.get(run.beside, run.beside), run.ratio)
            for run in runs
        ]

    def order_builds(self, row: int, first: Mapping[str, int], night: int) -> list[str]:
        """Sort the row's builds as TVM's history does: by commit or version where they say it, else as they came.

        first: by build, the first night that measured it. Builds that came before all that say theirs go before them.
        """
        committed: dict[str, Any] = {build: self.committed.get(self.artifact(row, at)) for build, at in first.items()}
        versions: dict[str, Any] = {build: _place_of(self.version(row, at)) for build, at in first.items()}
        for keys in (committed, versions):
            known = [first[build] for build, key in keys.items() if key is not None]
            if known and all(first[build] < min(known) for build, key in keys.items() if key is None):
                as_they_came = sorted(first, key=lambda build: first[build])
                old = [build for build in as_they_came if keys[build] is None]
                return old + sorted(as_they_came[len(old) :], key=lambda build: keys[build])
        return sorted(first, key=lambda build: first[build])

    def is_unchanged(self, row: int, night: int) -> bool:
        """Tell whether the row's point ran the same as when it was measured last, byte for byte."""
        column = night - self.offset
        before = np.isfinite(self.values[row, :column]).nonzero()[0]
        content = self.content[row]
        return bool(len(before) and content[column] and content[column] == content[before[-1]])

    def scale_since(self, row: int, begin: int, before: float) -> float:
        """Return by what factor a paired row's level before the night `begin`, told as `before`, has changed since.

        The reference's median night changes with the machine, and the row's values with it.
        """
        if row not in self.paired or not before > 0:
            return 1.0
        nights = CHAINED_SCALE_NIGHTS if row in self.chained else SCALE_NIGHTS
        values = self.values[row, : max(0, begin - self.offset)]
        known = values[np.isfinite(values)][-nights:]
        return float(np.median(known)) / before if len(known) else 1.0

    def index_of(self, stamp: str) -> int:
        """Return the number of the first night that is not before `stamp`."""
        return bisect.bisect_left(self.stamps, stamp)

    def fleets(self, night: int) -> dict[str, list[int]]:
        """Group the rows that had a value lately by fleet, in the order they first came."""
        stop = night + 1 - self.offset
        lately = np.isfinite(self.values[:, max(0, stop - GONE_NIGHTS) : stop])
        alive = np.asarray(lately.any(axis=1))
        rows_of_fleet: dict[str, list[int]] = {}
        for index, row in enumerate(self.rows):
            if alive[index]:
                rows_of_fleet.setdefault(row.fleet, []).append(index)
        return rows_of_fleet

    def direction(self, rows: Iterable[int]) -> Direction:
        """Return the direction that all of the rows have; "none" where they differ."""
        directions = {self.rows[row].direction for row in rows}
        return directions.pop() if len(directions) == 1 else "none"

    def machine(self, rows: Iterable[int]) -> str:
        """Return the machine that measures all of the rows; empty where there are several, or none is known."""
        machines = {self.rows[row].machine for row in rows}
        return machines.pop() if len(machines) == 1 else ""

    def version(self, row: int, night: int) -> str:
        """Return the TVM that the row's experiment measured on a night; empty where unknown."""
        return self.versions[self.rows[row].experiment].get(self.stamps[night], "")

    def artifact(self, row: int, night: int) -> str:
        """Return the build of TVM that the row's experiment measured on a night; empty where unknown."""
        return self.build(self.rows[row].experiment, night).artifact or ""

    def build(self, experiment: str, night: int) -> Build:
        return self.builds.get(experiment, {}).get(self.stamps[night], Build())

    def measured(self, experiment: str, night: int) -> Measured | None:
        """Identify the TVM that was measured by its artifact, or by its version where none is recorded."""
        version = self.versions.get(experiment, {}).get(self.stamps[night], "")
        artifact = self.build(experiment, night).artifact
        return Measured(artifact or version, recorded=artifact is not None) if artifact or version else None

    def same(self, experiment: str, nights: Sequence[int]) -> Measured | None:
        """Return the TVM measured on all `nights`; None where it was not one and the same."""
        measured = {self.measured(experiment, night) for night in nights}
        return measured.pop() if len(measured) == 1 else None


def _place_of(version: str) -> Any:
    """Return a key that sorts versions as TVM's history does; None where a version has no place, as a bare commit."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) if "." in version else None
    except InvalidVersion:
        return None


def read_table(home: Home, tonight: str, reach: int | None, again: Iterable[PairsOfNight] = ()) -> Table:
    """Read the home's series up to the night `tonight`, the last `reach` nights (all with None).

    again: what was measured again in pairs, on whatever night.
    """
    names = home.experiments_with_data()
    versions, builds, series = {}, {}, []
    for name in names:
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            versions[name] = {stamp: build for stamp, build in opened.versions(name).items() if stamp <= tonight}
            builds[name] = opened.builds(name)
    stamps = sorted({stamp for builds in versions.values() for stamp in builds})
    offset = 0 if reach is None else max(0, len(stamps) - reach)
    since = stamps[offset] if stamps else ""
    for name in names:
        with store.open_for_reading(home.store_file, home.data(name), name) as opened:
            series += opened.series(name, since=since)
    table = make_table(series, stamps, offset, versions, home.machine())
    table = replace(table, builds=builds, committed=_read_committed(home))
    return _free_of_machine(replace(table, again=_by_series(again, stamps)))


def _read_committed(home: Home) -> dict[str, str]:
    """Read when the commit of each artifact that is built from one was made, as the last nights recorded it."""
    return {
        str(entry["key"]): str(entry["facts"]["committed_utc"])
        for night in home.last_nights(_NIGHTS_OF_ORDER, jobs=False)
        for entry in night.artifacts
        if "key" in entry and "committed_utc" in (entry.get("facts") or {})
    }


def _by_series(again: Iterable[PairsOfNight], stamps: Sequence[str]) -> dict[str, list[Again]]:
    """Group re-measured pairs by the ID of their series; nothing of nights that left no data."""
    nights = {stamp: at for at, stamp in enumerate(stamps)}
    by_series: dict[str, list[Again]] = {}
    for each in again:
        if each.stamp in nights:
            for series, ratio in each.ratios.items():
                facts = Again(nights[each.stamp], each.artifact, each.beside, ratio)
                by_series.setdefault(series, []).append(facts)
    return by_series


def make_table(
    series: Sequence[Series],
    stamps: Sequence[str],
    offset: int,
    versions: Mapping[str, Mapping[str, str]],
    machine: MachineIdentity | None = None,
) -> Table:
    """Make the table of `series` over `stamps[offset:]`; `machine`: that of their home."""
    column = {stamp: index for index, stamp in enumerate(stamps[offset:])}
    beside = [item for item in series if item.metric in RATIOS]
    known = [item for item in series if item.stamps and item.metric not in RATIOS]
    shape = (len(known), len(column))
    values, std, repeats = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
    code, content, alike = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, -1, np.int64)
    places: dict[tuple[str, ...], IntArray] = {}
    for index, item in enumerate(known):
        if item.stamps not in places:
            kept = [(column[stamp], at) for at, stamp in enumerate(item.stamps) if stamp in column]
            places[item.stamps] = np.array(kept, np.int64).reshape(-1, 2).T
        where, source = places[item.stamps]
        values[index, where] = floats(item.values)[source]
        std[index, where] = floats(item.std)[source]
        if item.samples:
            repeats[index, where] = floats(item.samples)[source]
        if item.alike:
            alike[index, where] = counts(item.alike)[source]
        if item.code:
            code[index, where] = integers(item.code)[source]
        if item.content:
            content[index, where] = integers(item.content)[source]
    ratios = _ratios(known, beside, column)
    paired = _find_paired(values, ratios)
    rows = tuple(_rows(known, machine))
    return Table(
        tuple(stamps), offset, rows, values, std, repeats, code, content, alike, versions, ratios=ratios, paired=paired
    )  # fmt: skip


def _ratios(series: Sequence[Series], beside: Sequence[Series], column: Mapping[str, int]) -> Ratios:
    """Pick the ratios of each of `series` from the series of ratios `beside` them."""
    rows = {(_point(item), item.metric): row for row, item in enumerate(series) if item.metric in RATIOS.values()}
    logs, std, pairs = (np.full((len(series), len(column)), np.nan) for _ in range(3))
    for item in beside:
        row = rows.get((_point(item), RATIOS[item.metric]))
        kept = [(column[stamp], at) for at, stamp in enumerate(item.stamps) if stamp in column]
        if row is not None and kept:
            where, source = np.array(kept, np.int64).T
            logs[row, where] = np.log(floats(item.values)[source])
            std[row, where] = floats(item.std)[source]
            pairs[row, where] = floats(item.samples)[source]
    return Ratios(logs, std, pairs)


def _point(item: Series) -> tuple[str, str]:
    return item.experiment, json.dumps(item.labels, sort_keys=True)


def _find_paired(values: FloatArray, ratios: Ratios) -> frozenset[int]:
    """Find the rows judged by their ratios: which have many, or whose times could not be judged either."""
    known = np.isfinite(ratios.logs)
    alone = (np.isfinite(values) & ~known).sum(axis=1)
    count = known.sum(axis=1)
    chosen = (count > 0) & ((count >= ENOUGH_RATIOS) | (alone < FEWEST_ALONE))
    return frozenset(int(row) for row in chosen.nonzero()[0])


def _free_of_machine(table: Table) -> Table:
    """Take the machine out of the values of paired rows.

    Such a value is where its build lies, going by the ratios, times what the reference takes on the median night.
    """
    judged, chained = table.values.copy(), set()
    for row in table.paired:
        measured = table.in_turn(row, len(table.stamps) - 1)
        levels = locate([each.pairs for each in measured], measured[-1].build) if measured else {}
        factor = np.full(judged.shape[1], np.nan)
        for each in measured:
            if each.build in levels:
                factor[each.night - table.offset] = math.exp(levels[each.build])
        known = np.isfinite(factor) & (table.values[row] > 0)
        if known.any():
            judged[row, known] = factor[known] * np.median(table.values[row, known] / factor[known])
        if len({each.pairs.base for each in measured}) > 1:
            chained.add(row)
    return replace(table, values=judged, unjudged=table.values, chained=frozenset(chained))


def _rows(series: Sequence[Series], machine: MachineIdentity | None) -> Iterator[TableRow]:
    for item, key, name in zip(series, naming.keys(series), naming.names(series), strict=True):
        fleet, name_of_fleet = naming.fleet(item, machine), naming.fleet(item)
        facts = (item.experiment, item.metric, item.unit, item.direction)
        of = (name_of_fleet, naming.fleet_kind(item))
        workload = naming.workload_of(item)
        yield TableRow(key, *facts, name, fleet, item.labels, item.kind, *of, item.tolerance, workload)


def last_values(table: Table, row: int, count: int) -> list[float | None]:
    """Return the row's values of the last `count` nights, None where there is none."""
    return [float(value) if math.isfinite(value) else None for value in table.measured_values[row, -count:]]


def finite(values: Iterable[float]) -> FloatArray:
    array = np.asarray(list(values), float)
    return np.asarray(array[np.isfinite(array)])
