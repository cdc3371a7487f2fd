"""An old number that was measured again: whether it could be one more of the new ones."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tvmdash.judge.student import t_975, two_sided

HOLDS, DOES_NOT_HOLD, CANNOT_TELL = "holds", "does not hold", "cannot tell"
LEAST_ROUNDS = 3
"""Fewer say nothing of how much one round differs from the next."""
_ERROR = 0.05
_SAME = 1e-12


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


def judge_repeated(old: Sequence[float], new: Sequence[Sequence[float]]) -> list[Repeated | None]:
    """Whether each old value could be one more of its new ones; None where a value is not positive or new are too few.

    A prediction interval of Student's t on logarithms (Whitmore 1986, "Prediction limits for a univariate normal
    observation"), and Holm's procedure over all of them.
    """
    results: list[Repeated | None] = []
    p: dict[int, float] = {}
    for at, (before, after) in enumerate(zip(old, new, strict=True)):
        if len(after) < LEAST_ROUNDS or before <= 0 or min(after) <= 0:
            results.append(None)
            continue
        logs = [math.log(value) for value in after]
        middle, error = statistics.fmean(logs), statistics.stdev(logs) * math.sqrt(1 + 1 / len(logs))
        away, degrees = math.log(before) - middle, len(logs) - 1
        p[at] = _p(away if abs(away) > _SAME else 0.0, error, degrees)
        reach = t_975(degrees) * error
        level = math.exp(middle)
        bounds = math.exp(middle - reach), math.exp(middle + reach)
        results.append(Repeated(before, level, level / before - 1, *bounds))
    admitted = _holm(p)
    return [
        replace(difference, holds=at not in admitted) if difference else None for at, difference in enumerate(results)
    ]


def _p(middle: float, error: float, degrees: int) -> float:
    if not error:
        return 0.0 if middle else 1.0
    return two_sided(middle / error, degrees)


def _holm(p: Mapping[int, float]) -> set[int]:
    """Which of these are beyond chance, all of them considered."""
    admitted: set[int] = set()
    for rank, at in enumerate(sorted(p, key=p.__getitem__)):
        if p[at] > _ERROR / (len(p) - rank):
            break
        admitted.add(at)
    return admitted
