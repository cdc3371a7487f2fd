"""Series that jump from build to build though their generated code stays: what they do again and again is no news."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from tvmdash.detect.beside.builds import Builds
from tvmdash.detect.beside.contrasts import MOST_NEW, Contrast, steps_before
from tvmdash.stats.spread import Spread

CLEAR, LEAST_JUMP = 4.0, 0.01
"""From so many standard errors on, and so large, the difference of one build and the next is a jump."""
TIMES_LARGER = 1.3
OFTEN, STILL = 2, 10
"""A series that jumped at so many builds does so; one that stood still for so many does not, whatever its kin do."""
OFTEN_IN_KIN = 3


@dataclass(frozen=True)
class Jump:
    """From one build to the next, `after` builds of the series: a logarithm."""

    artifact: int
    size: float
    after: int


@dataclass(frozen=True)
class Precedent:
    """What a restless series does without reason: jumps up to `size`, and stays for as many as `stretch` builds."""

    size: float = 0.0
    stretch: int = 0

    def explains(self, contrast: Contrast) -> bool:
        """Whether the step is of the kind that comes and goes."""
        lasts = contrast.is_apart and contrast.builds > self.stretch
        return not lasts and abs(contrast.shift) <= TIMES_LARGER * self.size


NOTHING_KNOWN = Precedent()


def lone_jumps(builds: Mapping[str, Builds], pairs: Mapping[str, Spread]) -> dict[str, tuple[Jump, ...]]:
    """By series of an experiment, its jumps before tonight's build that most of the others did not make with it."""
    every = {name: _jumps(located, pairs[name]) for name, located in builds.items()}
    common = _common_to_most(every, builds)
    return {name: tuple(jump for jump in own if jump.artifact not in common) for name, own in every.items()}


def _jumps(located: Builds, pair: Spread) -> list[Jump]:
    """Those with the same generated code on both sides."""
    codes = np.array([build.code for build in located.builds[:-1]])
    sizes, variances = steps_before(located, pair)
    jumped = (
        (np.abs(sizes) >= np.maximum(LEAST_JUMP, CLEAR * np.sqrt(variances))) & (np.diff(codes) == 0) & (codes[1:] != 0)
    )
    return [Jump(located.builds[at + 1].artifact, float(sizes[at]), at + 1) for at in jumped.nonzero()[0].tolist()]


def _common_to_most(jumps: Mapping[str, Collection[Jump]], builds: Mapping[str, Builds]) -> set[int]:
    """The artifacts at which most series that were measured on them moved one way: a change of TVM's runtime."""
    measured = Counter(build.artifact for located in builds.values() for build in located.builds)
    moved = Counter((jump.artifact, jump.size > 0) for own in jumps.values() for jump in own)
    return {artifact for (artifact, _), count in moved.items() if 2 * count > measured[artifact] > 1}


def precedent_of(own: Collection[Jump], kin: Collection[Collection[Jump]], builds: int) -> Precedent:
    """What a series does without reason, of which so many builds are known; `kin`: the jumps of others, by series."""
    of_kin = [jump for jumps in kin for jump in jumps]
    like_kin = len({jump.artifact for jump in of_kin}) >= OFTEN_IN_KIN and (own or builds <= STILL)
    if len(own) < OFTEN and not like_kin:
        return NOTHING_KNOWN
    known = [*own, *of_kin] if like_kin else own
    stretches = [_longest_stretch(jumps) for jumps in ((own, *kin) if like_kin else (own,)) if len(jumps) > 1]
    return Precedent(max(abs(jump.size) for jump in known), min(max(stretches, default=MOST_NEW), MOST_NEW - 1))


def _longest_stretch(jumps: Collection[Jump]) -> int:
    return max(new.after - old.after for old, new in itertools.pairwise(jumps))
