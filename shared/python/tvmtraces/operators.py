"""Operator times of profiled runs, by point and process, without judgement.

A point is an experiment's workload with its axis values. Rows of a trace without trials are one point, a process a run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tvmdash.measure.capture_format import KNOWN_OPERATORS
from tvmtraces.connection import Traces

Point = tuple[str, str, str]
"""Experiment, workload, axis values as JSON."""
MACHINE = "vm.builtin"
"""The operator that stands for all of the virtual machine's own calls."""
_OPERATORS = """
    SELECT coalesce(P.experiment, ''), T.workload, T.point, K.guid, K.process, K.trial, K.repetition, K.name,
        sum(K.duration) / 1e6
    FROM kernels K JOIN trials T ON T.guid = K.guid AND T.process = K.process AND T.id = K.trial
        JOIN processes P ON P.guid = K.guid AND P.process = K.process
    WHERE T.error IS NULL AND K.duration IS NOT NULL
    GROUP BY P.experiment, T.workload, T.point, K.guid, K.process, K.trial, K.repetition, K.name ORDER BY ALL"""
_TIMES = """
    SELECT coalesce(P.experiment, ''), T.workload, T.point, median(S.elapsed_ns / 1e6 / S.number)
    FROM samples S JOIN trials T ON T.guid = S.guid AND T.process = S.process AND T.id = S.trial
        JOIN processes P ON P.guid = S.guid AND P.process = S.process
    WHERE T.error IS NULL AND S.number > 0
    GROUP BY P.experiment, T.workload, T.point, S.guid, S.process, S.trial ORDER BY ALL"""
_LOOSE = """SELECT guid, process, name, sum(duration) / 1e6 FROM kernels WHERE trial IS NULL AND duration IS NOT NULL
    GROUP BY guid, process, name ORDER BY ALL"""
_LOOSE_WALL = """SELECT (max("end") - min("start")) / 1e6 FROM kernels WHERE trial IS NULL GROUP BY guid, process
    ORDER BY guid, process"""
_FACTS = """SELECT coalesce(P.experiment, ''), T.workload, T.point, any_value(T.facts) FROM trials T
    JOIN processes P ON P.guid = T.guid AND P.process = T.process WHERE T.error IS NULL AND T.facts IS NOT NULL
    GROUP BY P.experiment, T.workload, T.point"""


@dataclass
class PointTimes:
    """A point's times in ms: each operator's median run in every process, likewise of the whole.

    Where one process alone was profiled, each of its runs stands for itself. `known` says what operators are, by name.
    """

    operators: dict[str, list[float]] = field(default_factory=dict)
    whole: list[float] = field(default_factory=list)
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_point_times(traces: Traces) -> dict[Point, PointTimes]:
    """Return the profiled points of a connection, and those that were timed alone."""
    points: dict[Point, PointTimes] = defaultdict(PointTimes)
    runs: dict[Point, dict[tuple[Any, ...], dict[Any, dict[str, float]]]] = defaultdict(lambda: defaultdict(dict))
    for *named, guid, process, trial, repetition, name, elapsed_ms in traces.execute(_OPERATORS):
        run = runs[_make_point(named)][guid, process, trial].setdefault(repetition, {})
        run[name_operator(name)] = run.get(name_operator(name), 0.0) + elapsed_ms
    for point, of_process in runs.items():
        points[point].operators = sum_up([list(each.values()) for each in of_process.values()])
    for *named, elapsed_ms in traces.execute(_TIMES):
        points[_make_point(named)].whole.append(elapsed_ms)
    for *named, facts in traces.execute(_FACTS):
        if (point := _make_point(named)) in points:
            points[point].known = read_known(facts)
    loose: dict[Any, dict[str, float]] = defaultdict(dict)
    for guid, process, name, elapsed_ms in traces.execute(_LOOSE):
        loose[guid, process][name] = elapsed_ms
    if loose:
        walls = [float(row[0]) for row in traces.execute(_LOOSE_WALL)]
        times = sum_up([[each] for each in loose.values()])
        points["", "kernels without trials", ""] = PointTimes(times, walls)
    return dict(points)


def name_operator(called: str) -> str:
    """Return the operator of a call."""
    return MACHINE if called.startswith(f"{MACHINE}.") else called


def read_known(facts: str | None) -> Mapping[str, Mapping[str, Any]]:
    """Return the facts of operators by name from a trial's facts; empty where these lack them."""
    found: Any = json.loads(facts or "{}")
    return found.get(KNOWN_OPERATORS, {}) if isinstance(found, dict) else {}


def sum_up(processes: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, list[float]]:
    """Return each operator's median run in each process; an operator that a run lacks took no time in it."""
    names = dict.fromkeys(name for runs in processes for run in runs for name in run)
    if len(processes) == 1:
        return {name: [run.get(name, 0.0) for run in processes[0]] for name in names}
    return {name: [median(run.get(name, 0.0) for run in runs) for runs in processes] for name in names}


def _make_point(named: Sequence[Any]) -> Point:
    return str(named[0]), str(named[1]), str(named[2])
