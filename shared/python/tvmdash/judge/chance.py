"""The rate at which chance alone tells something, learned from a home's own series where nothing changed.

A night's measurement lies some standard errors from what is known. Where TVM is that of before, or nothing is told
of another build, that is a null, and nulls say how wide errors are in truth (the empirical null, Efron 2004).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from tvmdash.judge.evidence import Pairs
from tvmdash.judge.model import FoundStep, SeriesModel, Shift
from tvmdash.judge.rules import RULES


@dataclass(frozen=True)
class Nulls:
    """A count of nulls, and of those that lie farther out than each of RULES.null_marks."""

    count: int = 0
    beyond: tuple[int, ...] = (0,) * len(RULES.null_marks)

    def __add__(self, other: Nulls) -> Nulls:
        return Nulls(self.count + other.count, tuple(map(sum, zip(self.beyond, other.beyond, strict=True))))

    @property
    def width(self) -> float | None:
        """The ratio of the errors' true width to the expected, by the mark that says more; None with too few nulls."""
        if self.count < RULES.least_nulls:
            return None
        shares = [min(0.9, max(0.01, beyond) / self.count) for beyond in self.beyond]
        expected = [NormalDist().inv_cdf(1 - share / 2) for share in shares]
        return max(mark / at for mark, at in zip(RULES.null_marks, expected, strict=True))


def share_beyond(errors: float) -> float:
    """The share of a normal distribution that lies so many standard errors out, on either side."""
    return math.erfc(errors / math.sqrt(2))


NO_NULLS = Nulls()


def count_errors(shift: Shift) -> float:
    """Convert the shift to standard errors of a normal distribution (Wallace 1959)."""
    freedom = shift.freedom
    square = (shift.log / shift.error) ** 2 / (1 - 2 / freedom)
    return (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(square / freedom))


def find_nulls(models: Iterable[SeriesModel], night: int) -> tuple[Nulls, Nulls]:
    """Find tonight's nulls: of series whose TVM is that of an earlier night, and of those whose TVM is another.

    models: of series of which nothing is told.
    """
    found: tuple[list[float], list[float]] = [], []
    for model in models:
        each = model.evidence
        own = [pairs for pairs in each.pairs if pairs.build == each.tonight and not pairs.layout]
        before = [pairs for pairs in own if pairs.night < night]
        again = [pairs for pairs in own if pairs.night == night and any(pairs.base == one.base for one in before)]
        if again:
            base = again[-1].base
            both = [_mean(model, [one for one in side if one.base == base]) for side in (before, again)]
            error = math.hypot(both[0].error, both[1].error)
            found[0].append(count_errors(Shift(both[1].log - both[0].log, error, RULES.most_freedom)))
        elif not before and model.cuts()[-1:] == [each.place] and (shift := model.shift(each.place)) is not None:
            found[1].append(count_errors(shift))
    same, other = map(_count, found)
    return same, other


def _mean(model: SeriesModel, pairs: Sequence[Pairs]) -> Shift:
    weights = [1 / model.noise.error(model.name, each) for each in pairs]
    log = float(np.average([each.log for each in pairs], weights=weights))
    return Shift(log, 1 / math.sqrt(sum(weights)), RULES.most_freedom)


def _count(errors: Sequence[float]) -> Nulls:
    return Nulls(len(errors), tuple(sum(each > mark for each in errors) for mark in RULES.null_marks))


def chance_of(model: SeriesModel, prior: float, width: float) -> float:
    """Bound how often such a series is told by chance, where errors are wider than expected by the factor `width`."""
    least = model.reach(prior, RULES.log("told"))
    return 0.0 if least is None else _chance(model, least, width)


def chance_of_step(model: SeriesModel, found: FoundStep, width: float) -> float:
    """Bound how often chance alone brings a series as much as this step."""
    measured = model.shift(found.begin)
    freedom = RULES.most_freedom if measured is None else measured.freedom
    return _chance(model, Shift(found.shift, found.error, freedom), width)


def _chance(model: SeriesModel, shift: Shift, width: float) -> float:
    """Each of the builds at which a step may be said to begin is a chance of its own."""
    return min(1.0, len(model.cuts()) * share_beyond(count_errors(shift) / width)) if shift.error else 0.0
