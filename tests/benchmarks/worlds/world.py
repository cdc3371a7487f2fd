"""A simulated home: which TVM each night measures beside which, how fast each truly is, and what was planted.

TVM's history is numbered: build 0 is the release that is older than the home, a build's number is its order. Everything
is an array by series and build, or by series and night, which a situation edits before the first night is asked for.
"""

from __future__ import annotations

import datetime
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from tests.benchmarks.worlds.evidence import Build, Pairs, SeriesEvidence, Value
from tests.benchmarks.worlds.noise import CODE_SHARE, FAMILIES, Array, Generator, draw_luck, draw_pairs

MOST_PAIRS = 7
Reference = Literal["chain", "fixed", "moving"]


@dataclass(frozen=True)
class Plan:
    """What a world is drawn from; equal plans give equal worlds, whatever the judge asks for.

    luck: how builds differ by layout, a standard deviation. redrawn: which share of the variance of generated code's a
    relink draws anew; TVM's own libraries are never relinked. wheel: a new build now and then instead of nearly every
    night. reference: the build before, one TVM for good, or a release that changes sometimes. churn: how often a build
    changes a series' code. again: pairs that a judge may have measured again each night, by series of the home.
    relinks: children that a night makes of a build. name: worlds of different names have nothing in common.
    """

    seed: int
    series: int = 48
    nights: int = 40
    luck: float = 0.003
    redrawn: float = 1.0
    wheel: bool = False
    reference: Reference = "chain"
    churn: float = 0.15
    gaps: bool = True
    again: float = 3.0
    relinks: int = 3
    name: str = ""


@dataclass(frozen=True)
class Step:
    """What was planted: in these series, by `size` (a logarithm), from the build `begin` up to before `end`.

    drift: it grows evenly over the builds from begin to drift. sized: whether the size that is told is scored.
    """

    series: frozenset[str]
    size: float
    begin: int
    end: int | None = None
    drift: int | None = None
    sized: bool = True

    def is_in(self, build: int) -> bool:
        """Whether that build has it."""
        return self.begin <= build and (self.end is None or build < self.end)


@dataclass(frozen=True)
class MachineMove:
    """The machine is slower by `size` from the night `first` up to before `until`."""

    first: int
    until: int
    size: float


