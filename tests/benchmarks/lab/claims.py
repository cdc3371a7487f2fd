"""What a situation claims: what must be said of its world, by which night, and what must not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.benchmarks.lab.world import Change, World
from tvmdash.records.metrics import is_worse
from tvmdash.verdict import Level

GREEN = frozenset({Level.IMPROVED, Level.STEADY})
SURE, SOON = 0.049, 0.029
"""Changes from these sizes on are to be told the same night, and within two nights (truth.md, section 5)."""


@dataclass(frozen=True)
class Must:
    """The change must be told, `within` so many nights, and the verdict then be no less grave than `level`.

    within: None where it is so small that it need not be; whether it was is counted all the same.
    """

    change: Change
    within: int | None
    level: Level


@dataclass(frozen=True)
class Never:
    """The verdicts of these nights must be of none of the levels."""

    levels: frozenset[Level]
    nights: range
    why: str


@dataclass(frozen=True)
class Case:
    """A world and what is claimed of it. Whatever did not change must not be told, in any of them.

    on_first_night: the first night must say which series differ from the reference, and only those.
    """

    world: World
    must: Sequence[Must] = ()
    never: Sequence[Never] = ()
    on_first_night: bool = False


def must_tell(world: World, changes: Iterable[Change], within: int | None = None) -> list[Must]:
    """That they are told; where `within` is not given, as soon as their size asks for."""
    claims = []
    for change in changes:
        row = world.rows[change.row]
        worse = None if row.kind == "exact" else is_worse(change.size, row.direction)
        level = {True: Level.REGRESSION, False: Level.IMPROVED, None: Level.CHANGED}[worse]
        limit = _limit(change, is_exact=row.noise is None and not row.is_signed) if within is None else within
        claims.append(Must(change, limit, level))
    return claims


def _limit(change: Change, *, is_exact: bool) -> int | None:
    size = abs(math.expm1(change.size))
    if is_exact or size >= SURE:
        return 0
    return 2 if size >= SOON else None


def never_green(world: World, first: int, last: int | None = None, *, why: str) -> Never:
    """No night from `first` to `last` (the end where not given) may be called improved or steady."""
    return Never(GREEN, range(first, world.nights if last is None else last + 1), why)


def never_regression(world: World, first: int = 0, *, why: str) -> Never:
    """No night from `first` on may be called a regression."""
    return Never(frozenset({Level.REGRESSION}), range(first, world.nights), why)
