# ruff: noqa: S608 - these queries are our own words
"""Anomalies inside runs, each with figure and place: idle gaps, imbalance, copies, varying operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tvmtraces.connection import Traces

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
