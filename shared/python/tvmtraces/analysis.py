# ruff: noqa: S608 - these queries are our own words
"""Analyses of traces: total time by name, anomalies inside runs, and operator times of profiled runs by point.

A point is an experiment's workload with its axis values. Rows of a trace without trials are one point, a process a run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tvmdash.errors import DashboardError
from tvmdash.measure.capture_format import KNOWN_OPERATORS
from tvmtraces.connection import Traces

GROUPS = {
    "process": "CASE WHEN count(*) OVER (PARTITION BY pid) = 1 THEN CAST(pid AS VARCHAR) "
    "ELSE pid || ' (' || guid || '/' || process || ')' END",
    "host": "hostname",
}
"""Columns of processes to group by; a process id that several share gets its key added."""

_SPANS = """
    SELECT coalesce(category, 'kernel') AS domain, name, duration, guid, process FROM kernels
    UNION ALL SELECT coalesce(category, 'memory copy'), name, duration, guid, process FROM memory_copies
    UNION ALL SELECT coalesce(category, 'region'), name, duration, guid, process FROM regions
    UNION ALL SELECT 'pass', name, duration, guid, process FROM passes"""


@dataclass(frozen=True)
class SummaryRow:
    """All calls of one name in one domain (and one process or host); times in ns, `percent` of its domain's total.

    `median_ns` lies between the middle two where they are two; `p95_ns` is the smallest duration that 95 % of the calls
    do not exceed; `std_ns` is the sample's, None for one call.
    """

    domain: str
    name: str | None
    group: str | None
    calls: int
    total_ns: int
    mean_ns: float
    percent: float | None
    min_ns: int
    median_ns: float
    p95_ns: int
    max_ns: int
    std_ns: float | None


def summary(traces: Traces, *, by: str | None = None) -> Iterator[SummaryRow]:
    """Yield the rows, the longest total first; `by` is None, "process" or "host"."""
    if by is not None and by not in GROUPS:
        raise DashboardError(f"cannot group a summary by {by!r:.40}. Use {' or '.join(GROUPS)}.")
    shown, join = "CAST(NULL AS VARCHAR)", ""
    if by:
        groups = f"SELECT guid, process, {GROUPS[by]} AS grp FROM processes"
        shown, join = "P.grp", f"LEFT JOIN ({groups}) AS P ON P.guid = S.guid AND P.process = S.process"
    query = f"""
        SELECT domain, name, grp, count(*), CAST(sum(duration) AS BIGINT), sum(duration) * 1.0 / count(*),
            sum(duration) * 100.0 / nullif(sum(sum(duration)) OVER (PARTITION BY domain, grp), 0),
            min(duration), median(duration), quantile_disc(duration, 0.95), max(duration), stddev_samp(duration)
        FROM (SELECT S.domain, S.name, S.duration, {shown} AS grp FROM ({_SPANS}) AS S {join}) AS U
        WHERE duration IS NOT NULL GROUP BY domain, name, grp ORDER BY 5 DESC, domain, name, grp"""
    for row in traces.execute(query):
        yield SummaryRow(*row)


MOST_IDLE = 0.05
"""Share of its run, from the first kernel to the last, from which on a gap between kernels is reported."""
_LEAST_IDLE_NS = 20_000
"""Between two profiled operators lies the cost of profiling."""
MOST_BEHIND = 1.25
"""Ratio of the busiest process's work to the median of its peers from which on they are out of balance."""
MOST_ALONE = 0.1
"""Share of a process's kernel time from which on copies without a concurrent kernel are reported."""
MOST_VARYING = 0.2
"""An operator varies where a fourth of its calls are so much longer than its median, and that adds `MOST_IDLE` to a
run: fewer are calls from which the system took the core."""
_LEAST_CALLS = 20
_LEAST_RUNS = 3
"""Fewer runs of a point may show something by chance."""


@dataclass(frozen=True)
class Finding:
    """An anomaly: its kind, the figure with its unit, and its place: process, name, moment in ns."""

    kind: str
    figure: float
    unit: str
    guid: str | None
    process: int | None
    name: str | None
    start_ns: int | None
    text: str


_MERGED = """
    WITH spans AS (SELECT guid, process, coalesce(trial, -1) AS trial, coalesce(repetition, -1) AS repetition, name,
        "start" AS a, "start" + duration AS b FROM kernels WHERE duration IS NOT NULL),
    reached AS (SELECT *, max(b) OVER (PARTITION BY {0} ORDER BY a, b
        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until,
        row_number() OVER (PARTITION BY {0} ORDER BY a, b) AS place FROM spans)"""
_RUN = "guid, process, trial, repetition"
"""Columns of a run of a network; between two of them no kernel is expected."""
_POINTS = """points AS (SELECT T.guid, T.process, T.id AS trial,
        concat_ws(' ', P.experiment, T.workload, T.point) AS point
        FROM trials T JOIN processes P ON P.guid = T.guid AND P.process = T.process)"""
_GAPS = f"""{_MERGED.format(_RUN)}, {_POINTS},
    whole AS (SELECT {_RUN}, max(b) - min(a) AS wall FROM spans GROUP BY ALL),
    gaps AS (SELECT R.*, a - until AS gap, 1.0 * (a - until) / W.wall AS share,
            coalesce(N.point, R.guid || '/' || R.process) AS point
        FROM reached R JOIN whole W USING ({_RUN}) LEFT JOIN points N USING (guid, process, trial) WHERE W.wall > 0)
    SELECT any_value(guid), any_value(process), any_value(until), median(gap), median(share), any_value(name) FROM gaps
    GROUP BY point, place, trial < 0
    HAVING median(share) >= {MOST_IDLE} AND (trial < 0 OR (median(gap) >= {_LEAST_IDLE_NS}
        AND count(*) >= {_LEAST_RUNS})) ORDER BY 4 DESC, 1, 2, 3"""
