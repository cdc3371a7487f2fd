"""A night of a world as the dashboard writes it: data_<stamp>.json of each experiment."""

from __future__ import annotations

import datetime
import functools
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tests.benchmarks.lab import measuring
from tests.benchmarks.lab.measuring import Ratio, Times
from tests.benchmarks.lab.noise import Generator
from tests.benchmarks.lab.rows import Experiment, Row
from tests.benchmarks.lab.world import Build, World
from tvmdash import common
from tvmdash.machine.identity import MachineIdentity
from tvmdash.measure.reduction import processes_interval
from tvmdash.records import SCHEMA_VERSION, Record

FIRST = datetime.datetime(2026, 1, 1, 3, 15, tzinfo=datetime.UTC)
IDENTITY = MachineIdentity("lab", "2026-01-01T03:15:00Z", None, "lab processor")
_PLACES = {"code_size": "code_size", "accuracy": "validation_accuracy", "compile_time": "compile_time"}


@functools.cache
def stamp_of(night: int) -> str:
    return common.stamp_of(FIRST + datetime.timedelta(days=night))


@functools.cache
def night_of(stamp: str) -> int:
    return (common.parse_stamp(stamp) - FIRST).days


@dataclass
class Measured:
    """What was measured in one go: a file by experiment, ratios by row, what it took.

    unchanged: the rows of points that were measured with one pair.
    """

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    ratios: dict[int, Ratio] = field(default_factory=dict)
    seconds: float = 0.0
    unchanged: set[int] = field(default_factory=set)


Before = Mapping[str, Mapping[str, int]]
"""By experiment, how many pairs its last night had of what points ran, as the dashboard tells a run."""


def measure(
    world: World,
    night: int,
    build: Build,
    rows: Iterable[int],
    rng: Generator,
    *,
    beside: Build | None,
    before: Before | None = None,
) -> Measured:
    """One build on one night: the rows that have a value; in pairs with another build where that is given.

    before: what ran `before` is measured with one pair.
    """
    there = [row for row in rows if world.present[row, night]]
    done = Measured()
    for experiment in world.experiments:
        own = [row for row in there if world.rows[row].experiment is experiment]
        pairs = beside is not None and not experiment.is_fixed and not experiment.numbers
        if own and experiment.numbers:
            done.files[experiment.name] = _foreign(world, night, build, own, rng)
        elif own:
            known = (before or {}).get(experiment.name, {})
            done.files[experiment.name] = _template(
                world, night, build, beside if pairs else None, own, rng, done, known
            )
        if pairs:
            more = [row for row in own if row not in done.unchanged]
            done.seconds += _seconds(world, own, 2) + _seconds(world, more, 2 * (measuring.PAIRS - 1))
        else:
            done.seconds += _seconds(world, own, measuring.ALONE)
    return done


def _seconds(world: World, rows: list[int], processes: int) -> float:
    points = {world.rows[row].point for row in rows}
    return processes * (measuring.START_S + measuring.TIMED_S * len(points)) if points else 0.0


def _template(
    world: World,
    night: int,
    build: Build,
    reference: Build | None,
    rows: list[int],
    rng: Generator,
    done: Measured,
    before: Mapping[str, int],
) -> dict[str, Any]:
    times = [row for row in rows if world.is_time[row]]
    count = measuring.PAIRS if reference else measuring.ALONE
    tonight = measuring.measure(world, night, build, times, count, rng)
    own, other, ratios = _Side(world, night, build, tonight, count), None, dict[int, Ratio]()
    if reference is not None:
        beside = measuring.measure(world, night, reference, times, count, rng)
        other = _Side(world, night, reference, beside, count)
        ratios = measuring.compare(world, night, (build, reference), (tonight, beside), rng)
    points: dict[str, list[int]] = {}
    for row in rows:
        points.setdefault(world.rows[row].point, []).append(row)
    for row, ratio in ratios.items():
        if world.rows[row].metric == "run_time" and world.pairable[row, night]:
            same = before.get(own.content(row), 0) >= measuring.PAIRS
            done.ratios[row] = ratio.first_pair() if same else ratio
            done.unchanged.update(points[world.rows[row].point] if same else ())
    sides = [replace(side, once=frozenset(done.unchanged)) if side else None for side in (own, other)]
    own, other = sides[0] or own, sides[1]
    records = [_record(own, other, members, done.ratios, before) for members in points.values()]
    experiment = world.rows[rows[0]].experiment
    return {
        "schema_version": SCHEMA_VERSION,
        "records": records,
        **_identity(world, night, experiment, build, reference),
    }


def _identity(
    world: World, night: int, experiment: Experiment, build: Build, reference: Build | None = None
) -> dict[str, Any]:
    """What the dashboard adds to a data.json."""
    rows = world.pick(experiment.name)
    own = f"{world.own[rows, night].sum():.6f}"
    identity = {
        "stamp": stamp_of(night),
        "experiment": experiment.name,
        "machine": IDENTITY.name,
        "fingerprint": f"code-{own}",
        "config": {},
        "seed": 1,
        "repository": {},
        "artifact": _artifact(build),
        "reference": _artifact(reference) if reference else None,
    }
    return {"timestamp": stamp_of(night), "tvm_hash": build.version, "night": identity}


def _artifact(build: Build) -> dict[str, Any]:
    return {"key": build.key, "provider": "git", "version": "0.27.dev0", "commit": build.version, "facts": {}}


