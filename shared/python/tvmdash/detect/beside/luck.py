"""How builds differ without any change, where code and data come to lie: from what the nights show, else a prior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.detect.beside.builds import PROCESSOR, Builds, RatioHistory, locate_builds
from tvmdash.detect.beside.contrasts import Contrast, contrasts_of, steps_before
from tvmdash.detect.beside.restless import Jump, lone_jumps
from tvmdash.detect.noise import MAD_TO_SD
from tvmdash.stats.spread import NOTHING, Spread, pool

PAIR_PRIOR, PAIR_FREEDOM = Spread(0.015**2, 4), 16.0
"""Of one pair of processes where nothing is known; what the experiment's other series on its device count for."""
PAIR_PRIOR_OF_DEVICE = Spread(0.05**2, 2)
"""The same on another device, where the clock is the wall's. Measured against itself beside other load, points on PoCL
scattered by 3 to 23 % (median 10 %), those on the processor by 0.7 to 10 %."""
LUCK_PRIOR, LUCK_OF_SAME_CODE = Spread(0.005**2, 3), Spread(0.002**2, 3)
"""How builds differ where nothing is known: with other generated code, with the same."""
LUCK_FREEDOM, ELSEWHERE_FREEDOM = 5.0, 3.0
MOST_KIN = 100
"""More series of an experiment tell no more of its luck, and cost time with the square of their number."""
FEWEST_JUMPS = 3
"""So many jumps from build to build tell their size, whatever one or the other of them was."""
FEWEST_OTHERS = 4
_MEDIAN_OF_SQUARE = 0.4549
"""The median of the square of a standard normal number."""


@dataclass(frozen=True)
class Elsewhere:
    """What other experiments say of builds. lone: by series, their lone jumps; luck: how builds differ there."""

    lone: tuple[tuple[Jump, ...], ...] = ()
    luck: Spread = NOTHING

    @classmethod
    def of(cls, experiments: Iterable[Learned]) -> Elsewhere:
        """What all these say together."""
        known = list(experiments)
        lucks = [spread for learned in known for spread in (pool(learned.jumps.values()), learned.luck_tonight)]
        lone = tuple(jumps for learned in known for jumps in learned.lone.values())
        return cls(lone, pool(lucks).limited(ELSEWHERE_FREEDOM))


NOWHERE = Elsewhere()


@dataclass(frozen=True)
class Learned:
    """What the nights of an experiment say of each series before anything is decided, by the series' name.

    pairs: the scatter of one pair of processes. builds: where they lie. jumps: how they differ, going by their jumps.
    lone: the jumps that a series made alone, with the same generated code. luck_tonight: how builds differ, going
    by what the step to tonight's build does to the series.
    """

    histories: Mapping[str, RatioHistory]
    pairs: Mapping[str, Spread]
    builds: Mapping[str, Builds]
    jumps: Mapping[str, Spread]
    lone: Mapping[str, tuple[Jump, ...]]
    luck_tonight: Spread

    @classmethod
    def of(cls, histories: Mapping[str, RatioHistory]) -> Learned:
        """From all series of one experiment."""
        pairs = pair_spreads(histories)
        builds = {name: locate_builds(history, pairs[name]) for name, history in histories.items()}
        jumps = {name: luck_of_jumps(located, pairs[name]) for name, located in builds.items()}
        tonight = _luck_of_newest({name: builds[name] for name in histories if histories[name].has_tonight}, pairs)
        return cls(histories, pairs, builds, jumps, lone_jumps(builds, pairs), tonight)

    @property
    def present(self) -> dict[str, RatioHistory]:
        """The series that have a ratio tonight."""
        return {name: history for name, history in self.histories.items() if history.has_tonight}


