"""Values of two times, once and again or by processes of either side, compared."""

from __future__ import annotations

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
    """Compare the new values with the old one, by name; those with too few or a value not above 0 are left out.

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
    """Compare the sides by their own scatter, by name; those with too few or a value not above 0 are left out.

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
