"""The parts of the laboratory: quiet homes, homes with steps, and the situations."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.benchmarks.worlds.evidence import Judge
from tests.benchmarks.worlds.play import play
from tests.benchmarks.worlds.scoring import Figures, Score
from tests.benchmarks.worlds.situations import ALL
from tests.benchmarks.worlds.world import Plan, World

SIZES = (0.02, 0.03, 0.05, 0.10)
LUCKS = ((0.0, 1.0), *((luck, redrawn) for luck in (0.003, 0.005, 0.01) for redrawn in (0.0, 0.5, 1.0)))
QUIET_NIGHTS = 60


@dataclass(frozen=True)
class Job:
    """One world: a situation by name, or the plan of a home."""

    part: str
    plan: Plan
    situation: str = ""


@dataclass(frozen=True)
class Result:
    """faults: what was claimed and does not hold; wrong: false tellings and wrong headlines."""

    job: Job
    figures: Figures
    faults: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


def make_judge(name: str, world: World) -> Callable[[], Judge]:
    """The factory `module:factory`; one that peeks at the truth (`Oracle`) is given the world."""
    module, _, factory = name.partition(":")
    found: Any = getattr(importlib.import_module(module), factory)
    return (lambda: found(world)) if factory == "Oracle" else found


def run(job: Job, judge: str) -> Result:
    """Play one world."""
    if job.part == "situations":
        case = ALL[job.situation].make(job.plan)
        score = Score(case.world, play(case.world, make_judge(judge, case.world)))
        faults = tuple(fault for claim in case.claims if (fault := claim(score)))
        return Result(job, score.figures, faults, tuple(score.faults))
    world = World(job.plan)
    if job.part == "steps":
        plant_steps(world)
    score = Score(world, play(world, make_judge(judge, world)))
    return Result(job, score.figures, (), tuple(score.faults))


def plant_steps(world: World) -> None:
    """One of each size, each in a point of its own, from a night on that measures a new build; half of them end."""
    nights = [
        at
        for at in range(3, world.plan.nights - 6)
        if world.on[at] and world.sequence[at] not in world.sequence[:at][world.on[:at]]
    ]
    rng = world.rng(29)
    for row, size in zip(world.pick(len(SIZES)), SIZES, strict=True):
        if nights:
            night = rng.choice(nights)
            before = world.sequence[:night][world.on[:night]].max()
            begin = int(rng.integers(before, world.sequence[night])) + 1
            ends = [int(world.sequence[at]) for at in nights if at > night + 5]
            end = int(rng.choice(ends)) if ends and rng.random() < 0.5 else None
            world.plant([row], size, begin, end, code=bool(rng.random() < 0.7))


def home_jobs(part: str, seeds: Sequence[int], template: dict[str, Any]) -> Iterator[Job]:
    """The grid of homes: each size, home, reference and luck that was asked for."""
    for series in template["series"]:
        for wheel in template["wheel"]:
            for reference in template["reference"]:
                for luck, redrawn in template["luck"]:
                    nights = QUIET_NIGHTS if part == "quiet" else 40
                    plan = Plan(0, series, nights, luck, redrawn, wheel, reference, **template["how"])
                    plan = replace(plan, name=f"{part} {wheel} {reference}")
                    yield from (Job(part, replace(plan, seed=seed)) for seed in seeds)


def situation_jobs(names: Sequence[str], seeds: Sequence[int], plan: Plan) -> Iterator[Job]:
    """Each situation with each seed."""
    for name in names:
        yield from (Job("situations", replace(plan, seed=seed, name=name), name) for seed in seeds)
