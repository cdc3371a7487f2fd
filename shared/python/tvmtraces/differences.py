"""Two nights, or two artifacts: which operators explain that it got slower or faster, and what they do not explain.

Points (an experiment's workload with its axis values) are compared where both sides have them. A point's time is the
median of its samples, an operator's is its mean time in one profiled run. An operator that explains part of the change
says so in its contribution; what the operators together leave of the measured change is said as unexplained: overhead
between operators, a profile that was not taken, or noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tvmtraces.connection import Traces

Point = tuple[str, str, str]
"""Experiment, workload, axis values as JSON. A trace without trials is one point."""

_OPERATORS = """
    SELECT coalesce(P.experiment, ''), T.workload, T.point, K.name, sum(K.total) * 1.0 / R.runs
    FROM (SELECT guid, process, trial, name, sum(duration) AS total FROM kernels WHERE trial IS NOT NULL
            GROUP BY guid, process, trial, name) AS K
        JOIN (SELECT guid, process, trial, count(DISTINCT repetition) AS runs FROM kernels WHERE trial IS NOT NULL
            GROUP BY guid, process, trial) AS R
            ON R.guid = K.guid AND R.process = K.process AND R.trial = K.trial
        JOIN trials T ON T.guid = K.guid AND T.process = K.process AND T.id = K.trial
        JOIN processes P ON P.guid = K.guid AND P.process = K.process
    WHERE T.error IS NULL GROUP BY K.guid, K.process, K.trial, P.experiment, T.workload, T.point, K.name, R.runs"""
_TIMES = """
    SELECT coalesce(P.experiment, ''), T.workload, T.point, median(S.elapsed_ns * 1.0 / S.number)
    FROM samples S JOIN trials T ON T.guid = S.guid AND T.process = S.process AND T.id = S.trial
        JOIN processes P ON P.guid = S.guid AND P.process = S.process
    WHERE T.error IS NULL AND S.number > 0 GROUP BY P.experiment, T.workload, T.point"""
_LOOSE = "SELECT name, sum(duration) FROM kernels WHERE trial IS NULL GROUP BY name"
_LOOSE_WALL = 'SELECT max("end") - min("start") FROM kernels WHERE trial IS NULL'


@dataclass(frozen=True)
class TraceChange:
    """One operator on both sides, summed over the common points; ns in one run. None where a side lacks it."""

    operator: str
    points: int
    before_ns: float | None
    after_ns: float | None
    change_ns: float
    percent_of_change: float | None


@dataclass(frozen=True)
class TraceDifference:
    """The whole comparison; `changes` by their size, times of one run of every common point together, in ns."""

    points: tuple[Point, ...]
    before_ns: float
    after_ns: float
    changes: tuple[TraceChange, ...]
    unexplained_ns: float
    not_profiled: tuple[Point, ...]
    only_before: tuple[Point, ...]
    only_after: tuple[Point, ...]

    @property
    def change_ns(self) -> float:
        """How much longer the right side takes."""
        return self.after_ns - self.before_ns


@dataclass(frozen=True)
class _Side:
    times: Mapping[Point, float]
    operators: Mapping[Point, Mapping[str, float]]


def find_difference(before: Traces, after: Traces) -> TraceDifference:
    """What changed from `before` to `after`."""
    left, right = _read_side(before), _read_side(after)
    common = sorted(left.times.keys() & right.times.keys())
    profiled = [point for point in common if point in left.operators and point in right.operators]
    first, last = (sum(side.times[point] for point in common) for side in (left, right))
    changes = _find_changes(left, right, profiled, last - first)
    return TraceDifference(
        points=tuple(common),
        before_ns=first,
        after_ns=last,
        changes=tuple(changes),
        unexplained_ns=(last - first) - sum(change.change_ns for change in changes),
        not_profiled=tuple(point for point in common if point not in profiled),
        only_before=tuple(sorted(left.times.keys() - right.times.keys())),
        only_after=tuple(sorted(right.times.keys() - left.times.keys())),
    )


def _find_changes(left: _Side, right: _Side, points: list[Point], whole_ns: float) -> list[TraceChange]:
    before, after, seen = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, int](int)
    for point in points:
        for sums, side in ((before, left), (after, right)):
            for name, elapsed in side.operators[point].items():
                sums[name] += elapsed
        for name in left.operators[point].keys() | right.operators[point].keys():
            seen[name] += 1
    changes = []
    for name, count in seen.items():
        change = after.get(name, 0.0) - before.get(name, 0.0)
        share = change * 100 / whole_ns if whole_ns else None
        changes.append(TraceChange(name, count, before.get(name), after.get(name), change, share))
    return sorted(changes, key=lambda change: (-abs(change.change_ns), change.operator))


def _read_side(traces: Traces) -> _Side:
    """Each point's time and its operators' times; several trials of one point are averaged."""
    times: dict[Point, float] = {_make_point(row): float(row[3]) for row in traces.execute(_TIMES)}
    times_of: dict[Point, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    trials: dict[Point, int] = defaultdict(int)
    for row in traces.execute(_OPERATORS):
        times_of[_make_point(row)][str(row[3])].append(float(row[4]))
    for point, names in times_of.items():
        trials[point] = max(len(values) for values in names.values())
    operators = {
        point: {name: sum(values) / trials[point] for name, values in names.items()}
        for point, names in times_of.items()
    }
    loose = {str(name): float(total) for name, total in traces.execute(_LOOSE)}
    if loose:
        point = ("", "kernels without trials", "")
        times[point], operators[point] = float(traces.execute(_LOOSE_WALL).fetchall()[0][0]), loose
    return _Side(times, operators)


def _make_point(row: tuple[object, ...]) -> Point:
    return str(row[0]), str(row[1]), str(row[2])
