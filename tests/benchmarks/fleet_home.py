"""A home that many machines measure for, as its nights leave it: `plant` writes years of them in minutes.

Each machine measures the same points on its own levels, with noise, steps and ratios to a reference of its own. The
first night is taken in by the store itself; the others repeat its points under other stamps, times what each night did.
Data files before the last nights are links to one of the same experiment: nobody reads them again.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REPO = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(REPO), str(REPO / "tests"), str(REPO / "shared" / "python")]
import make_site_home  # noqa: E402 - from the repository
from make_site_home import STAGES, SUBSYSTEMS, TITLES  # noqa: E402
from site_truth import Truth  # noqa: E402

from tvmdash import common  # noqa: E402
from tvmdash.dashboard_info import (  # noqa: E402
    COMPLETE,
    HOST_SIGN,
    OK,
    RUNNING,
    Home,
    HostNight,
    HostState,
    JobResult,
    Night,
    Reference,
    ReferenceChoice,
    StepResult,
    host_of,
)  # fmt: skip
from tvmdash.machine import identity  # noqa: E402
from tvmdash.machine.identity import MachineIdentity  # noqa: E402
from tvmdash.series import packed, store  # noqa: E402

OWN = "sample"
"""The name of the home's own machine."""
REFERENCE = {"key": "wheel-0.26.0", "provider": "wheel", "version": "0.26.0", "commit": None, "facts": {}}
PAIRS = (-0.002, 0.0, 0.0, 0.002)
"""How the ratios of a night's pairs lie around their mean (logarithms)."""


@dataclass
class Machines:
    """The home's own machine and `hosts - 1` others, each with about `series` series, over `nights` nights."""

    hosts: int
    series: int
    nights: int
    truth: Truth = field(init=False)
    _moves: dict[str, Moves] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.truth = Truth(self.series, self.nights)

    @property
    def names(self) -> list[str]:
        """Of the hosts in the names of jobs; the home's own machine has none."""
        return ["", *(f"h{number:03}" for number in range(1, self.hosts))]

    def jobs(self, host: str) -> list[str]:
        """What the host measures."""
        return [f"{name}{HOST_SIGN * bool(host)}{host}" for name in self.truth.experiments()]

    @property
    def every_job(self) -> list[str]:
        return [job for host in self.names for job in self.jobs(host)]

    def moves(self, host: str) -> Moves:
        """What each night did to the points on one machine."""
        if host not in self._moves:
            self._moves = {host: Moves.of(self.truth, host)}  # one is enough, and they are large
        return self._moves[host]

    def data(self, job: str, night: int) -> dict[str, Any]:
        """The data file that the job's night leaves."""
        host = host_of(job)
        name, machine = job.partition(HOST_SIGN)[0], host or OWN
        value = self.truth.data(name, 0)
        version, stamp = self.truth.version(night), self.truth.stamp(night)
        rows = [row for row, spot in enumerate(self.truth.spots) if spot.experiment == name]
        for row, record in zip(rows, value["records"], strict=True):
            self.moves(host).put(record, row, night)
            record |= {"env_name": machine, "timestamp": common.parse_stamp(stamp).isoformat()}
        artifact = {**value["night"]["artifact"], "key": f"git-{version}", "commit": version}
        about = {"stamp": stamp, "experiment": job, "machine": machine, "artifact": artifact, "reference": REFERENCE}
        value["environment"]["machine"]["host"] = f"bench-{machine}"
        return {**value, "timestamp": stamp, "tvm_hash": version, "failures": [], "night": {**value["night"], **about}}


@dataclass(frozen=True)
class Moves:
    """By point and night: how long a run and its compilation took (factors), and which module was run."""

    run: NDArray[np.float64]
    beside: NDArray[np.float64]
    compile: NDArray[np.float64]
    size: NDArray[np.float64]

    @classmethod
    def of(cls, truth: Truth, host: str) -> Moves:
        rng = np.random.default_rng([truth.seed, *host.encode()])
        shape = len(truth.spots), truth.nights
        own = rng.uniform(0.5, 2.0)
        sigma = np.array([spot.sigma for spot in truth.spots])[:, None]
        level = np.cumsum(0.06 * (rng.random(shape) < 0.0003) * rng.choice([-1, 1], shape), axis=1)
        times = np.exp(level + sigma * rng.standard_normal(shape))
        beside = np.exp(level + 0.002 * rng.standard_normal(shape))
        compiling = np.exp(0.01 * rng.standard_normal(shape))
        return cls(
            own * times, beside, own * compiling, 1.0 + 64 * np.cumsum(rng.random(shape) < 0.0003, axis=1) / 2**14
        )

    def put(self, record: dict[str, Any], row: int, night: int) -> None:
        """Make the night's record of the model's."""
        info, factor = record["additional_info"], float(self.run[row, night])
        for name in ("median", "min", "low", "high"):
            info[f"execution_elapsed_ms_{name}"] *= factor
        record["execution_elapsed_ms_mean"] *= factor
        record["execution_elapsed_ms_std"] *= factor
        info["compile_time"] *= float(self.compile[row, night])
        info["code_size"] = round(info["code_size"] * float(self.size[row, night]))
        info["module_hash"] = f"{row:04x}{night // 9:08x}"
        info["alike"] = {"code_size": 4, "device_memory_usage": 4}
        if record["engine"] == "tvm":
            info["paired"] = _paired(float(self.beside[row, night]), info)


