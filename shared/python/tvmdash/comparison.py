"""Two builds measured in alternation: by how much each series differs, and which of the differences are real."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.reduction import t_975

LEAST_ROUNDS = 3
"""Fewer say nothing of how much one round differs from the next."""
NAMED_ROUNDS = 5
"""Of fewer, only what differed by the same in each is named: on a busy machine three rounds may agree by chance."""
ERROR = 0.05
HOLDS, DOES_NOT_HOLD, CANNOT_TELL = "holds", "does not hold", "cannot tell"
"""What can be said of an old number that was measured again."""
_SAME = 1e-12


@dataclass(frozen=True)
class Difference:
    """B against A, from rounds that measured both: `effect` is a fraction (0.05: B is 5 % larger).

    `low` and `high` bound it with 95 % confidence. `p`: how often equal builds would look this different.
    `real`: beyond chance, all series of the comparison considered.
    """

    effect: float
    low: float
    high: float
    p: float
    rounds: int
    real: bool = False


def differences(series: Sequence[Sequence[tuple[float, float]]]) -> list[Difference | None]:
    """For each series' rounds, as (A, B), its difference; None where a value is not positive or rounds are too few.

    Student's t on the logarithms of the rounds' ratios: a round's pair shares the machine's state. Real are those that
    Holm's procedure admits at 5 %: equal builds have any real difference in at most one of twenty comparisons (Holm
    1979, "A simple sequentially rejective multiple test procedure").
    """
    found = [_difference(rounds) for rounds in series]
    admitted = _holm({at: one.p for at, one in enumerate(found) if one is not None})
    named = [one is not None and at in admitted and _may_be_named(one) for at, one in enumerate(found)]
    return [replace(one, real=real) if one else None for one, real in zip(found, named, strict=True)]


def _may_be_named(one: Difference) -> bool:
    return one.rounds >= NAMED_ROUNDS or not one.p


def _holm(p: Mapping[int, float]) -> set[int]:
    """Which of these are beyond chance, all of them considered."""
    admitted: set[int] = set()
    for rank, at in enumerate(sorted(p, key=p.__getitem__)):
        if p[at] > ERROR / (len(p) - rank):
            break
        admitted.add(at)
    return admitted


@dataclass(frozen=True)
class Repeated:
    """An old value against new ones: `effect` of new over old, and the bounds within which old may lie by noise alone.

    `holds`: the old value is inside the noise, all series considered. low and high are of one series by itself.
    """

    old: float
    new: float
    effect: float
    low: float
    high: float
    holds: bool = True


def repeated(old: Sequence[float], new: Sequence[Sequence[float]]) -> list[Repeated | None]:
    """Whether each old value could be one more of its new ones; None where a value is not positive or new are too few.

    A prediction interval of Student's t on logarithms (Whitmore 1986, "Prediction limits for a univariate normal
    observation"), and Holm's procedure over all of them.
    """
    found: list[Repeated | None] = []
    p: dict[int, float] = {}
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if len(after) < LEAST_ROUNDS or before <= 0 or min(after) <= 0:
            found.append(None)
            continue
        logs = [math.log(value) for value in after]
        middle, error = statistics.fmean(logs), statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
        away, degrees = math.log(before) - middle, len(logs) - 1
        p[at] = _p(away if abs(away) > _SAME else 0.0, error, degrees)
        reach = t_975(degrees) * error
        level = math.exp(middle)
        bounds = math.exp(middle - reach), math.exp(middle + reach)
        found.append(Repeated(before, level, level / before - 1, *bounds))
    admitted = _holm(p)
    return [replace(one, holds=at not in admitted) if one else None for at, one in enumerate(found)]


def _difference(rounds: Sequence[tuple[float, float]]) -> Difference | None:
    if len(rounds) < LEAST_ROUNDS or any(min(pair) <= 0 for pair in rounds):
        return None
    ratios = [math.log(after / before) for before, after in rounds]
    middle, error = statistics.fmean(ratios), statistics.stdev(ratios) / math.sqrt(len(ratios))
    reach = t_975(len(ratios) - 1) * error
    low, high = math.expm1(middle - reach), math.expm1(middle + reach)
    return Difference(math.expm1(middle), low, high, _p(middle, error, len(ratios) - 1), len(ratios))


def _p(middle: float, error: float, degrees: int) -> float:
    if not error:
        return 0.0 if middle else 1.0
    return two_sided(middle / error, degrees)


def two_sided(t: float, degrees: int) -> float:
    """How often Student's t lies at least this far from 0 (Abramowitz and Stegun 26.7.3 and 26.7.4, exact)."""
    angle = math.atan(abs(t) / math.sqrt(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = degrees % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for step in range(1 + odd, degrees, 2):  # the series' terms of cos^(step - 1), up to cos^(degrees - 2)
        total += term
        term *= cosine**2 * (step / (step + 1))
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return max(0.0, 1.0 - inside)