@dataclass
class World:
    """sequence: the build that each night measures. references: those it is measured beside. on: nights that ran.

    noise: what stands for the scatter of a series in pairs on a night. gone: builds that nobody can measure again from
    a night on. unpaired: series whose absolute values are all there is. unrated: series of which no telling is wrong.
    """

    plan: Plan
    steps: list[Step] = field(default_factory=list)
    moves: list[MachineMove] = field(default_factory=list)
    gone: dict[int, int] = field(default_factory=dict)
    unpaired: set[str] = field(default_factory=set)
    unrated: set[str] = field(default_factory=set)
    knows_order: bool = True

    def __post_init__(self) -> None:
        plan, rng = self.plan, self.rng(1)
        count, nights = plan.series, plan.nights
        self.builds = nights + 1
        self.kinds = ["time"] * count
        fixed = {1: "exact", 2: "accuracy", 3: "rate"} if count > 8 else {}
        for at in range(count):
            self.kinds[at] = fixed.get(at % 16, "time")
        self.controls = {0, count // 2} if count > 8 else set()
        for control in self.controls:
            self.kinds[control] = "time"
        each = max(1, round(count / 8))
        self.experiments = [f"experiment{at % each}" for at in range(count)]
        self.names = [f"{self.experiments[at]}/p{at:03}/{self.kinds[at]}" for at in range(count)]
        self.scatter = np.exp(rng.uniform(np.log(0.007), np.log(0.025), count))
        self.families = [FAMILIES[at] for at in rng.integers(0, len(FAMILIES), count)]
        self.base = np.exp(rng.uniform(np.log(1e-4), np.log(1e-1), count))
        self.level: Array = np.zeros((count, self.builds))
        self.code: Array = np.cumsum(rng.random((count, self.builds)) < plan.churn, axis=1)
        self.pairs_a_night = rng.integers(3, MOST_PAIRS + 1, (count, nights))
        self.cost = np.ones(count)
        self.present: Array = np.ones((count, nights), bool)
        self.on: Array = np.ones(nights, bool)
        if plan.gaps:
            self.present = rng.random((count, nights)) >= 0.01
            late = (rng.random(count) < 0.04) * rng.integers(1, nights // 2, count)
            self.present = self.present & (np.arange(nights) >= late[:, None])
            self.on = rng.random(nights) >= 0.03
            self.on[:3] = True
        new = rng.random(nights) < (0.2 if plan.wheel else 0.88)
        new[0] = True
        self.sequence = np.maximum.accumulate(np.where(new, np.arange(1, nights + 1), 0))
        self.busy = np.arange(nights) % 3 == 2
        self.widening = np.where(self.busy, rng.uniform(1.4, 2.2, nights), rng.uniform(0.85, 1.15, nights))
        self.hosts = ["host"] * nights
        self.machine = 0.01 * rng.standard_normal(nights) + self.busy * rng.uniform(0.1, 0.4, nights)
        self.common = 0.0005 * rng.standard_normal(nights)
        self.slow_mode = np.zeros((count, self.builds))
        self.own = np.zeros((count, nights))  # what a situation adds to single absolute values
        self.lucky = np.zeros((count, self.builds))  # luck of the builds as they are, planted

    def rng(self, *salt: int) -> Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng([self.plan.seed, self.plan.series, zlib.crc32(self.plan.name.encode()), *salt])

    @cached_property
    def references(self) -> list[tuple[int, ...]]:
        """By night; a situation sets others before the first night."""
        changes = set(self.rng(9).integers(8, max(9, self.plan.nights - 4), 2).tolist())
        references: list[tuple[int, ...]] = []
        release, before, last = 0, 0, 0
        for night, build in enumerate(self.sequence.tolist()):
            before, last = (last, build) if self.on[night] and build != last else (before, last)
            old = release
            if self.plan.reference == "moving" and night in changes and before:
                release = before
            both = tuple(dict.fromkeys((old, release)))
            references.append((before,) if self.plan.reference == "chain" else both)
        return references

    # What situations say about a world.

    def times(self) -> list[int]:
        """The series of run times that are TVM's."""
        return [at for at, kind in enumerate(self.kinds) if kind == "time" and at not in self.controls]

    def pick(self, count: int, kind: str = "time") -> list[int]:
        """That many series of a kind, drawn from those that are not missing on the first nights."""
        early = self.present[:, :3].all(axis=1)
        known = [at for at in np.flatnonzero(early) if self.kinds[at] == kind and at not in self.controls]
        return [int(at) for at in self.rng(5, len(self.steps)).permutation(known)[:count]]

    def plant(self, rows: list[int], size: float, begin: int, end: int | None = None, *, code: bool = True) -> Step:
        """Change these series by `size` (B / A - 1) in the builds from begin up to before end.

        code: their generated code is another in these builds, and what it was after them; else the runtime changed.
        """
        self.level[rows, begin:end] += np.log1p(size)
        if code:
            self.code[rows, begin:end] += (len(self.steps) + 1) * self.builds
        self.steps.append(Step(frozenset(self.names[at] for at in rows), float(np.log1p(size)), begin, end))
        return self.steps[-1]

    def drift(self, rows: list[int], each: float, begin: int, last: int) -> Step:
        """Each build from begin to last is slower by `each` than the one before."""
        grown = each * np.clip(np.arange(self.builds) - begin + 1, 0, last - begin + 1)
        self.level[rows] += grown
        names = frozenset(self.names[at] for at in rows)
        self.steps.append(Step(names, float(grown[-1]), begin, drift=last, sized=False))
        return self.steps[-1]

    def slow_half(self, rows: list[int], size: float, begin: int) -> Step:
        """From begin on, each process of these series is slower by `size` with even odds."""
        self.slow_mode[rows, begin:] = np.log1p(size)
        names = frozenset(self.names[at] for at in rows)
        self.steps.append(Step(names, float(np.log1p(size)) / 2, begin, sized=False))
        return self.steps[-1]

    def move_machine(self, first: int, until: int, size: float) -> MachineMove:
        """All absolute times of these nights, controls' too, change by `size`; nothing says why."""
        self.machine[first:until] += np.log1p(size)
        self.moves.append(MachineMove(first, until, float(np.log1p(size))))
        return self.moves[-1]

    # What is measured.

    @cached_property
    def _luck(self) -> tuple[Array, Array]:
        """What stays when relinked, and what does not, of all artifacts as they were built, by series and build."""
        plan = self.plan
        stays, moves = np.zeros_like(self.level), np.zeros_like(self.level)
        rows = np.arange(plan.series)[:, None]
        for salt, share, redrawn in ((0, CODE_SHARE, plan.redrawn), (1, 1 - CODE_SHARE, 0.0)):
            for number, kept in enumerate((1 - redrawn, redrawn)):
                sd = plan.luck * np.sqrt(share * kept)
                drawn = [
                    draw_luck(self.rng(7, salt, number, planted), sd, self.level.shape)
                    for planted in range(int(self.code.max()) // self.builds + 1 if salt == 0 else 1)
                ]
                where = self.code if salt == 0 else np.arange(self.builds)[None, :]
                (stays, moves)[number][:] += np.concatenate(drawn, axis=1)[rows, where]
        is_run = np.array([kind in {"time", "rate"} for kind in self.kinds])[:, None]
        return stays * is_run + (1 - plan.redrawn) * self.lucky, moves * is_run + plan.redrawn * self.lucky

    def effect(self, row: int, build: int, moved: float | None = None) -> float:
        """How far a build truly stands from the release, its luck included; moved: what a relink drew in its place."""
        stays, moves = self._luck
        return float(self.level[row, build] + stays[row, build] + (moves[row, build] if moved is None else moved))

    def draw_moved(self, rng: Generator) -> float:
        """The luck of a relinked child, as far as a relink draws it anew."""
        return float(draw_luck(rng, self.plan.luck * np.sqrt(CODE_SHARE * self.plan.redrawn), ()))

    def artifact(self, row: int, build: int, layout: int = 0) -> Build:
        """A build as a series meets it."""
        if row in self.controls:
            return Build("canary", None, "canary")
        return Build(f"tvm-{build:03}", build if self.knows_order else None, f"c{row}-{self.code[row, build]}", layout)

    def stamp(self, night: int) -> str:
        """A night's name."""
        return (datetime.date(2026, 1, 1) + datetime.timedelta(days=night)).isoformat()

    @cached_property
    def drawn(self) -> Array:
        """The scatter of all pairs of all nights, by series, night, reference and pair."""
        shape = (self.plan.nights, 2, MOST_PAIRS)
        drawn = np.zeros((self.plan.series, *shape))
        for number, family in enumerate(FAMILIES):
            rows = [at for at, name in enumerate(self.families) if name == family]
            drawn[rows] = draw_pairs(family, self.rng(11, number), (len(rows), *shape))
        return np.asarray(drawn * self.scatter[:, None, None, None] * self.widening[None, :, None, None])

    def draw_modes(self, row: int, build: int, base: int, count: int, rng: Generator) -> Array:
        """What slow_half plants, of that many pairs."""
        slow, slow_base = self.slow_mode[row, build], self.slow_mode[row, base]
        return np.asarray(slow * (rng.random(count) < 0.5) - slow_base * (rng.random(count) < 0.5))

    def pairs(self, row: int, night: int) -> list[Pairs]:
        """What the night measures of a series in turn."""
        if row in self.controls or self.kinds[row] not in {"time", "rate"} or self.names[row] in self.unpaired:
            return []
        build, count, found = int(self.sequence[night]), int(self.pairs_a_night[row, night]), []
        for number, base in enumerate(self.references[night]):
            shift = self.effect(row, build) - self.effect(row, base) + self.common[night]
            logs = self.drawn[row, night, number, :count] + shift
            if self.slow_mode[row].any():
                logs = logs + self.draw_modes(row, build, base, count, self.rng(13, row, night, number))
            both = self.artifact(row, build), self.artifact(row, base)
            found.append(Pairs(self.stamp(night), *both, tuple(logs.tolist()), self.hosts[night]))
        return found

    @cached_property
    def _absolute(self) -> Array:
        """All absolute values, by series and night."""
        shape = (self.plan.series, self.plan.nights)
        noise = 0.5 * self.scatter[:, None] * self.rng(17).standard_normal(shape) + self.machine
        stays, moves = self._luck
        drift = (self.level + stays + moves + self.slow_mode / 2)[:, self.sequence]
        kinds = np.array(self.kinds)
        drift[list(self.controls)] = 0.0
        noise[kinds == "rate"] *= -1
        noise[(kinds == "exact") | (kinds == "accuracy")] = 0.0
        noise += self.own
        values = self.base[:, None] * np.exp(drift + noise)
        values[kinds == "exact"] = np.round(4096 * np.exp((drift + noise)[kinds == "exact"]))
        values[kinds == "accuracy"] = np.exp(drift[kinds == "accuracy"])
        return np.asarray(values)

    def value(self, row: int, night: int) -> Value:
        """What the night measures of a series by itself."""
        build = self.artifact(row, int(self.sequence[night]))
        is_disturbed = bool(self.busy[night]) and self.kinds[row] in {"time", "rate"}
        return Value(self.stamp(night), build, float(self._absolute[row, night]), is_disturbed, self.hosts[night])

    def series(self, row: int, pairs: list[Pairs], values: list[Value]) -> SeriesEvidence:
        """A series with what is known of it."""
        return SeriesEvidence(
            self.names[row], self.experiments[row], {"exact": "code_size"}.get(self.kinds[row], self.kinds[row]),
            self.kinds[row], "higher" if self.kinds[row] in {"rate", "accuracy"} else "lower",  # type: ignore[arg-type]
            tuple(pairs), tuple(values), row in self.controls,
        )  # fmt: skip
