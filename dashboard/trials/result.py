"""The series of a trial: named by people, made from values, judged; which want more, whether anything is worse."""

from __future__ import annotations

import contextlib
import enum
import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from dashboard.trials.rounds import Point, RoundOutcome, point_of
from tvmdash import records
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.judge import two
from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.machine.devices import CPU, device_of
from tvmdash.records import PointValue, SeriesKey
from tvmdash.records.metrics import IN_TURN, MAY_BE_EXACT, RATIOS, Direction, is_worse
from tvmdash.series import naming
from tvmdash.text import format_list
from tvmdash.trials.trial import BackfillStep, RunOfPairs, Trial, TrialChange, TrialNumber, TrialSeries

_Named = TypeVar("_Named", TrialSeries, TrialNumber)
_Both = TypeVar("_Both", Trial, BackfillStep)
# A series that failed on the newest nights is still known by the older ones.
_NIGHTS_BACK = 60
_LEAST_DIGITS = 4


def find(home: Home, experiment: str, text: str) -> TrialSeries:
    """The series of the experiment that `text` names, by the newest night that has one; DashboardError else."""
    stamps = home.data_stamps(experiment)
    if not stamps:
        raise DashboardError(f"{home.data(experiment)}: no night has measured {experiment} yet. Run a night first.")
    newest: Sequence[TrialSeries] = ()
    for known in itertools.islice(_list_by_night(home, experiment, stamps), _NIGHTS_BACK):
        newest = newest or known
        named = select_named(known, text)
        if len(named) == 1:
            return named[0]
        if named:
            shown = format_list([f"{series.id} {series.name}" for series in named], 5)
            raise DashboardError(
                f"{text!r} matches {len(named)} series of {experiment}: {shown}. Give the ID of one of them."
            )
    shown = format_list([f"{series.id} {series.name}" for series in newest], 8) or "none"
    raise DashboardError(f"{text!r} matches no series of {experiment}. The newest night has: {shown}.")


def _list_by_night(home: Home, experiment: str, stamps: list[str]) -> Iterator[Sequence[TrialSeries]]:
    for stamp in reversed(stamps):
        with contextlib.suppress(DashboardError):  # a night that cannot be read is passed over
            values = records.read_data(home.data_file(experiment, stamp), experiment).values()
            yield list_series(value for value in values if value.key.metric not in RATIOS)


def list_series(values: Iterable[PointValue]) -> Sequence[TrialSeries]:
    """The series of these values, named, without a measurement."""
    return _name([_make_series(value, value.key) for value in values])


def select_named(known: Iterable[TrialSeries], text: str) -> list[TrialSeries]:
    """Select series by ID, the beginning of one, or name; where nothing is called just so, by a part of it."""
    exact = [series for series in known if text in (series.id, series.name, series.labels.get("path"))]
    begins = [series for series in known if len(text) >= _LEAST_DIGITS and series.id.startswith(text)]
    return exact or begins or [series for series in known if text in series.name]


def value_of(series: TrialSeries, values: Iterable[PointValue]) -> float | None:
    """Return its value among these; the machine may be another than that of its ID."""
    return next((value.value for value in values if _is_of(series, value, value.key.metric)), None)


def logs_of(series: TrialSeries, values: Iterable[PointValue]) -> tuple[float, ...]:
    """The logarithms of its ratios to another TVM among these, one for each pair of processes."""
    return next((value.logs for value in values if _is_of(series, value, RATIOS.get(value.key.metric))), ())


def _is_of(series: TrialSeries, value: PointValue, metric: str | None) -> bool:
    return metric == series.metric and point_of(value.key.labels) == point_of(series.labels)


def _make_series(value: PointValue, key: SeriesKey) -> TrialSeries:
    """The series of that key, which has this value or, of a ratio, is what it is the ratio of."""
    # A ratio's own unit and kind are not those of the times that it divides.
    kinds = {} if value.kind == "ratio" else {"unit": value.unit, "kind": value.kind}
    return TrialSeries(key.id, key.experiment, key.metric, key.labels, value.direction, value.title, **kinds)  # type: ignore[arg-type]


