"""What was told in a world against what is true of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.benchmarks.lab import evidence
from tests.benchmarks.lab.claims import GREEN, SOON, Case, Must
from tests.benchmarks.lab.home import LabHome
from tests.benchmarks.lab.matching import Judgement, Matcher, Outcome
from tests.benchmarks.lab.telling import tellings
from tests.benchmarks.lab.world import World
from tvmdash.verdict import Level


@dataclass(frozen=True)
class Hit:
    """What became of one Must: nights until it was told, None where never; graded: the verdict was grave enough."""

    must: Must
    size: float
    delay: int | None
    graded: bool
    is_exact: bool

    @property
    def is_missed(self) -> bool:
        """Whether it had to be told, and was not in time, or by a verdict that was not grave enough."""
        limit = self.must.within
        return limit is not None and not (self.is_told(limit) and self.graded)

    def is_told(self, nights: int) -> bool:
        """Whether it was told within so many nights."""
        return self.delay is not None and self.delay <= nights


@dataclass(frozen=True)
class Difference:
    """Of a series on one night: whether it was told to differ from the reference, and whether it truly does."""

    night: int
    told: bool
    true: bool


@dataclass(frozen=True)
class Result:
    """One world played: all that the figures are made of.

    late_nights: metric-nights after a change of the series. green: nights that were green against the evidence.
    before: the levels of the nights before anything changed. violations: what the situation forbids, and was said.
    covered: for each interval of a ratio, and differs_covered of a difference to the reference, whether it holds the
    truth.
    """

    nights: int
    metric_nights: int
    late_nights: int
    judgements: Sequence[Judgement]
    hits: Sequence[Hit]
    green: int
    before: Sequence[Level]
    violations: Sequence[str]
    crashes: Sequence[str]
    covered: Sequence[bool]
    differs: Sequence[Difference]
    differs_covered: Sequence[bool]
    measured_s: float
    again_s: float
    on_first_night: bool

    @property
    def wrong(self) -> list[Judgement]:
        return [judgement for judgement in self.judgements if judgement.outcome != Outcome.RIGHT]

    @property
    def is_held(self) -> bool:
        """Whether all that must be said was said in time, and nothing that must not."""
        said = not any(hit.is_missed for hit in self.hits)
        of_first = [differs for differs in self.differs if differs.night == 0]
        first = not self.on_first_night or all(differs.told == differs.true for differs in of_first)
        return said and first and not (self.wrong or self.green or self.violations or self.crashes)


def score(case: Case, home: LabHome) -> Result:
    """The result of a home that was played."""
    world, matcher = case.world, Matcher(case.world)
    judgements = [matcher.judge(told) for told in tellings(home.events(), world, home.rows)]
    levels = [Level(verdict["level"]) for verdict in home.verdicts]
    differs, differs_covered = _differs(world, home)
    return Result(
        nights=world.nights,
        metric_nights=int(world.present[:, 1:].sum()),
        late_nights=int((world.present & _late(world))[:, 1:].sum()),
        judgements=judgements,
        hits=[_hit(world, must, matcher.delays.get(must.change), levels) for must in case.must],
        green=sum(level in GREEN and evidence.speaks_against(world, night) for night, level in enumerate(levels)),
        before=levels[: min((change.night for change in world.changes), default=world.nights)],
        violations=[
            f"{levels[night]} on night {night}: {never.why}"
            for never in case.never
            for night in never.nights
            if levels[night] in never.levels
        ],
        crashes=home.crashes,
        covered=_ratios_covered(home),
        differs=differs,
        differs_covered=differs_covered,
        measured_s=sum(measured.seconds for measured in home.measured),
        again_s=sum(home.again_s),
        on_first_night=case.on_first_night,
    )


def _late(world: World) -> np.ndarray[Any, Any]:
    """By row and night, whether the row has changed before."""
    late = np.zeros(world.present.shape, bool)
    for change in world.changes:
        late[change.row, change.night :] = True
    return late


def _hit(world: World, must: Must, delay: int | None, levels: Sequence[Level]) -> Hit:
    grave = list(Level).index
    told = levels[must.change.night + delay] if delay is not None else None
    graded = told is not None and grave(told) <= grave(must.level)
    exact = world.rows[must.change.row].noise is None
    return Hit(must, abs(math.expm1(must.change.size)), delay, graded, exact)


def _ratios_covered(home: LabHome) -> list[bool]:
    """Of each ratio of several pairs, whether its interval holds how far the two builds are truly apart."""
    ratios = [ratio for measured in home.measured for ratio in measured.ratios.values()]
    return [ratio.is_covered for ratio in ratios if len(ratio.cpu) > 1]


def _differs(world: World, home: LabHome) -> tuple[list[Difference], list[bool]]:
    """What each night said of the reference, and whether the intervals hold the truth.

    A row that is less than SOON away from the reference, and not where it is, may be told or not.
    """
    found, covered = [], []
    for night, verdict in enumerate(home.verdicts):
        reference = world.reference(night)
        away = world.build(night).level - (reference.level if reference else 0.0)
        told = {
            home.rows[item["series"].partition("~")[0]]: item
            for item in (verdict.get("beside") or {}).get("differences", ())
        }
        for row in home.measured[night].ratios:
            size = math.expm1(float(away[row]))
            if row in told:
                covered.append(told[row]["low"] <= size <= told[row]["high"])
            if abs(size) >= SOON or not size:
                found.append(Difference(night, row in told, bool(size)))
    return found, covered
