"""A night of a world as the dashboard writes it: data_<stamp>.json of each experiment."""

from __future__ import annotations

import datetime
import functools
import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.benchmarks.lab import measuring
from tests.benchmarks.lab.measuring import Ratio, Times
from tests.benchmarks.lab.noise import Generator
from tests.benchmarks.lab.rows import Experiment, Row
from tests.benchmarks.lab.world import Build, World
from tvmdash import common
from tvmdash.machine.identity import MachineIdentity
from tvmdash.records import SCHEMA_VERSION, Record
from tvmdash.stats.reduction import processes_interval

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
    """What was measured in one go: a file by experiment, ratios by row, what it took."""

    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    ratios: dict[int, Ratio] = field(default_factory=dict)
    seconds: float = 0.0


def measure(
    world: World, night: int, build: Build, rows: Iterable[int], rng: Generator, *, beside: Build | None
) -> Measured:
    """One build on one night: the rows that have a value; in pairs with another build where that is given."""
    there = [row for row in rows if world.present[row, night]]
    done = Measured()
    for experiment in world.experiments:
        own = [row for row in there if world.rows[row].experiment is experiment]
        pairs = beside is not None and not experiment.is_fixed and not experiment.numbers
        if own and experiment.numbers:
            done.files[experiment.name] = _foreign(world, night, build, own, rng)
        elif own:
            done.files[experiment.name] = _template(world, night, build, beside if pairs else None, own, rng, done)
        done.seconds += _seconds(world, own, 2 * measuring.PAIRS if pairs else measuring.ALONE)
    return done


def _seconds(world: World, rows: list[int], processes: int) -> float:
    points = {world.rows[row].point for row in rows}
    return processes * (measuring.START_S + measuring.TIMED_S * len(points)) if points else 0.0


def _template(
    world: World, night: int, build: Build, reference: Build | None, rows: list[int], rng: Generator, done: Measured
) -> dict[str, Any]:
    times = [row for row in rows if world.is_time[row]]
    count = measuring.PAIRS if reference else measuring.ALONE
    tonight = measuring.measure(world, night, build, times, count, rng)
    own, other, ratios = _Side(world, night, build, tonight, count), None, dict[int, Ratio]()
    if reference is not None:
        beside = measuring.measure(world, night, reference, times, count, rng)
        other = _Side(world, night, reference, beside, count)
        ratios = measuring.compare(world, night, (build, reference), (tonight, beside), rng)
    done.ratios |= {
        row: ratio
        for row, ratio in ratios.items()
        if world.rows[row].metric == "run_time" and world.pairable[row, night]
    }
    points: dict[str, list[int]] = {}
    for row in rows:
        points.setdefault(world.rows[row].point, []).append(row)
    records = [_record(own, other, members, done.ratios) for members in points.values()]
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
    """One of the TVMs of a night and what its processes measured, in ms."""

    world: World
    night: int
    build: Build
    times: Times
    processes: int

    def of(self, row: int) -> list[float]:
        """The middle sample of each process, by the wall clock."""
        values = self.times.wall[self.times.rows.index(row)]
        return [math.exp(value) for value in values.tolist()]

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


def _record(own: _Side, other: _Side | None, rows: list[int], ratios: Mapping[int, Ratio]) -> dict[str, Any]:
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
        "alike": dict.fromkeys(exact, own.processes),
    }
    if other is not None and timed in ratios:
        info["paired"] = {"ratios": {"run_time": _ratio(ratios[timed])}, "reference": _of_reference(other, rows, timed)}
    median = info["execution_elapsed_ms_median"]
    return asdict(_columns(world, own.night, world.rows[timed], info, median))


def _statistics(medians: list[float], row: Row) -> dict[str, Any]:
    median = statistics.median(medians)
    low, high = processes_interval(median, medians)
    return {
        "execution_elapsed_ms_median": median,
        "execution_elapsed_ms_low": low,
        "execution_elapsed_ms_high": high,
        "samples": measuring.SAMPLES * len(medians),
        "processes": len(medians),
        "spread_between_percent": 100 * statistics.stdev(medians) / median,
        "spread_within_percent": 100 * (row.noise.sample if row.noise else 0.0),
    }


def _ratio(ratio: Ratio) -> dict[str, Any]:
    both = ratio.combined
    numbers = {"ratio": both.ratio, "low": both.low, "high": both.high}
    return {"clock": "cpu", "log_ratios": ratio.cpu, "wall_log_ratios": ratio.wall, **numbers}


def _of_reference(other: _Side, rows: list[int], timed: int) -> dict[str, Any]:
    metrics = {other.world.rows[row].metric: row for row in rows}
    values = {
        name: statistics.median(other.of(row)) if other.world.is_time[row] else other.exact(row)
        for name, row in metrics.items()
    }
    return {**values, "module_hash": other.code(timed)}


def _columns(world: World, night: int, row: Row, info: Mapping[str, Any], median: float) -> Record:
    sample = row.noise.sample if row.noise else 0.0
    between = info["spread_between_percent"] / 100
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
