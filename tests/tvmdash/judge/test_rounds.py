"""Two builds measured by whole runs, one after the other: what disturbs a run is in all of its series."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from tvmdash.judge.two import PairStanding, RoundSeries, compare_rounds


def measure(
    seed: int, *, series: int = 12, rounds: int = 10, shock: float = 0.0, steps: Mapping[int, float] = {}
) -> dict[str, RoundSeries]:
    """Series that scatter by 1.5 %, one round in twenty by four times as much; a shock moves all of a round."""
    rng = random.Random(seed)
    shocks = [rng.gauss(0, shock) for _ in range(rounds)]
    return {
        str(at): RoundSeries(
            f"e{at % 2}",
            {
                str(number): math.log1p(steps.get(at, 0.0))
                + each
                + rng.gauss(0, 0.015) * (4 if rng.random() < 0.05 else 1)
                for number, each in enumerate(shocks)
            },
            "lower",
        )
        for at in range(series)
    }


def test_what_disturbs_whole_runs_is_no_difference_of_the_builds() -> None:
    told = [
        sum(each.is_told for each in compare_rounds(measure(seed, shock=shock)).values())
        for shock in (0.01, 0.03)
        for seed in range(25)
    ]
    assert sum(map(bool, told)) <= 1


def test_a_step_of_ten_percent_is_found_and_named_alone() -> None:
    found = [compare_rounds(measure(seed, steps={0: 0.1})) for seed in range(20)]
    assert sum(each["0"].standing is PairStanding.WORSE for each in found) >= 19
    assert sum(name != "0" and each.is_told for names in found for name, each in names.items()) <= 1
    assert sum(low < 0.1 < high for low, high in (each["0"].bounds for each in found)) >= 17


def test_one_disturbed_round_neither_makes_a_difference_nor_hides_one() -> None:
    for step in (0.0, 0.1):
        series = measure(3, series=1, steps={0: step})["0"]
        disturbed = RoundSeries(series.experiment, {**series.rounds, "0": series.rounds["0"] + 0.5}, "lower")
        assert compare_rounds({"0": disturbed})["0"].is_told == bool(step)


def test_equal_ratios_have_no_noise_and_few_rounds_of_others_say_nothing() -> None:
    exact = RoundSeries("e", {"0": math.log(1.04), "1": math.log(1.04), "2": math.log(1.04)}, "lower")
    few = RoundSeries("e", {"0": 0.40, "1": 0.41, "2": 0.39}, "lower")
    found = compare_rounds({"size": exact, "time": few})
    assert found["size"].standing is PairStanding.WORSE
    assert not found["time"].is_told
    assert not found["time"].is_bounded
