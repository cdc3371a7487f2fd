"""Give a judge a world's nights, one after another, and measure again what it asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.worlds.evidence import Build, Judge, Pairs, Value, Verdict
from tests.benchmarks.worlds.noise import draw_pairs
from tests.benchmarks.worlds.world import World

KEPT = 14
"""Builds that can be measured again: so many of the last ones, the night's references and earlier named ones."""


@dataclass(frozen=True)
class Night:
    """What a judge said on a night.

    seen: series with a value; measured: by series, the builds known of it by then, those of nights and all.
    """

    number: int
    build: int
    newest: int
    verdict: Verdict
    seen: frozenset[str]
    measured: dict[str, tuple[frozenset[int], frozenset[int]]]

    @property
    def is_older(self) -> bool:
        """Whether it measured a build that is older than one before."""
        return self.build < self.newest


@dataclass
class Again:
    """Measures again, within the night's budget. It draws from numbers of its own: worlds don't depend on judges.

    children: by series and build, the luck of the night's relinked children, which take turns.
    """

    world: World
    night: int
    rows: dict[str, int]
    kept: set[int]
    taken: list[tuple[int, Pairs]] = field(default_factory=list)
    children: dict[tuple[int, int], list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.left = self.world.plan.again * self.world.plan.series
        self.rng = self.world.rng(19, self.night)
        self.turns: Counter[tuple[int, int]] = Counter()

    def __call__(self, series: str, build: Build, base: Build, count: int, *, relinked: bool) -> Pairs | None:
        """Measure `count` pairs, fewer where the budget ends; None where the build is gone or nothing is left."""
        row, world = self.rows[series], self.world
        numbers = [int(each.artifact.rsplit("-", 1)[1]) for each in (build, base) if each.artifact != "canary"]
        unpaired = row in world.controls or world.kinds[row] not in {"time", "rate"} or series in world.unpaired
        count = min(count, int(self.left // world.cost[row]))
        if unpaired or len(numbers) < 2 or not set(numbers) <= self.kept or count < 1:
            return None
        self.left -= count * world.cost[row]
        first, second = (self._side(row, number, relinked=relinked) for number in numbers)
        shift = first[1] - second[1] + world.common[self.night]
        logs = (
            shift
            + draw_pairs(world.families[row], self.rng, (count,)) * world.scatter[row] * (world.widening[self.night])
        )
        logs = logs + world.draw_modes(row, numbers[0], numbers[1], count, self.rng)
        pairs = Pairs(world.stamp(self.night), first[0], second[0], tuple(logs.tolist()), world.hosts[self.night])
        self.taken.append((row, pairs))
        return pairs

    def _side(self, row: int, build: int, *, relinked: bool) -> tuple[Build, float]:
        if not relinked:
            return self.world.artifact(row, build), self.world.effect(row, build)
        children = self.children.setdefault((row, build), [])
        at = self.turns[row, build] % self.world.plan.relinks
        self.turns[row, build] += 1
        if at == len(children):
            children.append(self.world.draw_moved(self.rng))
        layout = 100 * (self.night + 1) + at
        return self.world.artifact(row, build, layout), self.world.effect(row, build, children[at])


def play(world: World, make: Callable[[], Judge]) -> list[Night]:
    """All nights that ran."""
    judge, nights = make(), []
    rows = {name: at for at, name in enumerate(world.names)}
    pairs: list[list[Pairs]] = [[] for _ in world.names]
    values: list[list[Value]] = [[] for _ in world.names]
    own: list[set[int]] = [set() for _ in world.names]
    known: list[set[int]] = [set() for _ in world.names]
    newest, past = 0, list[int]()
    for number in np.flatnonzero(world.on).tolist():
        build = int(world.sequence[number])
        newest = max(newest, build)
        past = [*(one for one in past if one != build), build]
        seen = np.flatnonzero(world.present[:, number]).tolist()
        for row in seen:
            pairs[row] += world.pairs(row, number)
            values[row].append(world.value(row, number))
            own[row].add(build)
            known[row] |= {build, *world.references[number]}
        named = world.references[: number + 1] if world.plan.reference != "chain" else world.references[number:][:1]
        kept = {*past[-KEPT:], *(base for bases in named for base in bases)}
        again = Again(world, number, rows, {one for one in kept if world.gone.get(one, number + 1) > number})
        evidence = [world.series(row, pairs[row], values[row]) for row in range(len(rows)) if values[row]]
        verdict = judge.night(world.stamp(number), evidence, again)
        for row, taken in again.taken:
            pairs[row].append(taken)
        measured = (
            {name: (frozenset(own[at]), frozenset(known[at])) for name, at in rows.items()} if verdict.told else {}
        )
        nights.append(Night(number, build, newest, verdict, frozenset(world.names[at] for at in seen), measured))
    return nights