_IMBALANCE = f"""
    WITH {_POINTS}, busy AS (SELECT guid, process, trial, median(total) AS total FROM (
        SELECT guid, process, trial, repetition, sum(duration) AS total FROM kernels GROUP BY ALL) GROUP BY ALL),
    placed AS (SELECT B.*, coalesce(P.experiment, P.command, '') AS name, coalesce(N.point, P.command, '') AS point
        FROM busy B JOIN processes P ON P.guid = B.guid AND P.process = B.process
        LEFT JOIN points N ON N.guid = B.guid AND N.process = B.process AND N.trial = B.trial),
    middles AS (SELECT point, median(total) AS middle, count(*) AS several FROM placed GROUP BY point)
    SELECT L.guid, L.process, L.name, L.total / M.middle FROM placed L JOIN middles M ON M.point = L.point
    WHERE M.several >= {_LEAST_RUNS} AND L.total > {MOST_BEHIND} * M.middle ORDER BY 4 DESC, 1, 2"""
_COPIES = f"""{_MERGED.format("guid, process")},
    islands AS (SELECT guid, process, a, b, sum(CASE WHEN until IS NULL OR a > until THEN 1 ELSE 0 END)
        OVER (PARTITION BY guid, process ORDER BY a, b ROWS UNBOUNDED PRECEDING) AS island FROM reached),
    covered AS (SELECT guid, process, min(a) AS a, max(b) AS b FROM islands GROUP BY guid, process, island),
    copies AS (SELECT row_number() OVER () AS number, guid, process, name, "start" AS a, "start" + duration AS b,
        duration FROM memory_copies WHERE duration > 0),
    hidden AS (SELECT C.number, sum(least(C.b, K.b) - greatest(C.a, K.a)) AS under FROM copies C
        JOIN covered K ON K.guid = C.guid AND K.process = C.process AND K.a < C.b AND C.a < K.b GROUP BY C.number),
    totals AS (SELECT guid, process, sum(b - a) AS total FROM covered GROUP BY ALL)
    SELECT C.guid, C.process, min(C.a), sum(C.duration - coalesce(H.under, 0)) AS alone,
        sum(C.duration - coalesce(H.under, 0)) * 1.0 / any_value(T.total), arg_max(C.name, C.duration)
    FROM copies C LEFT JOIN hidden H ON H.number = C.number
    JOIN totals T ON T.guid = C.guid AND T.process = C.process
    GROUP BY C.guid, C.process HAVING alone >= {MOST_ALONE} * any_value(T.total) ORDER BY 4 DESC, 1, 2"""
_VARYING = f"""
    WITH {_POINTS}, named AS (SELECT K.*, coalesce(N.point, K.guid || '/' || K.process) AS point
        FROM kernels K LEFT JOIN points N ON N.guid = K.guid AND N.process = K.process AND N.trial = K.trial),
    runs AS (SELECT point, median(total) AS total FROM (SELECT point, guid, process, trial, repetition,
        sum(duration) AS total FROM named GROUP BY ALL) AS each_run GROUP BY point)
    SELECT any_value(K.guid), any_value(K.process), K.name, quantile_disc(K.duration, 0.75) * 1.0 / median(K.duration)
        - 1, median(K.duration), arg_max(K."start", K.duration)
    FROM named K JOIN runs R ON R.point = K.point GROUP BY K.point, K.name
    HAVING count(*) >= {_LEAST_CALLS} AND median(K.duration) > 0
        AND quantile_disc(K.duration, 0.75) > {1 + MOST_VARYING} * median(K.duration)
        AND (quantile_disc(K.duration, 0.75) - median(K.duration)) * count(*)
            / count(DISTINCT (K.guid, K.process, K.trial, K.repetition)) > {MOST_IDLE} * any_value(R.total)
    ORDER BY 4 DESC, 3 LIMIT 1"""


def find_findings(traces: Traces) -> Iterator[Finding]:
    """Yield the anomalies kind by kind, the largest of each first."""
    for guid, process, start, length, share, name in traces.execute(_GAPS).fetchall():
        text = f"no kernel ran for {share:.0%} of the run before this one began"
        yield Finding("idle gap", length, "ns", guid, process, name, start, text)
    for guid, process, name, ratio in traces.execute(_IMBALANCE).fetchall():
        text = f"its kernels take {ratio:.2f} times as long as the median of the processes that did the same"
        yield Finding("imbalance", ratio, "times", guid, process, name, None, text)
    for guid, process, start, alone, share, name in traces.execute(_COPIES).fetchall():
        text = f"copies ran while no kernel did, {share:.0%} of the kernels' time: they could overlap"
        yield Finding("copies alone", alone, "ns", guid, process, name, start, text)
    for guid, process, name, spread, middle, start in traces.execute(_VARYING).fetchall():
        text = f"a fourth of its calls lies {spread:.0%} above its median of {middle:.0f} ns; here is its longest"
        yield Finding("varying operator", spread * 100, "%", guid, process, name, start, text)


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
