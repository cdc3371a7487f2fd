"""Each telling held against the changes that truly were: what it was, and which of them it tells."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmarks.lab.telling import Telling
from tests.benchmarks.lab.world import MACHINE, TVM, Change, World
from tvmdash.records.metrics import is_worse

NEAR, ALONE_NEAR = 2, 5
"""A telling is of a change no further than so many nights from its place; of a row's only change, the second."""
DRIFT_WINDOW = 10
"""A drift's place is the middle of a window that reaches so many nights to both sides."""


class Outcome(enum.StrEnum):
    """What a telling was. Right, or of nothing at all, of what had been told, of another's doing, the wrong way."""

    RIGHT = "right"
    NOTHING = "nothing"
    REPEATED = "repeated"
    BLAMED = "blamed"
    WRONG_WAY = "wrong_way"


@dataclass(frozen=True)
class Judgement:
    """A telling, what it was, and the true size (logarithm) of what it tells.

    after_change: whether its row had truly changed before.
    """

    telling: Telling
    outcome: Outcome
    truth: float | None = None
    after_change: bool = False

    @property
    def is_covered(self) -> bool | None:
        """Whether the interval told holds the truth; None where there is none of them."""
        told = self.telling
        if self.truth is None or told.low is None or told.high is None or not told.relative:
            return None
        return told.low <= math.expm1(self.truth) <= told.high


@dataclass
class Matcher:
    """Finds for each telling the changes that it tells.

    A change may be told once of each series that shows it: of a time, and of its ratio to the reference.
    """

    world: World
    delays: dict[Change, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._of_row: dict[int, list[Change]] = {}
        self._told: set[tuple[Change, str]] = set()
        for change in self.world.changes:
            self._of_row.setdefault(change.row, []).append(change)
        self._controlled = any(row.experiment.is_fixed for row in self.world.rows)

    def judge(self, told: Telling) -> Judgement:
        """What the telling was; the changes that it tells are told from then on."""
        near = [change for row in told.rows for change in self._near(row, told)]
        known = any(change.night <= told.night for row in told.rows for change in self._of_row.get(row, ()))
        if not near:
            return Judgement(told, Outcome.NOTHING, after_change=known)
        fresh = [change for change in near if self._is_fresh(told, change)]
        if not fresh:
            return Judgement(told, Outcome.REPEATED, after_change=known)
        if all(self._is_blamed_wrongly(told, change) for change in fresh):
            return Judgement(told, Outcome.BLAMED, after_change=known)
        self._told |= {(change, told.series) for change in fresh}
        for change in fresh:
            self.delays.setdefault(change, told.night - change.night)
        if self._is_wrong_way(told, fresh[0]):
            return Judgement(told, Outcome.WRONG_WAY, after_change=known)
        return Judgement(told, Outcome.RIGHT, self._truth(told, fresh), after_change=known)

    def _is_fresh(self, told: Telling, change: Change) -> bool:
        return (change, told.series) not in self._told or change.last > change.night or told.is_back

    def _truth(self, told: Telling, changes: Sequence[Change]) -> float | None:
        """How far the changes go together; None where others are so near that this is not what was told."""
        gradual = any(change.last > change.night for change in changes)
        others = (change for change in self._of_row[changes[0].row] if change not in changes)
        alone = all(change.last < told.after - ALONE_NEAR or change.night > told.night for change in others)
        return None if told.is_whole or gradual or not alone else sum(change.size for change in changes)

    def _near(self, row: int, told: Telling) -> list[Change]:
        """The changes of the row that the telling may mean: those in its range of nights, else the nearest.

        Of those that were told before, only where there is no other.
        """
        changes = self._of_row.get(row, [])
        reach = DRIFT_WINDOW if told.is_creep else ALONE_NEAR if len(changes) == 1 else NEAR
        same = [change for change in changes if change.night <= told.night and change.size * told.effect > 0]
        away = {change: self._away(change, told) for change in same if self._away(change, told) <= reach}
        fresh = {change: nights for change, nights in away.items() if self._is_fresh(told, change)}
        nearest = min((fresh or away).values(), default=0)
        return [change for change, nights in (fresh or away).items() if nights == nearest]

    def _away(self, change: Change, told: Telling) -> int:
        """By how many nights the telling's place misses the change."""
        first, last = told.after + 1, told.night if told.is_creep else told.begin
        return max(0, first - change.last, change.night - last)

    def _is_wrong_way(self, told: Telling, change: Change) -> bool:
        """Whether it was told as better, or as worse, and is not. That an exact number changed is enough."""
        row = self.world.rows[change.row]
        single = not (told.is_whole or told.is_back)
        return single and told.worse is not None and told.worse is not is_worse(change.size, row.direction)

    def _is_blamed_wrongly(self, told: Telling, change: Change) -> bool:
        if told.is_back:
            return False
        if change.whose == TVM:
            return told.blame == "machine"
        unsure = change.whose == MACHINE and self._controlled and told.blame != "machine"
        return told.blame == "compiler" or unsure
