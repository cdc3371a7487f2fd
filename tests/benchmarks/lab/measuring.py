"""What a process measures in a world: its middle sample by the wall clock and by the thread's CPU clock."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tests.benchmarks.lab.noise import Array, Generator
from tests.benchmarks.lab.world import Build, World
from tvmdash.measure.reduction import PairedRatio, combine_pairs

ALONE, PAIRS = 3, 5
"""Processes of a point that is measured alone; pairs of processes of one that is measured beside the reference."""
SAMPLES = 10
START_S, TIMED_S = 4.0, 0.7
"""What a process costs before it measures, and for each of its points (truth.md, section 6)."""
WALL_SPREAD, WALL_PAIR = 0.25, 0.07
"""How processes differ by the wall clock under load, and the two of a pair that take turns."""


@dataclass(frozen=True)
class Times:
    """Logarithms of the middle samples: a line for each of the rows, a column for each process."""

    rows: tuple[int, ...]
    wall: Array
    cpu: Array


def measure(world: World, night: int, build: Build, rows: list[int], count: int, rng: Generator) -> Times:
    """So many processes of one build on one night; all rows are times."""
    centre = (
        np.log([world.rows[row].base for row in rows])
        + build.level[rows]
        + build.luck[rows]
        + world.own[rows, night]
        + world.sensitivity[rows] * world.machine[night]
        + world.weather[rows, night]
    )
    cpu = centre[:, None] + np.array([_processes(world, row, count, rng) for row in rows]).reshape(len(rows), count)
    way = np.sign(world.sensitivity[rows])[:, None]
    cpu = cpu + way * _cold(world, night, cpu.shape, rng)
    return Times(tuple(rows), cpu + way * _waiting(world, night, cpu.shape, rng), cpu)


def _processes(world: World, row: int, count: int, rng: Generator) -> Array:
    noise = world.rows[row].noise
    assert noise is not None
    middle = noise.sample * math.sqrt(math.pi / 2 / SAMPLES) * rng.standard_normal(count)
    return np.asarray(noise.processes(rng, count) + middle + noise.rest * rng.standard_normal())


def _cold(world: World, night: int, shape: tuple[int, ...], rng: Generator) -> Array:
    """Caches that others emptied: what load costs on the CPU's clock."""
    cold = world.cold[night]
    return np.asarray(cold + 0.1 * cold * rng.standard_normal(shape))


def _waiting(world: World, night: int, shape: tuple[int, ...], rng: Generator) -> Array:
    waits = np.abs(rng.standard_normal(shape)) * 5e-4
    return np.asarray(waits + (math.log(world.wall[night]) + WALL_SPREAD * rng.standard_normal(shape)) * (
        world.wall[night] > 1
    ))  # fmt: skip


@dataclass(frozen=True)
class Ratio:
    """One point against the reference, as additional_info.paired holds it; truth: the builds' true log ratio."""

    cpu: list[float]
    wall: list[float]
    truth: float

    def first_pair(self) -> Ratio:
        """Only that."""
        return replace(self, cpu=self.cpu[:1], wall=self.wall[:1])

    @property
    def combined(self) -> PairedRatio:
        """The ratio over the pairs of processes, by the thread's CPU clock."""
        return combine_pairs(self.cpu)

    @property
    def is_covered(self) -> bool:
        """Whether its interval, of more than one pair, holds how far the two builds are truly apart."""
        combined = self.combined
        assert combined.low is not None
        assert combined.high is not None
        return combined.low <= math.exp(self.truth) <= combined.high


def compare(
    world: World, night: int, builds: tuple[Build, Build], times: tuple[Times, Times], rng: Generator
) -> dict[int, Ratio]:
    """The pairs of processes of each row, tonight's first: whatever the night does is the same for both of a pair."""
    tonight, reference = builds
    away = (tonight.level + tonight.luck) - (reference.level + reference.luck)
    cpu = times[0].cpu - times[1].cpu
    wall = cpu + WALL_PAIR * rng.standard_normal(cpu.shape) * (world.wall[night] > 1)
    lines = zip(times[0].rows, cpu.tolist(), wall.tolist(), strict=True)
    return {row: Ratio(of_cpu, of_wall, float(away[row])) for row, of_cpu, of_wall in lines}