def _paired(ratio: float, info: dict[str, Any]) -> dict[str, Any]:
    """As an experiment says it of points that were measured in turn with the reference."""
    logs = [float(np.log(ratio)) + log for log in PAIRS]
    said = {"clock": "cpu", "log_ratios": logs, "wall_log_ratios": logs, "ratio": ratio, "low": ratio * 0.997,
            "high": ratio * 1.003}  # fmt: skip
    reference = {"run_time": info["execution_elapsed_ms_median"] / ratio, "compile_time": info["compile_time"],
                 "code_size": info["code_size"], "module_hash": "0" * 12}  # fmt: skip
    return {"ratios": {"run_time": said}, "reference": reference}


def plant(root: Path, machines: Machines, *, files: int) -> Home:
    """The home `root` after all nights but the last; `files` of them have data files of their own."""
    home, truth = Home(root), machines.truth
    home.nights.mkdir(parents=True)
    make_site_home.write_configs(home, truth)
    _write_config(home, machines)
    _write_machine(home.machine_file, OWN)
    for job in machines.every_job:
        write_data(home, machines, job, 0)
    with store.open_for_writing(home.store_file) as opened:
        for job in machines.every_job:
            opened.ingest(home.data(job), job)
    _repeat(home, machines)
    first = max(1, machines.nights - 1 - files)
    for job in machines.every_job:
        for night in range(1, machines.nights - 1):
            if night >= first:
                write_data(home, machines, job, night)
            else:
                os.link(home.data_file(job, truth.stamp(0)), home.data_file(job, truth.stamp(night)))
    for night in range(machines.nights - 1):
        write_night(home, machines, night, RUNNING if night == machines.nights - 2 else COMPLETE)
        for host in machines.names[1:]:
            write_host_night(home.hosts / host / "nights" / f"{truth.stamp(night)}.json", machines, host, night)
    for host in machines.names[1:]:
        _write_machine(home.hosts / host / identity.FILE, host)
    return home


def _write_config(home: Home, machines: Machines) -> None:
    value = common.read_json(home.config_file)
    hosts = {host: {"launcher": "ssh", "address": host, "folder": "/var/tmp/d"} for host in machines.names[1:]}
    common.write_json(home.config_file, {**value, "hosts": hosts})
    for name in machines.truth.experiments():
        file = home.config("experiment", name) / "config.json"
        common.write_json(file, {**common.read_json(file), "hosts": ["local", *hosts]})


def _write_machine(path: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    identity.write(path, MachineIdentity(name, "20200101T000000Z", "0" * 32, "AMD EPYC 9654 x 2"))


def write_data(home: Home, machines: Machines, job: str, night: int) -> None:
    """One night's data file of one job."""
    path = home.data_file(job, machines.truth.stamp(night))
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, machines.data(job, night), durable=False)


def write_night(home: Home, machines: Machines, night: int, state: str) -> None:
    """The record of a night with the jobs of all machines."""
    stamp, version = machines.truth.stamp(night), machines.truth.version(night)
    jobs = [_job(job, stamp, night) for job in machines.every_job]
    steps = (StepResult("precheck", OK, "good", stamp), StepResult("run", OK, "good", stamp, 1.5))
    others = [JobResult("subsystem", name, name, "", steps) for name in SUBSYSTEMS if name != "website"]
    hosts = [HostNight(host, HostState.MEASURED, "", f"node-{host}", "AMD EPYC 9654 x 2", 0.1, 3000.0)
             for host in machines.names[1:]]  # fmt: skip
    artifact = {"key": f"git-{version}", "provider": "git", "version": "0.27.dev0", "commit": version, "facts": {}}
    beside = Reference(artifact["key"], "wheel-0.26.0", "wheel", "0.26.0", None, ReferenceChoice.AUTO)
    record = Night(
        stamp, state, ended=None if state == RUNNING else stamp, elapsed_s=3700.0, seed=night,
        repository={"commit": "7de98901c0ffee", "dirty": False}, artifacts=(artifact,), jobs=(*jobs, *others),
        references=(beside,), hosts=tuple(hosts),
    )  # fmt: skip
    common.write_bytes(home.night_file(stamp), common.dump_json(record.to_json()).encode(), durable=False)