def pair_spreads(histories: Mapping[str, RatioHistory]) -> dict[str, Spread]:
    """By series of an experiment, the scatter of one pair of processes; no device says anything of another."""
    own = {name: _own_pairs(history) for name, history in histories.items()}
    of_device: dict[str, list[Spread]] = {}
    for name, history in histories.items():
        of_device.setdefault(history.device, [_prior_of_pairs(history.device)]).append(own[name])
    together = {device: pool(spreads).limited(PAIR_FREEDOM) for device, spreads in of_device.items()}
    return {name: pool([spread, together[histories[name].device]]) for name, spread in own.items()}


def _prior_of_pairs(device: str) -> Spread:
    return PAIR_PRIOR if device == PROCESSOR else PAIR_PRIOR_OF_DEVICE


def _own_pairs(history: RatioHistory) -> Spread:
    known = np.isfinite(history.std) & (history.pairs > 1)
    freedom = history.pairs[known] - 1
    return pool(Spread(float(s) ** 2, float(f)) for s, f in zip(history.std[known], freedom, strict=True))


def luck_of_jumps(builds: Builds, pair: Spread) -> Spread:
    """How builds differ, going by the jumps from one to the next before tonight's, steps that were told among them.

    The median of their squares, so that few true steps do not matter; nothing where there are too few jumps.
    """
    if len(builds.builds) - 1 <= FEWEST_JUMPS:
        return NOTHING
    sizes, errors = steps_before(builds, pair)
    variance = (float(np.median(sizes**2)) / _MEDIAN_OF_SQUARE - float(np.mean(errors))) / 2
    return Spread(variance, 0.4 * len(sizes))


def luck_of_night(contrasts: Sequence[tuple[Contrast, Spread]]) -> Spread:
    """How builds differ, from what several series do on tonight's newest build; robust against those that moved."""
    if len(contrasts) < FEWEST_OTHERS:
        return NOTHING
    shifts = np.array([contrast.shift for contrast, _ in contrasts])
    error = float(np.mean([contrast.error(pair) for contrast, pair in contrasts]))
    times = float(np.mean([contrast.luck for contrast, _ in contrasts]))
    scatter = (MAD_TO_SD * float(np.median(np.abs(shifts - np.median(shifts))))) ** 2
    return Spread((scatter - error) / times, 0.4 * len(shifts))


def _luck_of_newest(builds: Mapping[str, Builds], pairs: Mapping[str, Spread]) -> Spread:
    """How builds differ, from the step of several series to tonight's build from the one before."""
    steps = [
        (contrasts_of(located.part((-2, -1)), pairs[name], LUCK_PRIOR.variance)[0], pairs[name])
        for name, located in builds.items()
        if len(located.builds) > 1
    ]
    return luck_of_night(steps)


def _prior(contrast: Contrast) -> Spread:
    """What is known of luck before anything was measured."""
    return LUCK_OF_SAME_CODE if contrast.same_code else LUCK_PRIOR


def find_kin(found: Mapping[str, Sequence[Contrast]]) -> Mapping[bool, Sequence[str]]:
    """The series whose generated code stayed tonight, and those where it did not: MOST_KIN of each at most."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for name, contrasts in found.items():
        if contrasts:
            names[bool(contrasts[0].same_code)].append(name)
    return {same: of_it[:: -(-len(of_it) // MOST_KIN) or 1] for same, of_it in names.items()}


def luck_of_kin(
    name: str,
    found: Mapping[str, Sequence[Contrast]],
    kin_by_code: Mapping[bool, Sequence[str]],
    learned: Learned,
    elsewhere: Elsewhere,
) -> Spread:
    """How builds differ in the experiment's other series whose generated code did tonight what this one's did."""
    kin = [other for other in kin_by_code[bool(found[name][0].same_code)] if other != name]
    tonight = luck_of_night([(found[other][0], learned.pairs[other]) for other in kin])
    ever = pool(learned.jumps[other] for other in kin)
    known = pool([ever.limited(LUCK_FREEDOM), tonight.limited(LUCK_FREEDOM), elsewhere.luck])
    return pool([known.above_zero(), _prior(found[name][0])])
