"""Steps put into copies of a night's ratios: that they say of the detector what steps of TVM would."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from tests.tvmdash.detect.test_beside import decided, fleet, history
from tvmdash.detect.beside.builds import RatioHistory
from tvmdash.detect.beside.decisions import chance_of_night, decide
from tvmdash.detect.beside.luck import NOWHERE, Elsewhere, Learned
from tvmdash.detect.beside.planted import decide_with_steps, is_unchanged, learn_copies
from tvmdash.detect.beside.rarity import normal
from tvmdash.stats.spread import Spread

STEP = 0.045
NOISE = 0.0145
"""With five nights of five such pairs, a step of STEP is told in about half of the series."""


@pytest.mark.parametrize("chain", [False, True])
def test_all_copies_at_once_say_what_each_series_slower_by_itself_would(*, chain: bool) -> None:
    night = fleet(8, 6, shift=0.0, at=0, chain=chain, scatter=NOISE, seed=3)
    copies = decide_with_steps(learn_copies(night), {}, (0.0, STEP))
    for name, alone in night.items():
        slower = replace(alone, logs=alone.logs + math.log1p(STEP) * (np.arange(6) == 5))
        said = decide(Learned.of({**night, name: slower}), {})[name]
        copy = copies[STEP][name]
        assert (copy.is_told, copy.builds) == (said.is_told, said.builds)
        assert (copy.z, copy.low, copy.high) == pytest.approx((said.z, said.low, said.high))
        assert copies[0.0][name].z == pytest.approx(decided(night)[name].z)


def test_what_other_experiments_say_of_luck_counts_for_copies_too() -> None:
    copies = learn_copies(fleet(6, 4, shift=0.0, at=0, chain=False))
    lucky = Elsewhere(luck=Spread(0.03**2, 50))
    told = [decide_with_steps(copies, {}, (0.05,), elsewhere)[0.05] for elsewhere in (NOWHERE, lucky)]
    assert [all(decision.is_told for decision in of.values()) for of in told] == [True, False]


def test_the_share_of_copies_that_are_told_is_that_of_planted_steps_in_other_worlds() -> None:
    worlds, size = 40, 5
    copies = [
        decision.is_told
        for seed in range(worlds)
        for decision in decide_with_steps(
            learn_copies(fleet(size, 5, shift=0.0, at=0, chain=False, scatter=NOISE, seed=seed)), {}, (STEP,)
        )[STEP].values()
    ]
    planted = [
        decided(fleet(size, 5, shift=math.log1p(STEP), at=4, chain=False, scatter=NOISE, seed=1000 + seed))[
            "s0"
        ].is_told
        for seed in range(3 * worlds)
    ]
    share = float(np.mean(planted))
    assert 0.3 < share < 0.7, "else all would agree"
    error = math.sqrt(share * (1 - share) * (1 / len(planted) + 2 / len(copies)))
    assert float(np.mean(copies)) == pytest.approx(share, abs=3 * error)


def test_what_is_stated_of_a_night_is_more_than_what_comes_by_chance() -> None:
    """Nothing changes; a hundred times as easily told as by the detector, so that there is something to count."""
    level, nights, told = 100 * chance_of_night(1), 60, 0
    for seed, length in itertools.product(range(nights // 3), (2, 4, 8)):
        said = decided(fleet(8, length, shift=0.0, at=0, chain=False, scatter=0.013, seed=seed)).values()
        told += sum(abs(one.z) >= normal(level / len(one.evidence.contrasts) ** 0.5) for one in said)
    expected = 8 * nights * level
    assert told <= expected + 3 * math.sqrt(expected)


def test_nights_of_one_artifact_get_a_build_of_their_own_in_the_copy_with_code_that_nobody_knows() -> None:
    same: dict[str, RatioHistory] = {f"s{number}": history([0.0, 0.0, 0.0], [1, 1, 1], [9] * 3) for number in range(3)}
    assert all(map(is_unchanged, same.values()))
    assert decided(same) == {}
    copies = decide_with_steps(learn_copies(same), {}, (0.0, 0.2))
    assert [decision.is_told for decision in copies[0.2].values()] == [True] * 3
    assert [decision.is_told for decision in copies[0.0].values()] == [False] * 3
    assert {decision.same_code for decision in copies[0.2].values()} == {None}


def test_a_build_that_is_new_keeps_what_is_known_of_its_code() -> None:
    night = {"s": history([0.0, 0.0], [1, 2], [9, 9])}
    assert not is_unchanged(night["s"])
    assert decide_with_steps(learn_copies(night), {}, (0.05,))[0.05]["s"].same_code is True
