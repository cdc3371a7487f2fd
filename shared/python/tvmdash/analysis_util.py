"""From the samples of trials to records."""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tvmdash.machine import devices
from tvmdash.measure import content, under_load
from tvmdash.measure.capture import Trial
from tvmdash.measure.capture_format import KNOWN_OPERATORS
from tvmdash.measure.reduction import Reduced, find_doubts, reduce_processes
from tvmdash.records import SCHEMA_VERSION, Failure, Record, description
from tvmdash.records.functions import hash_functions, read_functions
from tvmdash.records.metrics import COMPILE_CPU_TIME, MAY_BE_EXACT, METRICS, read_own

OPERATORS = "operators"
"""A trial's fact: milliseconds by operator in each profiled run. In a record: the state of that measurement."""
_OF_EACH_PROCESS = ("compile_time", "device_time", "transfer_time", under_load.ENERGY)
"""Facts that every process of a point has anew; the record has their median."""
_OWN_PLACE = frozenset(
    (
        "load_before",
        "load_after",
        "execution_config",
        *_OF_EACH_PROCESS,
        COMPILE_CPU_TIME,
        under_load.THROTTLED,
        content.FACT,
        description.FACT,
        OPERATORS,
        KNOWN_OPERATORS,
    )
)
"""Facts of a trial that do not go into additional_info as they are."""
_DIGITS = 5
"""Significant digits of a sample in a record: finer than any clock; raw data has all."""
EndedBy = Callable[[Sequence[Trial], Reduced], str]
"""Returns why the measurement of these trials' point ended."""
Beside = Callable[[Sequence[Trial]], Mapping[str, Any]]
"""Returns the facts that a reference measured in turn with these trials of a point adds to the record."""


def reduce(
    trials: Iterable[Trial],
    ended_by: EndedBy | None = None,
    beside: Beside | None = None,
    *,
    name_engines: bool = False,
) -> tuple[list[Record], list[Failure]]:
    """Return a record for each point with a trustworthy answer and a failure for each other one.

    A trial is one process's. A point measured in several gives one record; if one of them was wrong, it failed.
    With `name_engines` the values of a failure say its engine.
    """
    records, failures = [], []
    for group in group_by_point(trials):
        wrong = next((trial for trial in group if trial.error), None)
        if wrong is not None:
            failures.append(failure_of(wrong.point, wrong.error or "", name_engine=name_engines))
        else:
            records.append(_record(group, ended_by, beside))
    return records, failures


def group_by_point(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Group trials by point, in the order of first appearance."""
    by_point: dict[str, list[Trial]] = {}
    for trial in trials:
        by_point.setdefault(json.dumps(trial.point, sort_keys=True), []).append(trial)
    return list(by_point.values())


def failure_of(point: Mapping[str, Any], error: str, *, name_engine: bool) -> Failure:
    """Make a Failure of a point as raw data holds it."""
    engine = {"engine": point["engine"]} if name_engine else {}
    return Failure(point["workload"], {**engine, **point["values"]}, error)


def _record(trials: Sequence[Trial], ended_by: EndedBy | None, beside: Beside | None) -> Record:
    first = trials[0]
    processes = [[sample.ms for sample in trial.samples] for trial in trials]
    reduced = reduce_processes(processes)
    machine, engine = first.process["machine"], first.process["engine"]
    columns, described = description.describe(first.point["columns"], _tell(first))
    doubts = find_doubts(reduced, processes, [{**trial.facts, "cores": machine["cores"]} for trial in trials])
    info = {
        "docker_tag": machine["docker_tag"],
        "docker_hash": machine["docker_hash"],
        description.FACT: described or None,
        **describe_statistics(reduced),
        description.SAMPLES: [[float(f"{ms:.{_DIGITS}g}") for ms in process] for process in processes],
        "doubts": [doubt.words for doubt in doubts],
        "doubt_kinds": [doubt.kind for doubt in doubts],
        "ended_by": ended_by(trials, reduced) if ended_by else None,
        **{name: value for name, value in first.facts.items() if name not in _OWN_PLACE},
        **{name: _find_median(trials, name) for name in (*_OF_EACH_PROCESS, *_list_own(first, exact=False))},
        "alike": _count_alike(trials) or None,
        **(beside(trials) if beside else {}),
        "load_before": first.facts["load_before"],
        "load_after": trials[-1].facts["load_after"],
    }
    started = datetime.datetime.fromtimestamp(first.started_ns // 10**9, datetime.UTC)
    return Record(
        timestamp=started.isoformat(),
        schema_version=SCHEMA_VERSION,
        additional_info={
            name: value for name, value in info.items() if value is not None or name.startswith("docker_")
        },
        workload=description.name_workload(first.point["workload"], first.facts.get(description.DEFINITION)),
        workload_args=columns["workload_args"],
        engine=first.point["engine"],
        engine_version=description.name_version(engine["version"], engine["tvm_hash"]),
        engine_config=columns["engine_config"],
        target=first.point["target"],
        build_config=columns["build_config"],
        env_name=first.process["env_name"],
        hw_model=first.facts[devices.FACT]["model"] if devices.FACT in first.facts else machine["hw_model"],
        runtime_config=columns["runtime_config"],
        execution_config=first.facts["execution_config"],
        execution_elapsed_ms_mean=reduced.mean,
        execution_elapsed_ms_std=reduced.std,
    )


def _tell(trial: Trial) -> dict[str, dict[str, Any]]:
    """Return what process and point add to the point's own values, by the record's columns."""
    of_process, of_point = (facts.get(description.FACT, {}) for facts in (trial.process, trial.facts))
    return {name: {**of_process.get(name, {}), **of_point.get(name, {})} for name in description.COLUMNS}


def describe_statistics(reduced: Reduced) -> dict[str, Any]:
    return {
        "execution_elapsed_ms_median": reduced.median,
        "execution_elapsed_ms_min": reduced.min,
        "execution_elapsed_ms_low": reduced.low,
        "execution_elapsed_ms_high": reduced.high,
        "samples": reduced.count,
        "processes": reduced.processes,
        "spread_between_percent": _make_percent(reduced.between),
        "spread_within_percent": _make_percent(reduced.within),
    }


def _make_percent(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 3)


def _count_alike(trials: Sequence[Trial]) -> dict[str, int]:
    """Count the processes that agree on each size, count or accuracy, by its name; 0 where they differ.

    One process alone proves nothing. A number that is a sum over functions is alike where each of them is.
    """
    names = [metric.place[-1] for metric in METRICS if metric.kind in MAY_BE_EXACT]
    names += _list_own(trials[0], exact=True)
    values_of = {
        name: [
            (trial.facts[name], hash_functions(read_functions(trial.facts, name)))
            for trial in trials
            if trial.facts.get(name) is not None
        ]
        for name in names
    }
    return {
        name: len(values) if len(set(values)) == 1 else 0
        for name, values in values_of.items()
        if len(values) == len(trials) > 1
    }


def _list_own(trial: Trial, *, exact: bool) -> list[str]:
    """List the names of the experiment's own numbers in the trial: those that may be exact, or the others."""
    own = (metric for metric in read_own(trial.facts) if (metric.kind in MAY_BE_EXACT) == exact)
    return [metric.name for metric in own if isinstance(trial.facts.get(metric.name), (int, float))]


def _find_median(trials: Sequence[Trial], name: str) -> float | None:
    """Return the median over the processes of a fact that each of them measures."""
    values = [trial.facts[name] for trial in trials if trial.facts.get(name) is not None]
    return statistics.median(values) if values else None
