"""How often `signoff` tells a change where there is none, how often its intervals hold, and what it finds.

`python -m tests.benchmarks.signoff`. Homes of the laboratory, 40 CPU seconds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.lab import plant
from tests.benchmarks.lab.home import LabHome
from tests.benchmarks.lab.rows import CANARY, Experiment
from tests.benchmarks.lab.world import Builds, Draw, Luck, World
from tvmdash.signoff.signoff import sign_off
from tvmdash.trials.signoff import SignoffSeries, SignoffState

EXPERIMENTS = (Experiment("nets", 8, ("run_time",)), Experiment("ops", 8, ("run_time",)), CANARY)
MATTERS, MOVED = 0.05, 3
RELEASE = "wheel-release"
Judged = Sequence[tuple[SignoffSeries, float]]
"""Each series with its true change, a fraction."""


@dataclass(frozen=True)
class Design:
    """What a home holds: the nights from `first` on, each beside the release A or beside the build before, or alone."""

    name: str
    nights: int
    size: float
    homes: int
    beside_release: bool = True
    alone: bool = False
    first: int = 0


DESIGNS = (
    Design("A and B, one night in turn", 1, 0.0, 60),
    Design("six nights beside A, B on the last", 6, 0.0, 40),
    Design("the same", 6, 0.05, 25),
    Design("twenty nights beside A, B on the last", 20, 0.05, 8),
    Design("ten builds, each beside the one before", 10, 0.0, 30, beside_release=False),
    Design("the same", 10, 0.1, 15, beside_release=False),
    Design("ten nights of each, alone, with a canary", 40, 0.0, 25, alone=True, first=20),
    Design("the same", 40, 0.1, 10, alone=True, first=20),
)


def play(design: Design, seed: int, root: Path) -> Judged:
    """What the signoff of one home says."""
    builds = Builds.RELEASES if design.alone else Builds.NIGHTLY
    draw = Draw(seed, name=design.name, paired=not design.alone, release=design.beside_release and not design.alone)
    world = World(draw, design.nights, EXPERIMENTS, builds=builds, luck=Luck(0.003, tail=5.0, share=0.5))
    last = world.built_on(design.nights - 1)
    if design.size:
        plant.step(world, world.pick("", "run_time")[:MOVED], last if design.alone else design.nights // 2, design.size)
    home = LabHome(root, world)
    for night in range(design.first, design.nights):
        home.measure(night)
    a = RELEASE if draw.release else world.build(0).key
    done = sign_off(home.home, (a, world.build(last).key), matters=MATTERS)
    return [(item, math.expm1(world.level[home.rows[item.id], -1])) for item in done.series]


def describe(design: Design, homes: Sequence[Judged]) -> str:
    """A line of the table."""
    told = (SignoffState.WORSE, SignoffState.BETTER)
    wrong = [any(item.state in told and not truth for item, truth in judged) for judged in homes]
    every = [pair for judged in homes for pair in judged]
    known = [(item.low, truth, item.high) for item, truth in every if item.low is not None and item.high is not None]
    still = [item.state for item, truth in every if not truth]
    moved = [item.state for item, truth in every if truth]
    half = statistics.median((high - low) / 2 for low, _, high in known)
    cells = [
        f"{100 * statistics.fmean(wrong):.0f} %",
        f"{100 * statistics.fmean(low <= truth <= high for low, truth, high in known):.1f} %",
        f"{100 * half:.1f} %",
        f"{100 * still.count(SignoffState.UNCLEAR) / len(still):.0f} %",
        f"+{100 * design.size:g} %" if moved else "",
        f"{100 * moved.count(SignoffState.WORSE) / len(moved):.0f} %" if moved else "",
        f"{100 * moved.count(SignoffState.UNCLEAR) / len(moved):.0f} %" if moved else "",
    ]
    return f"| {design.name} | {' | '.join(cells)} |"


def main() -> None:
    """Print a table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    head = "the home holds | wrong | intervals hold | half-width | cannot be said | planted | told | cannot be said"
    print(f"| {head} |\n|{'---|' * 8}")
    for design in DESIGNS:
        homes = []
        for seed in range(design.homes):
            with tempfile.TemporaryDirectory() as root:
                homes.append(play(design, seed, Path(root)))
        print(describe(design, homes), flush=True)


if __name__ == "__main__":
    main()