def write_host_night(path: Path, machines: Machines, host: str, night: int) -> None:
    """What a host's own record of a night says."""
    stamp = machines.truth.stamp(night)
    jobs = tuple(_job(job, stamp, night) for job in machines.jobs(host))
    path.parent.mkdir(parents=True, exist_ok=True)
    record = Night(stamp, COMPLETE, ended=stamp, elapsed_s=3000.0, seed=night, jobs=jobs)
    common.write_bytes(path, common.dump_json(record.to_json()).encode(), durable=False)


def _job(job: str, stamp: str, night: int) -> JobResult:
    steps = tuple(StepResult(stage, OK, "good", stamp, 20.0 + night % 7) for stage in STAGES)
    name = job.partition(HOST_SIGN)[0]
    return JobResult("experiment", job, TITLES.get(name, name), "What it measures, in a sentence or two.", steps)


# --- the store --------------------------------------------------------------------------------------------------------


def _repeat(home: Home, machines: Machines) -> None:
    """The points of all nights after the first and before the last, as `ingest` would have put them."""
    connection = sqlite3.connect(home.store_file)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -200000")
    with connection:
        for host in machines.names:
            for job in machines.jobs(host):
                _repeat_job(connection, machines, job)
    connection.close()


def _repeat_job(connection: sqlite3.Connection, machines: Machines, job: str) -> None:
    truth, nights = machines.truth, range(1, machines.nights - 1)
    first, stamps = truth.stamp(0), [truth.stamp(night) for night in nights]
    row = connection.execute("SELECT points FROM _packed WHERE experiment = ?", (job,)).fetchone()
    model = np.frombuffer(row[0], packed._FIELDS)
    factors = np.ones((len(model), len(nights)))
    codes = np.tile(model["code"][:, None], (1, len(nights)))
    for at, (spot, metric) in enumerate(_points_of(connection, machines, job, model["number"])):
        factors[at] = _factors(machines.moves(host_of(job)), spot, metric, slice(1, machines.nights - 1))
        if metric == "code_size":  # in whole bytes
            factors[at] = np.round(model["value"][at] * factors[at]) / model["value"][at]
        if metric == "run_time":
            codes[at] = [store.code_number(f"{spot:04x}{night // 9:08x}") for night in nights]
    table = np.repeat(model[:, None], len(nights), axis=1)
    for name in ("value", "low", "high"):
        table[name] *= factors
    table["code"] = codes
    for at in range(len(nights)):
        connection.execute("INSERT INTO _packed VALUES (?, ?, ?)", (job, stamps[at], table[:, at].tobytes()))
    for series in table:
        rows = zip(stamps, *(_cells(series[name]) for name in _COLUMNS), strict=True)
        connection.executemany(_INSERT, ((int(series["number"][0]), *row) for row in rows))
    versions = [truth.version(night) for night in nights]
    rest = "fingerprint, reference, reference_version, machine, failures, error, facts"
    query = f"INSERT INTO runs SELECT ?, experiment, ?, ?, {rest} FROM runs WHERE experiment = ? AND night = ?"
    connection.executemany(
        query, ((stamp, version, f"git-{version}", job, first) for stamp, version in zip(stamps, versions, strict=True))
    )


_COLUMNS = ("value", "std", "low", "high", "samples", "code", "alike", "content")
_INSERT = f"INSERT INTO _points (series, stamp, {', '.join(_COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


def _cells(column: NDArray[Any]) -> list[Any]:
    unknown = np.isnan(column) if column.dtype.kind == "f" else column < 0
    return [None if hole else value for value, hole in zip(column.tolist(), unknown.tolist(), strict=True)]


def _points_of(
    connection: sqlite3.Connection, machines: Machines, job: str, numbers: NDArray[Any]
) -> Iterator[tuple[int, str]]:
    """Which point and metric each series is of."""
    name = job.partition(HOST_SIGN)[0]
    spots = {
        json.dumps([spot.workload, spot.engine, spot.build], sort_keys=True): row
        for row, spot in enumerate(machines.truth.spots)
        if spot.experiment == name
    }
    query = "SELECT number, metric, labels FROM _series WHERE experiment = ?"
    known = {number: (metric, json.loads(labels)) for number, metric, labels in connection.execute(query, (job,))}
    for number in numbers.tolist():
        metric, labels = known[number]
        spot = [labels["workload"], labels["engine"], labels["build_config"]]
        yield spots[json.dumps(spot, sort_keys=True)], metric


def _factors(moves: Moves, spot: int, metric: str, nights: slice) -> NDArray[np.float64]:
    """The nights' values over the first night's."""
    own = {
        "run_time": moves.run,
        "run_time_ratio": moves.beside,
        "compile_time": moves.compile,
        "code_size": moves.size,
    }
    if metric not in own:
        return np.ones(nights.stop - nights.start)
    return np.asarray(own[metric][spot, nights] / own[metric][spot, 0])
