"""Hold what a judge said against what was planted.

A telling is right if its series overlap planted ones, its sign is right, and its begin is the planted build or lies
within the builds that nobody had measured between. A step counts as told on the same night, or within two, from the
first night on that measured one of its series with it. A night is wrongly red for each incident that is open (or was
told that night) and overlaps no series that is worse in the night's build; nights of an older build count as neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from tests.benchmarks.worlds.evidence import Told
from tests.benchmarks.worlds.play import Night
from tests.benchmarks.worlds.world import Step, World


@dataclass(frozen=True)
class Edge:
    """A level that changes: where a step begins, or where it ends."""

    step: Step
    build: int
    size: float

    @property
    def ends(self) -> bool:
        return self.build != self.step.begin


@dataclass(frozen=True)
class Match:
    """A telling and the edge it tells of, if any; again: that was told before, and is no reopening."""

    night: int
    told: Told
    edge: Edge | None
    again: bool = False


@dataclass
class Figures:
    """Counts, and the effects told as (size planted, error, whether the interval holds it).

    expected: how many tellings the judge expected by chance, on the nights that say so; happened: the false on these.
    """

    series_nights: int = 0
    nights: int = 0
    quiet: int = 0
    ambers: int = 0
    undecided: float = 0.0
    told: int = 0
    false: int = 0
    twice: int = 0
    strangers: int = 0
    wrong_red: int = 0
    standing: int = 0
    closed: int = 0
    green: int = 0
    steps: int = 0
    same: int = 0
    two: int = 0
    ever: int = 0
    recoveries: int = 0
    recovered: int = 0
    not_fixed: int = 0
    expected: float = 0.0
    happened: int = 0
    effects: list[tuple[float, float, bool]] = field(default_factory=list)
    delays: list[tuple[float, int | None]] = field(default_factory=list)

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, at.name) + getattr(other, at.name) for at in fields(self)))


class Score:
    """One world, played: matches of all tellings and its figures."""

    def __init__(self, world: World, nights: Sequence[Night]) -> None:
        self.world, self.nights = world, nights
        self.worse = {at: -1 if world.kinds[row] in {"rate", "accuracy"} else 1 for row, at in enumerate(world.names)}
        self.edges = [Edge(step, step.begin, step.size) for step in world.steps if step.drift is None]
        self.edges += [Edge(step, step.end, -step.size) for step in world.steps if step.end is not None]
        self.matches: list[Match] = []
        self.faults: list[str] = []
        self._fixed_on: dict[int, int] = {}  # by the step's id: the first night that said so
        self._incident: dict[str, Step] = {}
        self.figures = Figures()
        self._read()

    def _read(self) -> None:
        figures, open_before = self.figures, set[str]()
        for night in self.nights:
            figures.nights += 1
            figures.series_nights += len(night.seen)
            false = figures.false
            for told in night.verdict.told:
                self._take(night, told, open_before)
            if night.verdict.by_chance is not None:
                figures.expected += night.verdict.by_chance
                figures.happened += figures.false - false
            self._headline(night)
            open_before = set(night.verdict.open)
        for step in self.world.steps:
            self._step(step)

    # Tellings.

    def _take(self, night: Night, told: Told, open_before: set[str]) -> None:
        if told.decision == "suspect" or self.world.unrated.issuperset(told.series):
            return
        if told.decision in {"fixed", "withdrawn"}:
            self._take_fixed(night, told)
            return
        self.figures.told += 1
        if told.decision in {"machine", "drift"}:
            edge = None
            right = self._is_machine(night) if told.decision == "machine" else self._drifts(night, told)
        else:
            edge = self._edge(night, told)
            right = edge is not None
        again = False
        if edge is not None:
            same = [match for match in self.matches if match.edge == edge]
            reopened = bool(told.incident) and told.incident in self._incident and told.incident not in open_before
            again = bool(same) and not reopened
            self._incident[told.incident] = edge.step
            self.figures.twice += again
            self.figures.strangers += len(set(told.series) - edge.step.series)
            if not same:
                self._effect(edge, told)
        self.matches.append(Match(night.number, told, edge, again))
        if not right:
            self.figures.false += 1
            self._fault(night, f"false: {told.decision} {100 * told.effect:+.1f} % from {told.begin}", told.series)
        elif again:
            self._fault(night, f"told again, from {told.begin}", told.series)

    def _edge(self, night: Night, told: Told) -> Edge | None:
        series = set(told.series)
        right = [edge for edge in self.edges if self._fits(edge, night, told)]
        return max(right, key=lambda edge: self._likeness(edge, series, told), default=None)

    def _likeness(self, edge: Edge, series: set[str], told: Told) -> tuple[float, float]:
        overlap = len(series & edge.step.series) / len(series | edge.step.series)
        return overlap, -abs(edge.size - math.log1p(told.effect))

    def _fits(self, edge: Edge, night: Night, told: Told) -> bool:
        common = edge.step.series.intersection(told.series)
        if not common or edge.size * told.effect <= 0 or edge.build > night.newest:
            return False
        if (told.decision == "told") != (self.worse[min(common)] * edge.size > 0):
            return False
        return any(self._brackets(edge.build, night.measured[series], told.begin) for series in common)

    @staticmethod
    def _brackets(build: int, measured: tuple[frozenset[int], frozenset[int]], begin: str) -> bool:
        own, known = measured
        number = int(begin.rsplit("-", 1)[-1]) if begin.startswith("tvm-") else -1
        before = max((one for one in known if one < build), default=-1)
        return before < number <= min((one for one in own if one >= build), default=-1)

    def _is_machine(self, night: Night) -> bool:
        return any(move.first <= night.number <= move.until + 2 for move in self.world.moves)

    def _drifts(self, night: Night, told: Told) -> bool:
        return any(
            step.drift is not None
            and step.series.intersection(told.series)
            and step.size * told.effect > 0
            and step.begin < night.newest
            for step in self.world.steps
        )

    def _take_fixed(self, night: Night, told: Told) -> None:
        ended = [
            step
            for step in self.world.steps
            if step.end is not None and step.begin <= night.newest and not step.is_in(night.build)
            if step.series.intersection(told.series)
        ]
        for step in ended:
            self._fixed_on.setdefault(id(step), night.number)
        stands = any(step.is_in(night.build) and step.series.intersection(told.series) for step in self.world.steps)
        if not ended and not night.is_older and (stands or told.decision == "fixed"):
            self.figures.not_fixed += 1
            self._fault(night, f"fixed, which it is not: {told.incident}", told.series)

    def _effect(self, edge: Edge, told: Told) -> None:
        if not edge.step.sized:
            return
        rows = [row for row, name in enumerate(self.world.names) if name in edge.step.series & set(told.series)]
        whole = float(np.mean(self.world.level[rows, edge.build] - self.world.level[rows, edge.build - 1]))
        truth = min((edge.size, whole), key=lambda size: abs(math.expm1(size) - told.effect))
        holds = told.low <= math.expm1(truth) <= told.high
        self.figures.effects.append((abs(math.expm1(edge.size)), told.effect - math.expm1(truth), holds))

    def _fault(self, night: Night, what: str, series: Sequence[str] = ()) -> None:
        some = ", ".join(sorted(series)[:3]) + (f" and {len(series) - 3} more" if len(series) > 3 else "")
        self.faults.append(f"night {night.number}, build {night.build}: {what} {some}".rstrip())

    # Nights.

    def is_bad(self, step: Step, build: int) -> bool:
        """Whether a build is worse by this step."""
        return step.is_in(build) and self.worse[min(step.series)] * step.size > 0

    def is_green(self, night: Night, step: Step) -> bool:
        """Whether a night says nothing of what is open, suspected or undecided of a step's series."""
        said = [told.series for told in night.verdict.told] + list(night.verdict.open.values())
        return step.series.isdisjoint({series for group in [*said, night.verdict.undecided] for series in group})

    def _headline(self, night: Night) -> None:
        figures, verdict = self.figures, night.verdict
        bad = [step for step in self.world.steps if self.is_bad(step, night.build)]
        red = [*verdict.open.values(), *(told.series for told in verdict.told if told.decision == "told")]
        wrong = [group for group in red if not any(step.series.intersection(group) for step in bad)]
        wrong = [group for group in wrong if not (self.world.unrated.issuperset(group) or self._unseen(night, group))]
        if wrong and not night.is_older:
            figures.wrong_red += 1
            self._fault(night, "red for nothing:", wrong[0])
        reached = any(step.begin <= night.newest for step in self.world.steps)
        if not bad and (not reached or all(step.end is not None for step in self.world.steps)):
            figures.quiet += 1
            figures.ambers += any(told.decision == "suspect" for told in verdict.told)
            figures.undecided += len(night.seen.intersection(verdict.undecided)) / max(1, len(night.seen))
        opened = {name for group in verdict.open.values() for name in group}
        for step in bad:
            if any(match.edge and self._tells(match.told, match.edge, step) for match in self.matches):
                figures.standing += 1
                if not step.series & opened:
                    figures.closed += 1
                    self._fault(night, "closed while it stands:", sorted(step.series))
            elif step.drift is None and step.series & night.seen and self.is_green(night, step):
                figures.green += 1

    def _unseen(self, night: Night, group: Sequence[str]) -> bool:
        """Whether a step that they overlap has ended, and no night has measured its series since."""
        ended = [step for step in self.world.steps if step.series.intersection(group) and not step.is_in(night.build)]
        return any(
            step.begin <= night.build
            and not any(at.number <= night.number for at in self.nights_of(step, step.end or 0))
            for step in ended
        )

    # Steps.

    def nights_of(self, step: Step, edge: int) -> list[Night]:
        """The nights from the first on that measured one of the step's series with the build `edge` or a later one."""
        reached = [
            at for at, night in enumerate(self.nights) if night.build >= edge and step.series & night.seen
        ]  # fmt: skip
        return list(self.nights[reached[0] :]) if reached else []

    def delay(self, step: Step) -> int | None:
        """Nights from the first that could tell to the one that told; 0 is the same night."""
        numbers = [night.number for night in self.nights_of(step, step.begin)]
        told = [match.night for match in self.matches if match.edge and self._tells(match.told, match.edge, step)]
        return numbers.index(told[0]) if told and told[0] in numbers else None

    @staticmethod
    def _tells(told: Told, edge: Edge, step: Step) -> bool:
        """Whether it tells of this step as well as of the one that it matches best: equal ones of one build."""
        alike = edge.build == step.begin and math.isclose(edge.size, step.size)
        return alike and not step.series.isdisjoint(told.series)

    def fixed_after(self, step: Step) -> int | None:
        """The same of the night that said it is fixed."""
        numbers = [night.number for night in self.nights_of(step, step.end or 0)]
        fixed = self._fixed_on.get(id(step))
        return numbers.index(fixed) if fixed in numbers else None

    def _step(self, step: Step) -> None:
        figures = self.figures
        seen = [night for night in self.nights_of(step, step.begin) if step.is_in(night.build)]
        if step.drift is not None or not seen:
            return
        delay = self.delay(step)
        figures.steps += 1
        figures.same += delay == 0
        figures.two += delay in {0, 1}
        figures.ever += delay is not None
        figures.delays.append((round(abs(math.expm1(step.size)), 4), delay))
        if step.end is not None and delay is not None and self.nights_of(step, step.end):
            figures.recoveries += 1
            figures.recovered += self.fixed_after(step) == 0
