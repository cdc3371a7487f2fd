"""Ratios to references that change: where builds lie, how sure that is, and which steps are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tvmdash.detect.beside.builds import Again, RatioHistory, locate_builds
from tvmdash.detect.beside.contrasts import contrasts_of
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import PAIR_PRIOR_OF_DEVICE, Learned
from tvmdash.detect.beside.reference import compare_with_reference
from tvmdash.stats.spread import Spread

NAN = float("nan")
PAIR = Spread(0.01**2, 50)


def history(logs: list[float], build: list[int], reference: list[int], *, offset: int = 0) -> RatioHistory:
    count = len(logs)
    return RatioHistory(
        np.array(logs), np.full(count, 0.01), np.full(count, 5.0), np.array(build), np.array(reference),
        np.ones(count, np.int64), offset,
    )  # fmt: skip


def fleet(
    count: int, nights: int, *, shift: float, at: int, chain: bool, seed: int = 1, scatter: float = 0.01
) -> dict[str, RatioHistory]:
    """So many series, a new build each night; the first series is slower from the night `at` on."""
    rng = np.random.default_rng(seed)
    true = np.zeros((count, nights))
    true[0, at:] = shift
    base = np.concatenate([np.zeros((count, 1)), true[:, :-1]], axis=1) if chain else np.zeros_like(true)
    observed = (true - base)[:, :, None] + scatter * rng.standard_normal((count, nights, 5))
    builds = np.arange(1, nights + 1)
    reference = builds - 1 + 100 * (builds == 1) if chain else np.full(nights, 100)
    return {
        f"s{number}": RatioHistory(
            observed[number].mean(axis=1), observed[number].std(axis=1, ddof=1), np.full(nights, 5.0),
            builds, reference, np.ones(nights, np.int64),
        )
        for number in range(count)
    }  # fmt: skip


def decided(histories: dict[str, RatioHistory]) -> dict[str, RatioDecision]:
    """What is decided of series whose level began on the first night."""
    return decide(Learned.of(histories), {})


def test_beside_one_reference_a_build_lies_where_its_nights_say() -> None:
    located = locate_builds(history([0.1, 0.3, NAN, 0.5], [1, 1, 1, 2], [9] * 4), PAIR)
    assert located.places == pytest.approx([0.2, 0.5])
    assert [(build.first, build.last, build.nights) for build in located.builds] == [(0, 1, 2), (3, 3, 1)]
    assert located.have_one_reference


def test_beside_last_nights_build_places_add_up_and_so_do_their_errors() -> None:
    located = locate_builds(history([0.1, 0.02, -0.03], [1, 2, 3], [9, 1, 2], offset=7), PAIR)
    assert located.places == pytest.approx([0.1, 0.12, 0.09])
    assert located.errors.tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert not located.have_one_reference
    assert located.builds[0].first == 7


def test_the_difference_of_neighbours_has_the_error_of_the_night_that_measured_both() -> None:
    located = locate_builds(history([0.1, 0.02, -0.03, 0.04], [1, 2, 3, 4], [9, 1, 2, 3]), PAIR)
    nearest = contrasts_of(located, PAIR, 1e-12)[0]
    assert nearest.shift == pytest.approx(0.04, abs=1e-6)
    assert nearest.pairs == pytest.approx(1 / 5, rel=1e-3)
    assert nearest.luck == pytest.approx(2.0, rel=1e-3)


def test_builds_that_differ_by_luck_are_averaged_although_errors_add_up() -> None:
    located = locate_builds(history([0.0, 0.02, -0.02, 0.04], [1, 2, 3, 4], [9, 1, 2, 3]), PAIR)
    nearest = contrasts_of(located, Spread(1e-12, 50), 0.01**2)[0]
    assert nearest.luck == pytest.approx(1 + 1 / 3, rel=1e-3)
    assert nearest.shift == pytest.approx(0.04 - 0.02 / 3, rel=1e-3)


def test_a_new_reference_is_linked_by_a_build_that_was_measured_beside_both() -> None:
    located = locate_builds(history([0.1, 0.04, 0.07], [1, 1, 2], [8, 9, 9]), PAIR)
    assert located.places == pytest.approx([0.1, 0.13])
    assert [build.artifact for build in located.builds] == [1, 2]


def test_nights_that_nothing_links_with_tonight_are_left_out() -> None:
    located = locate_builds(history([0.1, 0.2, 0.3], [1, 2, 3], [8, 8, 9]), PAIR)
    assert [build.artifact for build in located.builds] == [3]


def test_an_artifact_that_comes_back_is_a_build_of_its_own() -> None:
    located = locate_builds(history([0.0, 0.1, 0.0], [1, 2, 1], [9] * 3), PAIR)
    assert [build.artifact for build in located.builds] == [1, 2, 1]


@pytest.mark.parametrize("chain", [False, True])
@pytest.mark.parametrize("at", [2, 6])
def test_a_step_is_told_the_same_night_and_nothing_else(*, chain: bool, at: int) -> None:
    decisions = decided(fleet(10, at + 1, shift=0.06, at=at, chain=chain))
    assert [name for name, decision in decisions.items() if decision.is_told] == ["s0"]
    decision = decisions["s0"]
    assert decision.low < np.expm1(0.06) < decision.high
    assert (decision.cut, decision.after, decision.builds) == (at, at - 1, 1)


def test_a_small_step_is_told_when_enough_builds_have_it() -> None:
    """2 %, where a night's ratio scatters by 0.45 %. Beside last night's build only one night measures the step."""
    told = [night for night in range(9, 20) if decided(fleet(10, night, shift=0.02, at=8, chain=False))["s0"].is_told]
    assert told
    assert told[0] <= 13


def test_what_is_measured_again_counts_by_its_pairs() -> None:
    night = fleet(10, 4, shift=0.025, at=3, chain=False, scatter=0.012, seed=4)
    decision = decided(night)["s0"]
    more = replace(night["s0"], again=(Again(0.025, 10, 3), Again(0.025, 10, 3)))
    again = decided({**night, "s0": more})["s0"]
    assert again.error < 0.7 * decision.error
    assert again.low < np.expm1(0.025) < again.high
    assert again.evidence.pairs_again == 20
    assert (again.cut, again.after) == (3, 2)


def test_measuring_again_does_not_make_luck_smaller() -> None:
    """The build before was fast by luck: however well the two are measured, it is one build against one."""
    rng = np.random.default_rng(3)
    night = fleet(10, 12, shift=0.0, at=0, chain=False, scatter=0.002)
    lucky = {
        name: replace(history, logs=history.logs + 0.012 * rng.standard_normal(12)) for name, history in night.items()
    }
    gap = float(lucky["s0"].logs[-1] - lucky["s0"].logs[-2])
    again = decided({**lucky, "s0": replace(lucky["s0"], again=(Again(gap, 500, 11),))})["s0"]
    assert again.error >= 0.9 * decided(lucky)["s0"].error
    assert not again.is_told


def test_one_build_says_nothing_of_a_step_but_how_it_stands_to_the_reference() -> None:
    only = {f"s{number}": history([0.05, 0.05], [1, 1], [9, 9]) for number in range(3)}
    assert decided(only) == {}
    stand = compare_with_reference(Learned.of(only))["s0"]
    assert stand.differs
    assert stand.low < np.expm1(0.05) < stand.high
    assert not stand.is_itself


def test_a_build_measured_beside_itself_has_no_luck_in_its_interval() -> None:
    itself = compare_with_reference(Learned.of({"s": history([0.0], [9], [9])}))["s"]
    other = compare_with_reference(Learned.of({"s": history([0.0], [1], [9])}))["s"]
    assert itself.is_itself
    assert itself.high - itself.low < other.high - other.low


def test_a_device_says_nothing_of_the_scatter_of_another() -> None:
    """One pair on a device among many of the processor, which its own nights and no others make narrower."""
    processor = fleet(10, 3, shift=0.0, at=0, chain=False, scatter=0.002)
    one = history([0.03], [1], [9])
    one = replace(one, std=np.array([NAN]), pairs=np.array([1.0]))
    on_device = Learned.of({**processor, "d": replace(one, device="opencl")})
    assert on_device.pairs["s0"].sd == pytest.approx(Learned.of(processor).pairs["s0"].sd)
    assert on_device.pairs["d"] == PAIR_PRIOR_OF_DEVICE
    assert (
        compare_with_reference(on_device)["d"].low
        < 0
        < compare_with_reference(Learned.of({**processor, "d": one}))["d"].low
    )
    kin = {f"k{name}": replace(series, device="opencl") for name, series in processor.items()}
    with_kin = Learned.of({**kin, "d": replace(one, device="opencl")})
    assert with_kin.pairs["d"].sd < PAIR_PRIOR_OF_DEVICE.sd / 3


def test_a_night_with_an_odd_process_counts_for_less() -> None:
    night = history([0.0, 0.0], [1, 2], [9, 9])
    odd = replace(night, std=np.array([0.01, 0.05]))
    assert locate_builds(night, PAIR).pairs == pytest.approx([5, 5])
    assert locate_builds(odd, PAIR).pairs == pytest.approx([5, 5 / 25])


def test_what_was_measured_alone_before_is_the_build_that_the_first_ratio_is_held_against() -> None:
    located = locate_builds(history([NAN, 0.06], [1, 2], [0, 1]), PAIR)
    assert [build.artifact for build in located.builds] == [1, 2]
    assert located.places == pytest.approx([0.0, 0.06])
    assert located.errors.tolist() == [[0], [1]]


def test_one_build_alone_tells_no_step_below_two_percent_and_two_builds_do() -> None:
    """However well it is measured: nobody knows the luck of one build so well."""
    told = [
        decided(fleet(10, night, shift=0.016, at=12, chain=False, scatter=0.002))["s0"].is_told for night in (13, 14)
    ]
    assert told == [False, True]
