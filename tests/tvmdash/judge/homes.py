"""Homes for the tests of the judge, written down as tables or drawn. Builds are b0, b1, ... in TVM's order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvmdash.judge import RULES, Evidence, Pairs
from tvmdash.judge.home import Change, Judgement, judge

QUIET = (0.002, -0.003, 0.001, -0.002, 0.003, -0.001)
"""From each build to the next, where nothing moves."""
RELEASE = "release"
"""A reference of another kind: it has no place."""
PAIR_SD, CODE_LUCK, LIBRARY_LUCK = RULES.pair_sd, RULES.code_luck, RULES.library_luck
"""What homes are drawn with: the judge's own guesses."""


def take(build: int, base: int | str, log: float, *, night: int = -1, count: int = 5, **changes: Any) -> Pairs:
    """Pairs of a build beside another, measured on the build's own night unless another is named."""
    beside = base if isinstance(base, str) else f"b{base}"
    std = changes.pop("std", 0.01)
    return Pairs(build if night < 0 else night, f"b{build}", beside, log, std, count, **changes)


def series(measured: Sequence[Pairs], **changes: Any) -> Evidence:
    """One series, which tonight measured the build of its last pairs."""
    names = {name for pairs in measured for name in (pairs.build, pairs.base)} - {RELEASE}
    given: dict[str, Any] = {"experiment": "cnn", "tonight": measured[-1].build} | changes
    return Evidence(pairs=tuple(measured), places={name: int(name[1:]) for name in names}, **given)


def chain(logs: Sequence[float], *, count: int = 5, **changes: Any) -> Evidence:
    """Each build beside the one before it."""
    return series([take(at + 1, at, log, count=count) for at, log in enumerate(logs)], **changes)


def beside_release(logs: Sequence[float], *, count: int = 5, **changes: Any) -> Evidence:
    """Each build beside the same release."""
    return series([take(at, RELEASE, log, count=count) for at, log in enumerate(logs)], **changes)


def draw_pairs(rng: np.random.Generator, build: int, base: int | str, truth: float, **changes: Any) -> Pairs:
    """Pairs whose mean and scatter are those of drawn ones."""
    count, sd = changes.pop("count", 5), changes.pop("sd", PAIR_SD)
    logs = rng.normal(truth, sd, count)
    return take(build, base, float(logs.mean()), std=float(logs.std(ddof=1)), count=count, **changes)


def draw_luck(rng: np.random.Generator, count: int, code: float = CODE_LUCK, library: float = LIBRARY_LUCK) -> Any:
    """How far builds lie beside their level, in Student's t with 5 degrees of freedom."""
    return math.hypot(code, library) * rng.standard_t(5, count) / math.sqrt(5 / 3)


def draw_chain(rng: np.random.Generator, levels: Sequence[float], **changes: Any) -> Evidence:
    """A chain of builds of these levels, each with its luck."""
    given = {name: changes.pop(name) for name in ("count", "sd") if name in changes}
    lucky = np.array(levels) + draw_luck(rng, len(levels), 0.005, 0.003)
    nights = range(1, len(levels))
    return series([draw_pairs(rng, at, at - 1, float(lucky[at] - lucky[at - 1]), **given) for at in nights], **changes)


def draw_home(seed: int, points: int = 20, nights: int = 12, **changes: Any) -> dict[str, Evidence]:
    """A home in which nothing moves."""
    rng = np.random.default_rng(seed)
    return {f"p{at:02}": draw_chain(rng, [0.0] * (nights + 1), **changes) for at in range(points)}


def tell(home: Mapping[str, Evidence], ask: Any = None) -> dict[tuple[str, ...], str]:
    """What is said of which series."""
    return {change.series: change.decision.value for change in judge(home, ask).changes}


def only(judgement: Judgement) -> Change:
    """The one change that was told."""
    (change,) = judgement.changes
    return change


@dataclass
class Laboratory:
    """It measures again: builds' true levels are by series and number of the build, 0 where none is given.

    asked: what it was asked for.
    """

    levels: Mapping[str, Mapping[int, float]] = field(default_factory=dict)
    sd: float = PAIR_SD
    most: int = 1000
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(7)

    def __call__(self, name: str, build: str, base: str, count: int) -> Pairs | None:
        if len(self.asked) >= self.most:
            return None
        self.asked.append((name, build, base))
        new, old = int(build[1:]), int(base[1:])
        known = self.levels.get(name, {})
        layouts = {"layout": len(self.asked), "base_layout": len(self.asked), "night": 99}
        truth = known.get(new, 0.0) - known.get(old, 0.0)
        return draw_pairs(self.rng, new, old, truth, sd=self.sd, count=count, **layouts)