@dataclass(frozen=True)
class _Side:
    """One of the TVMs of a night and what its processes measured, in ms; once: the rows that one process measured."""

    world: World
    night: int
    build: Build
    times: Times
    processes: int
    once: frozenset[int] = frozenset()

    def of(self, row: int) -> list[float]:
        """The middle sample of each process, by the wall clock."""
        values = self.times.wall[self.times.rows.index(row)]
        return [math.exp(value) for value in values[: self.count(row)].tolist()]

    def count(self, row: int) -> int:
        """How many processes measured it."""
        return 1 if row in self.once else self.processes

    def content(self, row: int) -> str:
        """All that the row's point ran, the experiment's own code with it."""
        return f"{self.build.content(row)} {self.world.own[row, self.night]:.9f}"

    def exact(self, row: int) -> float:
        """A number without noise."""
        given = self.world.rows[row]
        value = given.base * math.exp(float(self.build.level[row]))
        return float(round(value)) if given.kind == "exact" else round(value, 6)

    def info(self, rows: list[int]) -> dict[str, Any]:
        """The point's numbers that are no run times, by their names in additional_info."""
        numbers: dict[str, Any] = {}
        for row in rows:
            metric = self.world.rows[row].metric
            if metric in _PLACES:
                noisy = self.world.is_time[row]
                numbers[_PLACES[metric]] = statistics.median(self.of(row)) if noisy else self.exact(row)
        return numbers

    def code(self, row: int) -> str:
        """The hash of the code that is timed."""
        return f"{self.world.rows[row].point} {self.build.code[row]}"


def _record(
    own: _Side, other: _Side | None, rows: list[int], ratios: Mapping[int, Ratio], before: Mapping[str, int]
) -> dict[str, Any]:
    """One point; `rows` are its series, the run time among them."""
    world = own.world
    timed = next(row for row in rows if world.rows[row].metric == "run_time")
    exact = [_PLACES[world.rows[row].metric] for row in rows if not world.is_time[row]]
    info = {
        "docker_tag": None,
        "docker_hash": None,
        **_statistics(own.of(timed), world.rows[timed]),
        **own.info(rows),
        "module_hash": own.code(timed),
        "alike": dict.fromkeys(exact, own.processes) if own.count(timed) > 1 else {},
    }
    if other is not None and timed in ratios:
        info["paired"] = {"ratios": {"run_time": _ratio(ratios[timed])}, "reference": _of_reference(other, rows, timed)}
        ran = own.content(timed)
        info["content"] = {"hash": ran, "pairs": len(ratios[timed].cpu) + before.get(ran, 0)}
    median = info["execution_elapsed_ms_median"]
    return asdict(_columns(world, own.night, world.rows[timed], info, median))


def _statistics(medians: list[float], row: Row) -> dict[str, Any]:
    median = statistics.median(medians)
    within = row.noise.sample if row.noise else 0.0
    reach = 2 * median * within / math.sqrt(measuring.SAMPLES)  # one process knows nothing of others
    low, high = processes_interval(median, medians) if len(medians) > 1 else (median - reach, median + reach)
    between = {"spread_between_percent": 100 * statistics.stdev(medians) / median} if len(medians) > 1 else {}
    return {
        **between,
        "execution_elapsed_ms_median": median,
        "execution_elapsed_ms_low": low,
        "execution_elapsed_ms_high": high,
        "samples": measuring.SAMPLES * len(medians),
        "processes": len(medians),
        "spread_within_percent": 100 * within,
    }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    both = ratio.combined
    numbers = {"ratio": both.ratio, "low": both.low, "high": both.high}
    known = {name: number for name, number in numbers.items() if number is not None}
    return {"clock": "cpu", "log_ratios": ratio.cpu, "wall_log_ratios": ratio.wall, **known}


def _of_reference(other: _Side, rows: list[int], timed: int) -> dict[str, Any]:
    metrics = {other.world.rows[row].metric: row for row in rows}
    values = {
        name: statistics.median(other.of(row)) if other.world.is_time[row] else other.exact(row)
        for name, row in metrics.items()
    }
    return {**values, "module_hash": other.code(timed)}


def _columns(world: World, night: int, row: Row, info: Mapping[str, Any], median: float) -> Record:
    sample = row.noise.sample if row.noise else 0.0
    between = info.get("spread_between_percent", 0.0) / 100
    return Record(
        timestamp=f"{FIRST + datetime.timedelta(days=night):%Y-%m-%dT%H:%M:%S+00:00}",
        schema_version=SCHEMA_VERSION,
        additional_info=info,
        workload=row.point,
        workload_args={"batch": 1},
        engine="tvm",
        engine_version="0.27.dev0",
        engine_config={},
        target='{"kind": "llvm"}',
        build_config={"opt_level": 3},
        env_name=IDENTITY.name,
        hw_model=IDENTITY.hw_model,
        runtime_config={"threads": 1},
        execution_config={"number": 10, "repeat": measuring.SAMPLES},
        execution_elapsed_ms_mean=median,
        execution_elapsed_ms_std=median * math.hypot(sample, between),
    )


def _foreign(world: World, night: int, build: Build, rows: list[int], rng: Generator) -> dict[str, Any]:
    """Nested numbers, as `$.numbers.NAME`, and what is declared of them."""
    times = [row for row in rows if world.is_time[row]]
    taken = measuring.measure(world, night, build, times, measuring.ALONE, rng)
    side = _Side(world, night, build, taken, measuring.ALONE)
    numbers: dict[str, float] = {}
    declared = {}
    for row in rows:
        number = world.rows[row].number
        assert number is not None
        if number.signed:
            value = number.base + float(build.level[row]) + number.sd * rng.standard_normal()
        else:
            value = statistics.median(side.of(row)) if world.is_time[row] else side.exact(row)
        name = number.path.removeprefix("$.numbers.")
        numbers[name] = value
        if number.declared:
            declared[name] = {"name": name, "direction": number.direction, "kind": number.kind}
    experiment = world.rows[rows[0]].experiment
    return {"numbers": numbers, "metrics": declared, **_identity(world, night, experiment, build)}
