"""What came of a try: runs counted, series judged, the file it is kept in, the earlier try that it goes on with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from dashboard.trials.points import Point, point_of
from dashboard.trials.rounds import MeasuredRun, RoundOutcome
from tvmdash import common, structured
from tvmdash.contracts.tries import SCHEMA_VERSION, PooledChange, RunOfPairs, TriedNumber, TriedSeries, Try
from tvmdash.dashboard_info import Home
from tvmdash.devices import CPU, device_of
from tvmdash.judge import two
from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.records import PointValue
from tvmdash.records.metrics import IN_TURN, MAY_BE_EXACT, RATIOS
from tvmdash.series import naming
from tvmdash.tries import files

_Named = TypeVar("_Named", TriedSeries, TriedNumber)


def add(result: Try, outcome: RoundOutcome) -> Try:
    """The result with one more run of an experiment, in turn or first on one and then on the other TVM, judged."""
    name, values = outcome.round.experiment, outcome.runs[-1].values
    series = {item.id: item for item in result.series}
    numbers = {item.id: item for item in result.numbers}
    on_both = list(_list_in_turn(values)) if len(outcome.runs) == 1 else list(_list_in_rounds(*outcome.runs))
    for found in (*_list_ratios(values), *on_both):
        if isinstance(found, TriedNumber):
            numbers[found.id] = _merge(numbers.get(found.id), found)
            continue
        before = series.get(found.id)
        series[found.id] = (
            replace(before, runs=(*before.runs, *found.runs), rounds=(*before.rounds, *found.rounds))
            if before
            else found
        )
    alone = _list_alone(values, series)
    return _judge(
        replace(
            result,
            runs={**result.runs, name: result.runs.get(name, 0) + 1},
            series=tuple(series.values()),
            numbers=tuple(numbers.values()),
            alone=(*result.alone, *(item for item in alone if item not in result.alone)),
            measured_s=round(result.measured_s + outcome.elapsed_s, 3),
        )
    )


def _list_ratios(values: Iterable[PointValue]) -> Iterator[TriedSeries]:
    """The series of times and rates that were measured in turn, with what this run's pairs say of each."""
    for value in values:
        if value.key.metric in RATIOS and value.value > 0 and value.samples:
            key = replace(value.key, metric=RATIOS[value.key.metric])
            pairs = RunOfPairs(math.log(value.value), value.std or 0.0, value.samples)
            yield TriedSeries(
                key.id, key.experiment, key.metric, key.labels, value.direction, value.title, runs=(pairs,)
            )


def _list_in_turn(values: Iterable[PointValue]) -> Iterator[TriedSeries | TriedNumber]:
    """What else a run in turn says of both TVMs, where there is no ratio of pairs of it."""
    for value in values:
        if value.reference is not None and value.key.metric not in RATIOS.values() and _may_be_worse(value):
            yield _make_both(value, value.reference)


def _list_in_rounds(base: MeasuredRun, candidate: MeasuredRun) -> Iterator[TriedSeries | TriedNumber]:
    """All that two runs after one another say of both TVMs."""
    values = {value.key.id: value for value in base.values}
    for value in candidate.values:
        if value.key.id in values and value.kind != "ratio" and _may_be_worse(value):
            yield _make_both(value, values[value.key.id].value)


def _may_be_worse(value: PointValue) -> bool:
    """Whether some value of it would be: an error is within the tolerance of its data type, or its point has failed."""
    return math.isfinite(value.tolerance)


def _make_both(value: PointValue, base: float) -> TriedSeries | TriedNumber:
    key = value.key
    if value.kind in MAY_BE_EXACT:
        return TriedNumber(
            key.id, key.experiment, key.metric, key.labels, base, value.value,
            unit=value.unit, direction=value.direction, title=value.title,
            varies=value.alike == 0, kind=value.kind, tolerance=value.tolerance,
        )  # fmt: skip
    return TriedSeries(
        key.id, key.experiment, key.metric, key.labels, value.direction, value.title,
        unit=value.unit, rounds=((base, value.value),),
    )  # fmt: skip