def add(result: Trial, outcome: RoundOutcome) -> Trial:
    """The result with one more run of an experiment, in turn or first on one and then on the other TVM, judged."""
    name, values = outcome.round.experiment, outcome.runs[-1].values
    if len(outcome.runs) == 1:
        result = collect(result, [*_list_ratios(values), *_list_in_turn(values)])
    else:
        result = collect_round(result, *(run.values for run in outcome.runs))
    alone = _list_alone(values, {item.id for item in result.series})
    result = replace(result, alone=(*result.alone, *(item for item in alone if item not in result.alone)))
    return judge(replace(result, runs={**result.runs, name: result.runs.get(name, 0) + 1}))


def collect_round(result: _Both, base: Sequence[PointValue], candidate: Sequence[PointValue]) -> _Both:
    """Add what two runs after one another say of both TVMs, not judged."""
    return collect(result, [*_list_ratios(candidate), *_list_in_rounds(base, candidate)])


def collect(result: _Both, values: Iterable[TrialSeries | TrialNumber]) -> _Both:
    """Add these runs, rounds and numbers behind those of the same series, not judged."""
    series = {item.id: item for item in result.series}
    numbers = {item.id: item for item in result.numbers}
    for found in values:
        if isinstance(found, TrialNumber):
            numbers[found.id] = _merge(numbers.get(found.id), found)
        else:
            series[found.id] = _append(series.get(found.id), found)
    return replace(result, series=tuple(series.values()), numbers=tuple(numbers.values()))


def _append(before: TrialSeries | None, now: TrialSeries) -> TrialSeries:
    if before is None:
        return now
    return replace(before, runs=(*before.runs, *now.runs), rounds=(*before.rounds, *now.rounds))


def _list_ratios(values: Iterable[PointValue]) -> Iterator[TrialSeries]:
    """The series of times and rates that were measured in turn, with what this run's pairs say of each."""
    for value in values:
        if value.key.metric in RATIOS and value.value > 0 and value.samples:
            whole = RunOfPairs(math.log(value.value), value.std or 0.0, value.samples)
            pairs = RunOfPairs.of(value.logs) if value.logs else whole
            series = _make_series(value, replace(value.key, metric=RATIOS[value.key.metric]))
            yield replace(series, runs=(pairs,))


def _list_in_turn(values: Iterable[PointValue]) -> Iterator[TrialSeries | TrialNumber]:
    """Yield other values of both TVMs from a run in turn, where there is no ratio of pairs of them."""
    for value in values:
        if value.reference is not None and value.key.metric not in RATIOS.values() and _may_be_worse(value):
            yield _make_both(value, value.reference)


def _list_in_rounds(base: Iterable[PointValue], candidate: Iterable[PointValue]) -> Iterator[TrialSeries | TrialNumber]:
    """All that two runs after one another say of both TVMs."""
    values = {value.key.id: value for value in base}
    for value in candidate:
        if value.key.id in values and value.kind != "ratio" and _may_be_worse(value):
            yield _make_both(value, values[value.key.id].value)


def _may_be_worse(value: PointValue) -> bool:
    """Return True where some value would be worse: an error is within its type's tolerance, or its point has failed."""
    return math.isfinite(value.tolerance)


def _make_both(value: PointValue, base: float) -> TrialSeries | TrialNumber:
    key = value.key
    if value.kind in MAY_BE_EXACT:
        return TrialNumber(
            key.id, key.experiment, key.metric, key.labels, base, value.value,
            unit=value.unit, direction=value.direction, title=value.title,
            varies=value.alike == 0, kind=value.kind, tolerance=value.tolerance,
        )  # fmt: skip
    return replace(_make_series(value, key), rounds=((base, value.value),))


def _merge(before: TrialNumber | None, now: TrialNumber) -> TrialNumber:
    if before is None:
        return now
    is_same = (before.base, before.candidate) == (now.base, now.candidate)
    return replace(now, varies=before.varies or now.varies or not is_same)


def _list_alone(values: Sequence[PointValue], compared: Collection[str]) -> list[str]:
    """The names of times that the candidate has and the base has not."""
    alone = [value for value in values if value.key.metric in RATIOS.values() and value.kind in ("time", "rate")]
    return naming.names([_make_series(value, value.key) for value in alone if value.key.id not in compared])


def judge(result: _Both) -> _Both:
    """Name the series and judge each by all that was measured."""
    changes = judge_series(result.series)
    judged = [replace(item, change=change) for item, change in zip(result.series, changes, strict=True)]
    return replace(result, series=_name(judged), numbers=_name(result.numbers))


