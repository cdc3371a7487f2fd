"""How builds differ without any change, where code and data come to lie: from what the nights show, else a prior."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tvmdash.detect.beside.builds import Builds, RatioHistory, locate_builds
from tvmdash.detect.beside.contrasts import NIGHT_VARIANCE, Contrast
from tvmdash.detect.noise import MAD_TO_SD
from tvmdash.stats.spread import NOTHING, Spread, pool

PAIR_PRIOR, PAIR_FREEDOM = Spread(0.015**2, 4), 16.0
"""Of one pair of processes where nothing is known; what the experiment's other series count for."""
LUCK_PRIOR, LUCK_OF_SAME_CODE = Spread(0.005**2, 3), Spread(0.002**2, 3)
"""How builds differ where nothing is known: with other generated code, with the same."""
LUCK_FREEDOM = 5.0
FEWEST_JUMPS = 3
"""So many jumps from build to build tell their size, whatever one or the other of them was."""
FEWEST_OTHERS = 4
_AROUND = 3
"""So many builds before and after another one say whether it was off."""
_MEDIAN_OF_SQUARE = 0.4549
"""The median of the square of a standard normal number."""


@dataclass(frozen=True)
class Learned:
    """What the nights of an experiment say of each series before anything is decided, by the series' name.

    pairs: the scatter of one pair of processes. builds: where they lie. jumps: how they differ, going by their jumps.
    precedent: how far one build was off before and went back, in any of the series.
    """

    histories: Mapping[str, RatioHistory]
    pairs: Mapping[str, Spread]
    builds: Mapping[str, Builds]
    jumps: Mapping[str, Spread]
    precedent: float = 0.0

    @classmethod
    def of(cls, histories: Mapping[str, RatioHistory]) -> Learned:
        """From all series of one experiment."""
        pairs = pair_spreads(histories)
        builds = {name: locate_builds(history, pairs[name]) for name, history in histories.items()}
        jumps = {name: luck_of_jumps(located, pairs[name]) for name, located in builds.items()}
        precedent = max((far for located in builds.values() for far in excursions_of(located)), default=0.0)
        return cls(histories, pairs, builds, jumps, precedent)

    @property
    def present(self) -> dict[str, RatioHistory]:
        """The series that have a ratio tonight."""
        return {name: history for name, history in self.histories.items() if history.has_tonight}


def pair_spreads(histories: Mapping[str, RatioHistory]) -> dict[str, Spread]:
    """By series of an experiment, the scatter of one pair of processes."""
    own = {name: _own_pairs(history) for name, history in histories.items()}
    together = pool([*own.values(), PAIR_PRIOR])
    return {name: pool([spread, together.limited(PAIR_FREEDOM)]) for name, spread in own.items()}


def _own_pairs(history: RatioHistory) -> Spread:
    known = np.isfinite(history.std) & (history.pairs > 1)
    freedom = history.pairs[known] - 1
    return pool(Spread(float(s) ** 2, float(f)) for s, f in zip(history.std[known], freedom, strict=True))


def luck_of_jumps(builds: Builds, pair: Spread) -> Spread:
    """How builds differ, going by the jumps from one to the next before tonight's, steps that were told among them.

    The median of their squares, so that few true steps do not matter; nothing where there are too few jumps.
    """
    numbers = range(len(builds.builds) - 1)
    if len(numbers) <= FEWEST_JUMPS:
        return NOTHING
    squares, errors = [], []
    for old, new in itertools.pairwise(numbers):
        between = builds.errors[new] - builds.errors[old]
        squares.append((builds.places[new] - builds.places[old]) ** 2)
        errors.append(pair.variance * (between**2 / builds.pairs).sum() + NIGHT_VARIANCE * (between**2).sum())
    variance = (float(np.median(squares)) / _MEDIAN_OF_SQUARE - float(np.mean(errors))) / 2
    return Spread(variance, 0.4 * len(squares))


def luck_of_night(contrasts: Sequence[tuple[Contrast, Spread]]) -> Spread:
    """How builds differ, from what several series do on tonight's newest build; robust against those that moved."""
    if len(contrasts) < FEWEST_OTHERS:
        return NOTHING
    shifts = np.array([contrast.shift for contrast, _ in contrasts])
    error = float(np.mean([contrast.error(pair) for contrast, pair in contrasts]))
    times = float(np.mean([contrast.luck for contrast, _ in contrasts]))
    scatter = (MAD_TO_SD * float(np.median(np.abs(shifts - np.median(shifts))))) ** 2
    return Spread((scatter - error) / times, 0.4 * len(shifts))


def _prior(contrast: Contrast) -> Spread:
    """What is known of luck before anything was measured."""
    return LUCK_OF_SAME_CODE if contrast.same_code else LUCK_PRIOR


def luck_of_kin(
    name: str, found: Mapping[str, Sequence[Contrast]], jumps: Mapping[str, Spread], pairs: Mapping[str, Spread]
) -> Spread:
    """How builds differ in the experiment's other series whose generated code did tonight what this one's did."""
    same = bool(found[name][0].same_code)
    kin = [other for other in found if other != name and found[other] and bool(found[other][0].same_code) == same]
    tonight = luck_of_night([(found[other][0], pairs[other]) for other in kin])
    known = pool([pool(jumps[other] for other in kin).limited(LUCK_FREEDOM), tonight.limited(LUCK_FREEDOM)])
    return pool([known, _prior(found[name][0])])


def excursions_of(builds: Builds) -> list[float]:
    """How far each build before tonight's was from both the builds before it and those after it."""
    places = builds.places[:-1]
    if len(places) < 3:
        return []
    unknown = np.full(_AROUND, np.nan)
    sides = np.lib.stride_tricks.sliding_window_view(np.concatenate([unknown, places, unknown]), _AROUND)
    middles = np.nanmedian(sides[1:-1], axis=1)  # sides[at] ends before the build `at`
    inner = np.arange(1, len(places) - 1)
    away = np.abs(places[inner] - middles[[inner - 1, inner + _AROUND]])
    return [float(far) for far in away.min(axis=0)]