def _merge(before: TriedNumber | None, now: TriedNumber) -> TriedNumber:
    if before is None:
        return now
    is_same = (before.base, before.candidate) == (now.base, now.candidate)
    return replace(now, varies=before.varies or now.varies or not is_same)


def _list_alone(values: Sequence[PointValue], compared: Mapping[str, TriedSeries]) -> list[str]:
    """The names of times that the candidate has and the base has not."""
    alone = [value for value in values if value.key.metric in RATIOS.values() and value.kind in ("time", "rate")]
    named = [TriedSeries(value.key.id, value.key.experiment, value.key.metric, value.key.labels) for value in alone]
    return naming.names([item for item in named if item.id not in compared])


def _judge(result: Try) -> Try:
    changes = judge_series(result.series)
    judged = [replace(item, change=change) for item, change in zip(result.series, changes, strict=True)]
    return replace(result, series=_name(judged), numbers=_name(result.numbers))


def judge_series(series: Sequence[TriedSeries]) -> list[PooledChange | None]:
    """The change of each, all considered."""
    found = two.compare({item.id: _make_evidence(item) for item in series})
    rounds = {item.id: made for item in series if (made := _make_rounds(item)) is not None}
    found |= two.compare_rounds(rounds)
    return [_make_change(found[item.id]) if item.id in found else None for item in series]


def _make_evidence(item: TriedSeries) -> Evidence:
    """Each run as a night of its own."""
    pairs = [
        Pairs(at, two.B, two.A, run.log, run.std if run.pairs > 1 else 0.0, run.pairs)
        for at, run in enumerate(item.runs)
    ]
    is_of_device = device_of(item.labels) != CPU
    return two.make_evidence(item.experiment, pairs, item.direction, is_of_device=is_of_device, metric=item.metric)


def _make_rounds(item: TriedSeries) -> two.RoundSeries | None:
    values = {str(at): both for at, both in enumerate(item.rounds)}
    return two.RoundSeries.of(item.experiment, values, item.direction)


def _make_change(found: two.Difference) -> PooledChange | None:
    """As the file holds it; None where there are too few pairs for an interval."""
    if found.low is None or found.high is None:
        return None
    visible = found.visible if math.isfinite(found.visible) else abs(found.effect)
    within = (1 + found.high) / (1 + found.effect) - 1
    return PooledChange(
        found.effect, found.low, found.high, within, visible, found.pairs, found.standing.is_told, found.standing.value,
        found.within,
    )  # fmt: skip


def _name(items: Sequence[_Named]) -> tuple[_Named, ...]:
    return tuple(replace(item, name=name) for item, name in zip(items, naming.names(items), strict=True))


def list_wanted(result: Try, experiment: str, rounds: int = 0) -> list[TriedSeries]:
    """The series of the experiment that were not measured `rounds` times or, without it, whose intervals are wide.

    Where pairs of processes measure some, the others get what rounds these need, and what is found out beside the
    times of a point, as how long it took to compile, gets the pairs that these need.
    """
    own = [item for item in result.series if item.experiment == experiment and item.has_ratio]
    own = [item for item in own if item.runs] or own
    own = [item for item in own if item.metric not in IN_TURN[1:]] or own
    if rounds:
        return [item for item in own if item.pairs < rounds]
    return [item for item in own if not item.is_known(result.until)]


def list_points(series: Iterable[TriedSeries]) -> tuple[Point, ...]:
    """What names the points of these series."""
    return tuple(point_of(item.labels) for item in series)


def write(path: Path, result: Try) -> None:
    """Keep it; whoever is killed later loses none of it."""
    common.write_json(path, {"schema_version": SCHEMA_VERSION, **structured.to_json(result)})


def find_earlier(home: Home, wanted: Callable[[Try], bool]) -> tuple[Try, Path] | None:
    """The newest try in the home that is `wanted`, and its file. What cannot be read is passed over."""
    found = map(files.read, reversed(files.list_files(home)))
    return next(((item.result, item.path) for item in found if item.result and wanted(item.result)), None)