def judge_series(series: Sequence[TrialSeries]) -> list[TrialChange | None]:
    """Judge the change of each series, all considered."""
    found = two.compare({item.id: make_evidence(item) for item in series})
    rounds = {item.id: made for item in series if (made := _make_rounds(item)) is not None}
    found |= two.compare_rounds(rounds)
    return [make_change(found[item.id]) if item.id in found else None for item in series]


_GOOD = "good"
"""The judge's name for the base of a series where other TVMs stand for it."""


def judge_step(
    series: TrialSeries, before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]
) -> TrialChange | None:
    """Return the change of a series from the TVMs before a step to those after it, of which its candidate is one.

    before, after: of each other TVM the logarithms of its pairs, or rounds, beside the base of the series.
    """
    if series.rounds:
        rounds = ((1.0, math.exp(log)) for logs in after for log in logs)
        (change,) = judge_series([replace(series, rounds=(*series.rounds, *rounds))])
        return change
    runs = [(two.A, RunOfPairs.of(logs)) for logs in before]
    runs += [(two.B, run) for run in (*series.runs, *map(RunOfPairs.of, after))]
    return make_change(two.compare({"": make_evidence(series, runs, _GOOD if before else two.A)})[""])


def make_evidence(
    item: TrialSeries, runs: Sequence[tuple[str, RunOfPairs]] | None = None, base: str = two.A
) -> Evidence:
    """Make the judge's evidence: each run as a night of its own, by its build; without `runs`, the series' own."""
    every = [(two.B, run) for run in item.runs] if runs is None else runs
    pairs = [
        Pairs(at, build, base, run.log, run.std if run.pairs > 1 else 0.0, run.pairs)
        for at, (build, run) in enumerate(every)
    ]
    is_of_device = device_of(item.labels) != CPU
    return two.make_evidence(item.experiment, pairs, item.direction, is_of_device=is_of_device, metric=item.metric)


def _make_rounds(item: TrialSeries) -> two.RoundSeries | None:
    values = {str(at): both for at, both in enumerate(item.rounds)}
    return two.RoundSeries.of(item.experiment, values, item.direction)


def make_change(found: two.Difference) -> TrialChange | None:
    """Make the change as the file holds it; None where there are too few pairs for an interval."""
    if found.low is None or found.high is None:
        return None
    visible = found.visible if math.isfinite(found.visible) else abs(found.effect)
    known = found.within if math.isfinite(found.within) else None
    within = (1 + found.high) / (1 + found.effect) - 1
    return TrialChange(
        found.effect, found.low, found.high, within, visible, found.pairs, found.standing.is_told, found.standing.value,
        known,
    )  # fmt: skip


def _name(items: Sequence[_Named]) -> tuple[_Named, ...]:
    return tuple(replace(item, name=name) for item, name in zip(items, naming.names(items), strict=True))


def list_wanted(result: Trial, experiment: str, rounds: int = 0) -> list[TrialSeries]:
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


def list_points(series: Iterable[TrialSeries]) -> tuple[Point, ...]:
    return tuple(point_of(item.labels) for item in series)


class Worse(enum.Enum):
    """The answer whether anything is worse by more than a given fraction."""

    YES = enum.auto()
    MAYBE = enum.auto()
    """Nothing is for sure, but some 95 % interval reaches that far, or nothing was measured."""
    NO = enum.auto()


def find_worse(done: Trial, most: float) -> Worse:
    """Judge whether a real change for the worse exceeds the fraction `most`, by its best estimate."""
    found = [*(_judge_series(item, most) for item in done.series), *_judge_numbers(done, most)]
    if Worse.YES in found:
        return Worse.YES
    return Worse.MAYBE if Worse.MAYBE in found or not done.series else Worse.NO


def _judge_series(item: TrialSeries, most: float) -> Worse:
    change = item.change
    if change is None:
        return Worse.MAYBE
    if change.real and _is_over(change.effect, item.direction, most):
        return Worse.YES
    reaches = any(_is_over(end, item.direction, most) for end in (change.low, change.high))
    return Worse.MAYBE if reaches else Worse.NO


def _is_over(effect: float, direction: Direction, most: float) -> bool:
    return abs(effect) > most and is_worse(effect, direction) is True


def _judge_numbers(done: Trial, most: float) -> Iterator[Worse]:
    for number in done.numbers:
        if number.is_changed:
            effect = number.candidate / number.base - 1 if number.base else float("inf")
            yield Worse.YES if _is_over(effect, number.direction, most) else Worse.NO
