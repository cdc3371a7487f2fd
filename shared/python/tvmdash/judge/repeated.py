"""What was measured at two times, once and again or by processes of either side: whether it is another now."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.judge import two
from tvmdash.judge.model import Shift
from tvmdash.judge.rules import RULES
from tvmdash.judge.student import t_975

LEAST_ROUNDS = 3
"""Fewer say nothing of how much one round differs from the next."""
_MOST_FREEDOM = 400


@dataclass(frozen=True)
class Repeated:
    """The value of then, what each round gave now, and the direction of the metric."""

    old: float
    new: Sequence[float]
    direction: str


@dataclass(frozen=True)
class Variance:
    """Of a mean, and how many degrees of freedom it is known by."""

    value: float
    freedom: float = math.inf


def measure_error(errors: Sequence[Variance], known: float) -> float:
    """The standard error of what has these errors and a `known` variance.

    What few values tell counts as so much wider as Student's t is (Welch 1947, Satterthwaite 1946).
    """
    total = math.fsum(each.value for each in errors) + known
    below = math.fsum(each.value**2 / each.freedom for each in errors)
    freedom = total**2 / below if below else math.inf
    wider = max(1.0, t_975(max(1, round(min(freedom, _MOST_FREEDOM)))) / RULES.errors_of_interval)
    return wider * math.sqrt(total)


def compare_repeated(series: Mapping[str, Repeated]) -> dict[str, two.Difference]:
    """By name, how the new values lie against the old one; those with too few or a value not above 0 are left out.

    The old one scatters as the new ones do, and times of two moments differ as those of two rounds.
    """
    found = {}
    for name, each in series.items():
        if len(each.new) >= LEAST_ROUNDS and min(each.old, *each.new) > 0:
            logs = [math.log(value / each.old) for value in each.new]
            own = Variance(statistics.variance(logs) * (1 + 1 / len(logs)), len(logs) - 1)
            shift = Shift(statistics.fmean(logs), measure_error([own], RULES.round_sd**2), RULES.freedom)
            found[name] = replace(two.weigh(shift, len(series), each.direction), pairs=len(logs))
    return found


@dataclass(frozen=True)
class Apart:
    """A time as each process of either side has it; less is better."""

    before: Sequence[float]
    after: Sequence[float]


def compare_apart(series: Mapping[str, Apart], *, in_turn: bool) -> dict[str, two.Difference]:
    """By name, how the sides differ by their own scatter; those with too few or a value not above 0 are left out.

    in_turn: the processes of both sides alternated; else times of two moments differ as those of two rounds.
    """
    known, found = (RULES.pair_sd**2 / RULES.fewest_pairs if in_turn else RULES.round_sd**2), {}
    for name, each in series.items():
        sides = [each.before, each.after]
        if min(map(len, sides)) >= LEAST_ROUNDS and min(map(min, sides)) > 0:
            logs = [two.hold([math.log(value) for value in side]) for side in sides]
            errors = [Variance(statistics.variance(side) / len(side), len(side) - 1) for side in logs]
            log = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
            shift = Shift(log, measure_error(errors, known), RULES.most_freedom)
            found[name] = replace(two.weigh(shift, len(series), "lower"), pairs=min(map(len, sides)))
    return found


@dataclass(frozen=True)
class NightsOfTwo:
    """By stamp, the logarithms of a series' values on A and on B; how far each control moved between these nights."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    controls: Sequence[float]
    direction: str

    @property
    def shared(self) -> list[str]:
        """The nights that measured both."""
        return sorted(self.before.keys() & self.after.keys())

    @property
    def are_few(self) -> bool:
        """Whether they say nothing, whatever the controls say."""
        return max(len(self.shared), min(len(self.before), len(self.after))) < RULES.fewest_nights


def compare_nights(nights: NightsOfTwo, points: int) -> two.Difference | None:
    """How B lies against A, of one of so many series; its `pairs` are nights. None where nothing can be said.

    Of two builds' luck nothing is known here.
    """
    if nights.are_few:
        return None
    if len(nights.shared) >= RULES.fewest_nights:  # what a night did to both cancels
        logs = [nights.after[stamp] - nights.before[stamp] for stamp in nights.shared]
        log, errors, count = statistics.fmean(logs), _list_errors([logs]), len(logs)
    elif nights.controls:
        moved = statistics.fmean(shift**2 for shift in nights.controls)
        machine = Variance(moved, min(len(nights.controls), RULES.most_controls))
        sides = list(nights.before.values()), list(nights.after.values())
        log, count = statistics.fmean(sides[1]) - statistics.fmean(sides[0]), sum(map(len, sides))
        errors = [*_list_errors(sides), machine]
    else:
        return None
    known = RULES.night_sd**2 + 2 * (RULES.code_luck**2 + RULES.library_luck**2)
    shift = Shift(log, measure_error(errors, known), RULES.freedom)
    return replace(two.weigh(shift, points, nights.direction), pairs=count)


def _list_errors(sides: Sequence[Sequence[float]]) -> list[Variance]:
    """The variance of each side's mean, of nights that may be much like the nights before them, as AR(1) noise is."""
    residuals = [[log - statistics.fmean(logs) for log in logs] for logs in sides]
    follows = math.fsum(one * next_one for side in residuals for one, next_one in itertools.pairwise(side))
    power = math.fsum(each**2 for side in residuals for each in side)
    count = sum(map(len, sides))
    alike = (count * (follows / power if power else 0.0) + 1) / (count + RULES.alike_nights)
    phi, errors = min(max(alike, 0.0), RULES.most_alike), []
    for logs in sides:
        inflation = 1 + 2 * (phi / (1 - phi) - phi * (1 - phi ** len(logs)) / (len(logs) * (1 - phi) ** 2))
        errors.append(Variance(inflation / len(logs) * statistics.variance(logs), len(logs) - 1))
    return errors
