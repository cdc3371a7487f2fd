"""The same pairs are the same answer, whoever asks: a night, a try, a signoff; of pairs in turn and of rounds."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from dashboard.trials.result import judge_series, judge_step
from tests.tvmdash.judge.test_search import World
from tvmdash.judge import two
from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.judge.home import Decision, Judgement, interval, judge
from tvmdash.judge.rules import RULES
from tvmdash.judge.search import Search
from tvmdash.judge.two import Difference, PairStanding
from tvmdash.series.store import Outline
from tvmdash.signoff.measured import MeasuredSeries, TwoTvms
from tvmdash.signoff.ratios import compare_ratios
from tvmdash.signoff.signoff import compare_rounds
from tvmdash.trials.trial import RunOfPairs, TrialChange, TrialSeries

DIRECTIONS = ("lower", "higher", "none")


def draw_home(seed: int) -> dict[str, list[float]]:
    """By series, the logarithms of one ratio for each pair: some moved alone, in some homes all did."""
    rng = random.Random(seed)
    of_all = rng.choice([0.0, 0.0, 0.03])
    count, scatter = rng.choice([3, 5, 10]), rng.choice([0.005, 0.013, 0.03])
    moved = [of_all + (rng.choice([0.0, 0.0, 0.04, 0.12, -0.12]) if not of_all else 0.0) for _ in range(8)]
    return {f"s{at}": [rng.gauss(step, scatter) for _ in range(count)] for at, step in enumerate(moved)}


def direction_of(name: str) -> str:
    return DIRECTIONS[int(name[1:]) % 3]


def judge_night(home: dict[str, list[float]]) -> Judgement:
    """What a night says whose TVM is `new` beside the reference `old`."""
    evidence = {}
    for name, logs in home.items():
        pairs = two.make_pairs(logs)
        beside = Pairs(0, "new", "old", pairs.log, pairs.std, pairs.count)
        evidence[name] = Evidence("e", [beside], {"old": 4, "new": 7}, "new", sign=two.SIGNS[direction_of(name)])
    return judge(evidence)


def make_measured(name: str) -> MeasuredSeries:
    outline = Outline(0, name, "e", "run_time", "ms", direction_of(name), {}, "time", "", None)  # type: ignore[arg-type]
    return MeasuredSeries(outline, name, name)


def compare_two(home: dict[str, list[float]]) -> dict[str, Difference]:
    return two.compare(
        {name: two.make_evidence("e", [two.make_pairs(logs)], direction_of(name)) for name, logs in home.items()}
    )


@pytest.mark.parametrize("seed", range(60))
def test_a_night_and_who_measured_two_builds_in_rounds_say_the_same(seed: int) -> None:
    home = draw_home(seed)
    night, found = judge_night(home), compare_two(home)
    told = {name: change for change in reversed(night.changes) for name in change.series}
    for name, difference in found.items():
        change = told.get(name)
        step = change.of(name) if change else night.found[name]
        assert step is not None
        assert difference.effect == pytest.approx(step.effect, rel=1e-9)
        if difference.low is not None:
            assert (difference.low, difference.high) == pytest.approx(interval(step), rel=1e-9)
        is_told = change is not None and change.decision is not Decision.SUSPECTED
        assert difference.standing.is_told is is_told
        assert (difference.standing is PairStanding.SUSPECTED) is (change is not None and not is_told)


def compare_rounds_of_two(home: dict[str, list[float]]) -> dict[str, Difference]:
    return two.compare_rounds(
        {
            name: two.RoundSeries("e", {str(at): log for at, log in enumerate(logs)}, direction_of(name))
            for name, logs in home.items()
        }
    )


def make_tried(name: str) -> TrialSeries:
    return TrialSeries(name, "e", "run_time", {}, direction_of(name))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(60))
def test_a_signoff_says_it_too_by_pairs_and_by_rounds(seed: int) -> None:
    home = draw_home(seed)
    by_pairs, by_rounds = [], []
    for name, logs in home.items():
        pairs = two.make_pairs(logs)
        paired, compared = make_measured(name), make_measured(name)
        paired.pairs.append(Pairs(0, "b", "a", pairs.log, pairs.std, pairs.count))
        compared.rounds += [(1.0, math.exp(log)) for log in logs]
        by_pairs.append(paired)
        by_rounds.append(compared)
    for said, found in (
        (compare_ratios(by_pairs, TwoTvms("a", "b")), compare_two(home)),
        (compare_rounds(by_rounds), compare_rounds_of_two(home)),
    ):
        for name, difference in found.items():
            change = said[name].difference
            assert change.effect == pytest.approx(difference.effect, rel=1e-6)
            assert change.standing is difference.standing
            for end, expected in ((change.low, difference.low), (change.high, difference.high)):
                assert end == (expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-9))


@pytest.mark.parametrize("seed", range(60))
def test_a_try_says_it_too_by_pairs_and_by_rounds(seed: int) -> None:
    home = draw_home(seed)
    by_pairs, by_rounds = [], []
    for name, logs in home.items():
        pairs = two.make_pairs(logs)
        run = RunOfPairs(pairs.log, pairs.std, pairs.count)
        by_pairs.append(replace(make_tried(name), runs=(run,)))
        by_rounds.append(replace(make_tried(name), rounds=tuple((1.0, math.exp(log)) for log in logs)))
    for series, found in ((by_pairs, compare_two(home)), (by_rounds, compare_rounds_of_two(home))):
        for change, difference in zip(judge_series(series), found.values(), strict=True):
            assert (change is not None) is difference.is_bounded
            if change is not None:
                assert (change.effect, change.low, change.high) == pytest.approx(
                    (difference.effect, *difference.bounds), rel=1e-6, abs=1e-9
                )
                assert change.standing == difference.standing


@pytest.mark.parametrize("seed", range(20))
def test_a_bisection_says_of_its_ends_what_a_try_says_of_the_two(seed: int) -> None:
    for name, logs in draw_home(seed).items():
        in_turn = replace(make_tried(name), runs=(RunOfPairs.of(logs), RunOfPairs.of(logs)))
        in_rounds = replace(make_tried(name), rounds=tuple((1.0, math.exp(log)) for log in logs))
        for series in (in_turn, in_rounds):
            assert judge_series([series]) == [judge_step(series, [], [])]


@pytest.mark.parametrize(("size", "noise", "widest"), [(0.05, 0.02, 0.09), (1.87, 0.04, 0.5), (0.3, 0.03, 0.16)])
def test_the_step_of_a_bisection_has_an_interval_that_holds_the_truth(size: float, noise: float, widest: float) -> None:
    held, many = 0, 40
    for seed in range(many):
        change = judge_found_step(World(seed, size=math.log1p(size), noise=noise).search()[0])
        held += change.low <= size <= change.high
        assert change.high - change.low < widest
    assert held >= 36


def judge_found_step(search: Search) -> TrialChange:
    """As `bisect` concludes."""
    verdict, series = search.verdict(), make_tried("s0")
    inner = {at: values for at, values in search.values.items() if values and at != search.count}
    before = [values for at, values in inner.items() if 0 < at < verdict.first]
    after = [values for at, values in inner.items() if at >= verdict.last]
    series = replace(series, runs=(RunOfPairs.of(search.values[search.count]),))
    change = judge_step(series, before, after)
    assert change is not None
    return change


def test_the_homes_above_hold_every_decision() -> None:
    found = [difference for seed in range(60) for difference in compare_two(draw_home(seed)).values()]
    assert {difference.standing for difference in found} == set(PairStanding)


def test_of_fewer_than_five_pairs_there_is_no_interval_and_nothing_of_one_series_is_told() -> None:
    few = two.compare({"s": two.make_evidence("e", [two.make_pairs([0.3, 0.3001, 0.2999])], "lower")})["s"]
    assert RULES.fewest_pairs > few.pairs
    assert (few.low, few.high, few.standing.is_told) == (None, None, False)


def test_a_ratio_that_all_rounds_agree_on_is_exact() -> None:
    same, larger = (two.make_evidence("e", [two.make_pairs([log] * 3)], "lower") for log in (0.0, math.log(1.001)))
    found = two.compare({"same": same, "larger": larger})
    assert (found["same"].standing, found["larger"].standing) == (PairStanding.UNCHANGED, PairStanding.WORSE)
    assert found["larger"].low == found["larger"].high == pytest.approx(0.001)
