"""Which points are measured again and with how many samples, from what earlier rounds left."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tvmdash.experiment.config import BROKEN, INTERVAL, MINUTES, PROCESSES, Precision
from tvmdash.experiment.paired.pairs import Pair
from tvmdash.experiment.rounds import (
    count_samples_of_next,
    count_turns_of_next,
    find_seconds_of_next,
    is_affordable,
    is_pair_wanted,
    is_wanted,
)
from tvmdash.measure.capture import Sample, Trial
from tvmdash.measure.reduction import combine_pairs, reduce_processes
from tvmdash.measure.under_load import ENERGY, LEAST_S, UNKNOWN


def trial(times_ms: list[float], *, prepare_ms: float = 0.0, error: str | None = None, ran: str | None = None) -> Trial:
    samples = tuple(Sample(round(ms * 1e6), 1) for ms in times_ms)
    facts = {"content": ran} if ran else {}
    return Trial({}, 0, round((sum(times_ms) + prepare_ms) * 1e6), error, facts, samples, {})


def make_precision(**given: float) -> Precision:
    """One process and a pair of them, whatever it takes, but for what is given."""
    alone = {"processes": 1, "max_processes": 1, "interval_percent": 0.0, "max_minutes": math.inf}
    return Precision(**alone | {"pairs": 1, "max_pairs": 1, "pair_percent": 0.0} | given)


def test_the_next_process_is_not_expected_to_watch_its_card_again() -> None:
    watched = [Trial({}, 0, 1, None, {name: value}, (), {}) for name, value in ((ENERGY, 3.5), (UNKNOWN, "MIG"))]
    assert find_seconds_of_next(40.0, [*watched, *watched, trial([1.0])]) == 40.0 - 4 * LEAST_S
    assert find_seconds_of_next(40.0, [trial([1.0])]) == 40.0


def test_a_point_is_wanted_until_it_is_known_well_enough_or_failed() -> None:
    precision = make_precision(processes=2, max_processes=4, interval_percent=5)
    assert is_wanted([], precision)
    assert is_wanted([trial([10.0])], precision)
    assert not is_wanted([trial([10.0]), trial([10.001])], precision)
    assert is_wanted([trial([10.0]), trial([11.0])], precision)
    assert not is_wanted([trial([], error="wrong")], precision)


def test_what_ended_a_point_is_told() -> None:
    precision = make_precision(processes=2, max_processes=3, interval_percent=5)
    narrow, wide = reduce_processes([[1.0], [1.001]]), reduce_processes([[1.0], [2.0]])
    assert precision.ended_by(narrow, broken=True) == INTERVAL
    assert precision.ended_by(wide, broken=False) == MINUTES
    assert precision.ended_by(wide, broken=True) == BROKEN
    assert precision.ended_by(reduce_processes([[1.0], [2.0], [3.0]]), broken=False) == PROCESSES


def test_more_processes_at_least_than_at_most_means_at_least() -> None:
    assert make_precision(processes=5, max_processes=2).rounds == 5


@pytest.mark.parametrize(
    ("within", "between", "prepare_ms", "expected"),
    [
        (1.0, 1.0, 900.0, 30),  # sqrt(900 / 1 * 1 / 1)
        (1.0, 3.0, 900.0, 10),
        (0.01, 3.0, 900.0, 3),  # processes differ, samples do not: few samples
        (1.0, 1.0, 90000.0, 40),  # never more than four times `repeat`
    ],
)
def test_the_number_of_samples_makes_the_whole_cheapest(
    within: float, between: float, prepare_ms: float, expected: int
) -> None:
    generator = np.random.default_rng(1)
    levels = 100 + between * generator.normal(size=400)
    trials = [
        trial(list((level + within * generator.normal(size=40)) / 100), prepare_ms=prepare_ms) for level in levels
    ]
    assert count_samples_of_next(trials, 10) == pytest.approx(expected, rel=0.15)


def test_without_three_processes_or_any_spread_it_is_as_many_as_asked() -> None:
    assert count_samples_of_next([], 10) == 10
    assert count_samples_of_next([trial([1.0, 2.0])] * 2, 10) == 10
    assert count_samples_of_next([trial([1.0, 1.0])] * 3, 10) == 10


def test_equal_processes_take_as_many_samples_as_may_be() -> None:
    assert count_samples_of_next([trial([1.0, 2.0, 3.0], prepare_ms=5.0)] * 3, 10) == 40


def pair(turns: int, *, scatter: float = 0.0, sample_ms: float = 20.0) -> Pair:
    """So many turns of two equal sides, whose ratio scatters by so much."""
    shifts = [scatter if turn % 2 else -scatter for turn in range(turns)], [0.0] * turns
    times_ns = [[round(sample_ms * 1e6 * math.exp(shift)) for shift in side] for side in shifts]
    sides = [tuple(Sample(time_ns, 1, 0, time_ns) for time_ns in side) for side in times_ns]
    new, old = (Trial({}, 0, 1, None, {}, side, {}) for side in sides)
    return Pair(new, old)


@pytest.mark.parametrize(
    ("known", "turns"),
    [
        ([], 10),  # nothing is known yet
        ([pair(10)], 5),  # one turn says it all, but one may be disturbed
        ([pair(10, scatter=0.012)], 7),  # (1.96 * 1.26 %)² in (1 %)²
        ([pair(10, scatter=0.05)], 25),  # half a second a side is enough
        ([pair(10, scatter=0.05, sample_ms=5)], 40),  # four times as many as asked for
        ([pair(10, scatter=0.05, sample_ms=2000)], 5),  # calls of seconds
        ([pair(1)], 10),
    ],
)
def test_the_next_pair_has_the_turns_that_it_takes_to_know_it(known: list[Pair], turns: int) -> None:
    assert count_turns_of_next(known, "cpu", 10) == turns
    assert count_turns_of_next(known, "cpu", 3) <= 12


def test_beside_a_reference_it_is_the_ratio_that_ends_a_point() -> None:
    precision = make_precision(processes=1, max_processes=2, interval_percent=5, pairs=2, max_pairs=4, pair_percent=1)
    reduced = reduce_processes([[1.0, 1.1, 1.2]] * 3)
    ended = [
        precision.ended_by(reduced, combine_pairs(logs), broken=False) for logs in ([0.0, 0.001, 0.0], [0.0, 0.2, 0.1])
    ]
    assert ended == ["interval", "max_minutes"]
    four = reduce_processes([[1.0, 1.1, 1.2]] * 4)
    assert precision.ended_by(four, combine_pairs([0.0, 0.2, 0.1, 0.3]), broken=False) == "max_processes"


def test_groups_that_take_long_leave_time_for_those_that_take_little() -> None:
    took_s, times = {"quick": 2.0, "slow": 20.0}, {"quick": 2, "slow": 1}
    assert is_affordable("new", took_s, times, 5, -1.0), "the first process always may begin"
    assert is_affordable("slow", took_s, times, 5, 26.0)
    assert not is_affordable("slow", took_s, times, 5, 25.0), "three of the quick one take six seconds"
    assert is_affordable("slow", took_s, times, 5, 20.0, ["quick"]), "nothing is kept for what is unchanged"
    assert is_affordable("slow", took_s, times, 0, 20.0), "measured alone, nothing is kept for others"
    assert is_affordable("quick", took_s, times, 5, 2.0)


@pytest.mark.parametrize(
    ("ran", "measured", "expected"),
    [
        (["same"], {"same": 5}, False),
        (["same"], {"same": 4}, True),
        (["same"], {"other": 5}, True),
        (["same"], {}, True),
        (["same", "other"], {"same": 5, "other": 5}, True),
        ([None], {"same": 5}, True),
    ],
)
def test_one_pair_is_enough_of_what_earlier_nights_measured_often(
    ran: list[str | None], measured: dict[str, int], expected: bool
) -> None:
    precision, trials = make_precision(pairs=5, max_pairs=8), [trial([1.0], ran=content) for content in ran]
    assert is_pair_wanted(trials, combine_pairs([0.1] * len(ran)), precision, measured) is expected


def test_a_point_without_a_pair_is_measured_again_whatever_it_ran() -> None:
    precision = make_precision(pairs=5, max_pairs=8)
    assert is_pair_wanted([trial([1.0], ran="same")], None, precision, {"same": 5})
    assert not is_pair_wanted([trial([], error="wrong", ran="same")], None, precision, {"same": 5})
