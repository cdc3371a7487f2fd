"""What the detector decides, night by night, of histories that no other test plays: a table of all its answers.

Where a threshold moves, a row moves: a night is told earlier or later, more or fewer builds are measured again. Whether
that is better, the rates of tests/benchmarks/alerts say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from tests.golden_files import Golden
from tvmdash.judge.history import change_points
from tvmdash.judge.history.series import Decision, History, SeriesState


@dataclass(frozen=True)
class World:
    """A series whose truth is known. luck: by how much builds differ; moves: machine's level from a night on."""

    nights: int
    noise: float = 0.005
    steps: dict[int, float] = field(default_factory=dict)
    spikes: dict[int, float] = field(default_factory=dict)
    luck: float = 0.0
    mode: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """By how much a second mode is away, how probably a build enters it, how probably it stays."""
    moves: dict[int, float] = field(default_factory=dict)
    noisy_tonight: float = 1.0
    gone: range = range(0)

    def builds(self, rng: np.random.Generator) -> np.ndarray:
        level = self.luck * rng.standard_normal(self.nights)
        for night, step in self.steps.items():
            level[night:] += np.log1p(step)
        away, enters, stays = self.mode
        inside = False
        for night in range(self.nights):
            inside = bool(rng.random() < (stays if inside else enters))
            level[night] += away * inside
        return level

    def machine(self) -> np.ndarray:
        level = np.zeros(self.nights)
        for night, move in self.moves.items():
            level[night:] += np.log1p(move)
        return level


def play(world: World, seed: int, first: int, *, again: bool) -> list[Decision]:
    """Every night's decision from `first` on."""
    rng, runs = np.random.default_rng([seed, 77]), np.random.default_rng([seed, 78])
    builds, machine = world.builds(rng), world.machine()
    values = 3.0 * np.exp(builds + machine + world.noise * rng.standard_normal(world.nights))
    for night, spike in world.spikes.items():
        values[night] *= 1 + spike
    state, decisions = SeriesState(), []
    for night in range(first, world.nights):

        def rerun(build: int, count: int, tonight: int = night) -> list[float]:
            if build in world.gone:
                return []
            noise = world.noisy_tonight * world.noise * runs.standard_normal(count)
            return list(3.0 * np.exp(builds[build] + machine[tonight] + noise))

        decision = change_points.observe(History(values[: night + 1]), state, rerun=rerun if again else None)
        state = decision.state
        decisions.append(decision)
    return decisions


def describe(decision: Decision) -> str:
    effect = "" if decision.effect is None else f" {100 * decision.effect:+.1f} %"
    cut = "" if decision.cut is None else f" from {decision.cut}"
    measured = f", {len(decision.reruns)} measured again" if decision.reruns else ""
    return f"{decision.night}: {decision.kind}, {decision.reason.kind.value}{effect}{cut}{measured}"


WORLDS = {
    "small steps": World(110, steps={70: 0.012, 90: -0.012}),
    "a step": World(90, steps={70: 0.03}),
    "a step in a noisy series": World(110, 0.02, {70: 0.05}),
    "steps in a row": World(100, steps={60: 0.04, 66: 0.04, 80: -0.06}),
    "a step of a young series": World(45, steps={22: 0.03, 34: 0.05}),
    "a step back": World(100, steps={60: 0.03, 72: -0.03, 85: 0.03}),
    "spikes": World(90, spikes={50: 0.05, 60: -0.05, 61: -0.05, 75: 0.2}),
    "luck": World(110, 0.003, {90: 0.03}, luck=0.008),
    "much luck": World(110, 0.003, {70: 0.05, 95: -0.02}, luck=0.015),
    "luck of a young series": World(50, 0.003, {35: 0.04}, luck=0.008),
    "a mode": World(110, steps={80: 0.06}, mode=(0.03, 0.08, 0.3)),
    "a mode that stays": World(110, mode=(0.03, 0.05, 0.8)),
    "a rare mode far off": World(100, steps={90: 0.1}, mode=(0.08, 0.03, 0.4)),
    "a mode of a young series": World(50, 0.003, mode=(0.02, 0.15, 0.4)),
    "the machine moves": World(95, moves={70: 0.05}),
    "the machine moves and TVM does": World(95, steps={75: 0.04}, moves={70: 0.04}),
    "a noisy night": World(90, steps={70: 0.03}, noisy_tonight=3.0),
    "old builds are gone": World(90, steps={70: 0.04}, gone=range(55, 70)),
    "all old builds are gone": World(90, steps={70: 0.04}, gone=range(70)),
}


@pytest.mark.parametrize("again", [False, True], ids=["history alone", "measured again"])
def test_each_night_is_decided_as_the_table_says(golden: Golden, *, again: bool) -> None:
    rows = {
        f"{name}, {seed}": [
            describe(decision)
            for decision in play(world, seed, first=17, again=again)
            if decision.kind != "quiet" or decision.reruns
        ]
        for name, world in WORLDS.items()
        for seed in range(2 if again else 1)
    }
    golden.values(f"decisions/{'measured_again' if again else 'history_alone'}.json", rows)
