"""What would be told of a step: copies of the ratios in which tonight's build is slower by a known share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tvmdash.detect.beside.builds import Builds, RatioHistory
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import NOWHERE, Elsewhere, Learned


def learn_copies(histories: Mapping[str, RatioHistory]) -> Learned:
    """What the nights of an experiment would say if tonight's build were a new one."""
    return Learned.of({name: _with_new_build(history) for name, history in histories.items()})


def decide_with_steps(
    copies: Learned, starts: Mapping[str, int], steps: Iterable[float], elsewhere: Elsewhere = NOWHERE
) -> dict[float, dict[str, RatioDecision]]:
    """By step, what would be told of each series of an experiment if tonight's build were slower by it.

    elsewhere: the copies of the machine's other experiments. All series are slower at once. That says the same as one
    at a time: a series does not count among its own kin, and luck is how the kin differ from one another. Nothing that
    was measured again tonight is in it.
    """
    return {step: decide(_slower(copies, step), starts, elsewhere) for step in steps}


def is_unchanged(history: RatioHistory) -> bool:
    """Whether tonight's artifact is the one that was measured last."""
    before = history.build[:-1][np.isfinite(history.logs[:-1])]
    return bool(len(before)) and bool(history.build[-1]) and bool(before[-1] == history.build[-1])


def _with_new_build(history: RatioHistory) -> RatioHistory:
    """As if tonight's artifact had never been measured; the code of one that does not exist is unknown."""
    if not history.has_tonight:
        return history
    build, code = history.build.copy(), history.code.copy()
    build[-1] = 0
    if is_unchanged(history):
        code[-1] = 0
    return replace(history, build=build, code=code, again=())


def _slower(learned: Learned, step: float) -> Learned:
    """The same with tonight's build slower by the fraction `step`."""
    present = learned.present
    moved = {name: _moved(builds, step) if name in present else builds for name, builds in learned.builds.items()}
    return replace(learned, builds=moved)


def _moved(builds: Builds, step: float) -> Builds:
    places = builds.places.copy()
    places[-1] += math.log1p(step)
    return replace(builds, places=places)
