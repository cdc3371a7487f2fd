"""Homes with nights whose numbers are given, for tests of what is told about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvmdash import common
from tvmdash.dashboard_info import BLOCKED, COMPLETE, FAILED, OK, Home, JobResult, Night, StepResult

STAMP = "20261121T031500Z"
HOSTILE = "a|b <img src=x> `c` *d* [e](f) \u202eg\nh"
MACHINE = {"host": "bench", "hw_model": "EPYC x 2", "cpu_model": "EPYC 9654", "cores": 2, "memory_bytes": 16e9}


def record(workload: str, ms: float | None, engine: str = "tvm", **parts: Any) -> dict[str, Any]:
    """A record; `parts` are columns, or facts of additional_info."""
    columns = ("workload_args", "engine_config", "build_config", "runtime_config", "target")
    info: dict[str, Any] = {"docker_tag": None, "docker_hash": None}
    if ms is not None:
        info |= {"execution_elapsed_ms_median": ms, "execution_elapsed_ms_low": ms * 0.9}
        info |= {"execution_elapsed_ms_high": ms * 1.1, "samples": 10}
    return {
        "timestamp": "2026-11-21T03:20:00+00:00",
        "schema_version": 1,
        "additional_info": info | {name: value for name, value in parts.items() if name not in columns},
        "workload": workload,
        "engine": engine,
        "engine_version": "1.2" if engine != "tvm" else "0.27.0",
        "env_name": "test",
        "hw_model": "EPYC x 2",
        "execution_config": {},
        "execution_elapsed_ms_mean": ms or 1.0,
        "execution_elapsed_ms_std": 0.1,
        **{name: parts.get(name, {} if name != "target" else "llvm") for name in columns},
    }


def data(records: Sequence[Mapping[str, Any]], failures: Sequence[Mapping[str, Any]] = (), **night: Any) -> Any:
    """A data file's value."""
    return {
        "schema_version": 1,
        "tvm_hash": "c0ffee",
        "environment": {"machine": MACHINE},
        "records": list(records),
        "failures": list(failures),
        "night": {"stamp": STAMP, **night},
    }


def job(name: str, failure: str = "", **words: str) -> JobResult:
    """An experiment that ran, or one whose run failed."""
    steps = [StepResult("setup", OK, "", STAMP, 12.0), StepResult("run", OK, "", STAMP, 90.0)]
    if failure:
        steps[1:] = [StepResult("run", FAILED, failure, STAMP, 5.0), StepResult("analyze", BLOCKED, "", STAMP)]
    return JobResult("experiment", name, words.get("title", ""), words.get("description", ""), tuple(steps))


def home(root: Path, values: Mapping[str, Any], jobs: Sequence[JobResult] | None = None) -> Home:
    """A home with one night: data by experiment; by default each of them ran."""
    made = Home(root)
    artifact = {"key": "wheel-x", "provider": "wheel", "version": "0.27.0", "commit": "c0ffee", "facts": {}}
    ran = [job(name) for name in values] if jobs is None else jobs
    night = Night(STAMP, COMPLETE, elapsed_s=125.0, seed=7, artifacts=(artifact,), jobs=tuple(ran))
    made.nights.mkdir(parents=True)
    common.write_json(made.night_file(STAMP), night.to_json(), durable=False)
    for name, value in values.items():
        made.data(name).mkdir(parents=True)
        common.write_json(made.data_file(name, STAMP), value, durable=False)
    return made
