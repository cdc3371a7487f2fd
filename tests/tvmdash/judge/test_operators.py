"""Which operator got slower: planted ones are found in disturbed nights, and quiet nights say nothing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from statistics import median

from tvmdash.judge.operators import OperatorSide, compare_operators
from tvmdash.judge.two import PairStanding

RUNS, PROCESSES = 10, 6
MEANS_MS = {f"fused_conv2d{number}": 2.0 / (number + 1) for number in range(20)}
KNOWN = {name: {"hash": name[::-1], "shapes": f"float32[1,{place}]"} for place, name in enumerate(MEANS_MS)}


def measure(chance: random.Random, slower: Mapping[str, float], *, preempted: float) -> OperatorSide:
    """A side of a night: a process has a level of its own, a run its scatter; now and then the core is taken away."""
    times: dict[str, list[float]] = {name: [] for name in MEANS_MS}
    whole = []
    for _ in range(PROCESSES):
        level = chance.gauss(1, 0.01)
        luck = {name: chance.gauss(1, 0.005) for name in MEANS_MS}
        runs = []
        for _ in range(RUNS):
            run = {
                name: mean * level * luck[name] * slower.get(name, 1.0) * chance.lognormvariate(0, 0.02)
                for name, mean in MEANS_MS.items()
            }
            if chance.random() < preempted:
                run[chance.choice(list(run))] += chance.uniform(1, 8)
            runs.append(run)
        for name, held in times.items():
            held.append(median(run[name] for run in runs))
        whole.append(median(sum(run.values()) for run in runs))
    return OperatorSide(times, whole, KNOWN)


def test_a_planted_operator_is_first_in_nineteen_of_twenty_disturbed_nights() -> None:
    first = 0
    for night in range(20):
        chance = random.Random(night)
        planted = chance.choice(list(MEANS_MS)[:10])
        before = measure(chance, {}, preempted=0.3)
        compared = compare_operators(before, measure(chance, {planted: 1.15}, preempted=0.3))
        change = compared.changes[0]
        first += change.name == planted and change.standing is PairStanding.WORSE
    assert first >= 19


def test_nothing_is_told_of_twenty_quiet_nights() -> None:
    for night in range(20):
        chance = random.Random(1000 + night)
        for in_turn in (True, False):
            sides = [measure(chance, {}, preempted=0.05) for _ in range(2)]
            compared = compare_operators(*sides, in_turn=in_turn)
            assert [change.name for change in compared.changes if change.standing.is_told] == []
            assert compared.whole is not None
            assert not compared.whole.standing.is_told


def test_the_interval_holds_what_was_planted_and_the_rest_is_said() -> None:
    chance = random.Random(5)
    before = measure(chance, {}, preempted=0.0)
    after = measure(chance, {"fused_conv2d3": 1.2}, preempted=0.0)
    after = OperatorSide(after.operators, [value + 0.3 for value in after.whole], after.known)
    compared = compare_operators(before, after)
    change = compared.changes[0]
    assert change.low_ms is not None
    assert change.high_ms is not None
    assert change.low_ms < 0.5 * 0.2 < change.high_ms
    assert change.processes == (PROCESSES, PROCESSES)
    assert compared.unexplained_ms is not None
    assert 0.2 < compared.unexplained_ms < 0.4


def test_an_operator_is_known_by_what_it_computes_whatever_its_number() -> None:
    times = [1.0, 1.01, 0.99]
    before = OperatorSide({"conv": times, "conv1": times, "dense2": times, "gone": times},
                          known={"conv": {"hash": "a"}, "conv1": {"hash": "b"}})  # fmt: skip
    after = OperatorSide({"conv": times, "conv1": [2.0, 2.02, 1.98], "dense": times, "added": times},
                         known={"conv": {"hash": "b"}, "conv1": {"hash": "a"}})  # fmt: skip
    changes = {change.name: change for change in compare_operators(before, after).changes}
    assert (changes["conv"].change_ms, changes["conv1"].change_ms) == (0.0, 1.0)
    assert changes["dense"].change_ms == 0
    assert (changes["gone"].words, changes["added"].words) == ("gone", "new")
    assert changes["gone"].change_ms == -1.0


def test_one_run_of_a_side_gives_no_interval() -> None:
    compared = compare_operators(OperatorSide({"conv": [1.0]}), OperatorSide({"conv": [9.0]}))
    assert (compared.changes[0].low_ms, compared.changes[0].words) == (None, "unclear")
    assert (compared.whole, compared.unexplained_ms) == (None, None)
