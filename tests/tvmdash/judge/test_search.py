"""The noisy bisection against a made-up world whose culprit is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from tvmdash.judge.search import Search, Step, Verdict, least_measurements

FIVE_PERCENT = math.log(1.05)


@dataclass(frozen=True)
class World:
    """Commits 0 to `count`, slower by `size` from `culprit` on; runs, builds and some of the machine are noisy."""

    seed: int
    count: int = 200
    size: float = FIVE_PERCENT
    noise: float = 0.02
    broken_share: float = 0.05

    def search(self) -> tuple[Search, int, int, int]:
        """The finished search, the culprit, the number of measurements after the ends', and of builds."""
        rng = np.random.default_rng(self.seed)
        culprit = int(rng.integers(1, self.count + 1))
        bias = rng.normal(0, 0.003, self.count + 1)
        broken = {int(commit) for commit in np.flatnonzero(rng.random(self.count + 1) < self.broken_share)}

        def measure(commit: int, times: int) -> list[float]:
            level = (self.size if commit >= culprit else 0.0) + bias[commit] - bias[0]
            disturbed = np.where(rng.random(times) < 0.03, rng.exponential(0.1, times), 0.0)
            return [float(value) for value in level + rng.normal(0, self.noise, times) + disturbed]

        ends = measure(self.count, 12)
        search = Search(self.count, Step(float(np.median(ends)), self.noise))
        search.add(self.count, ends)
        runs = 0
        while (commit := search.next()) is not None:
            if commit in broken:
                search.fail(commit)
            else:
                search.add(commit, measure(commit, 1))
                runs += 1
        return search, culprit, runs, len(search.values) + len(search.failed)


def test_the_culprit_of_five_percent_among_200_commits_is_found_in_95_of_100_searches() -> None:
    found = [World(seed).search() for seed in range(100)]
    verdicts = [(search.verdict(), culprit) for search, culprit, _, _ in found]
    assert sum(verdict.first <= culprit <= verdict.last for verdict, culprit in verdicts) >= 95
    assert sum(verdict.first == verdict.last for verdict, _ in verdicts) >= 85  # else a broken build lies within
    need = least_measurements(200, Step(FIVE_PERCENT, 0.02))
    assert np.mean([runs for _, _, runs, _ in found]) < 5 * need
    assert np.mean([builds for _, _, _, builds in found]) < 2 * math.log2(200)


def test_a_quiet_machine_needs_little_more_than_plain_bisection() -> None:
    search, culprit, runs, builds = World(7, noise=0.002, broken_share=0.0).search()
    assert search.verdict() == Verdict(culprit, culprit, pytest.approx(1.0, abs=0.05))
    assert builds <= 2 + math.ceil(math.log2(200))
    assert runs <= 3 * builds


def test_a_commit_that_cannot_be_built_is_walked_round_and_named_in_the_range() -> None:
    search = Search(8, Step(FIVE_PERCENT, 0.002))
    search.fail(4)
    for commit, level in ((3, 0.0), (5, FIVE_PERCENT)):
        search.add(commit, [level] * 3)
    assert search.next() is None
    verdict = search.verdict()
    assert (verdict.first, verdict.last, verdict.unbuilt) == (4, 5, (4,))


def test_when_nothing_can_be_built_the_search_ends_with_the_whole_range() -> None:
    search = Search(5, Step(FIVE_PERCENT, 0.02))
    for commit in range(1, 5):
        search.fail(commit)
    assert search.next() is None
    assert search.verdict() == Verdict(1, 5, pytest.approx(1.0), (1, 2, 3, 4))


def test_a_search_that_was_killed_goes_on_from_what_was_measured() -> None:
    whole, culprit, _, _ = World(3).search()
    again = Search(whole.count, whole.step)
    for commit, values in whole.values.items():
        again.add(commit, values)
    for commit in whole.failed:
        again.fail(commit)
    assert again.next() is None
    assert again.verdict() == whole.verdict()
    assert whole.verdict().first <= culprit <= whole.verdict().last


def test_an_improvement_is_found_as_a_regression_is() -> None:
    search, culprit, _, _ = World(11, size=-FIVE_PERCENT, broken_share=0.0).search()
    assert search.verdict().first == search.verdict().last == culprit


def test_one_wild_run_does_not_decide_a_side() -> None:
    step = Step(FIVE_PERCENT, 0.02)
    assert step.support([0.0, 0.001, -0.002, 0.5]) < 0
    assert abs(step.support([0.5])) < math.log(99)


def test_the_least_number_of_measurements_grows_with_the_noise_and_the_logarithm_of_the_commits() -> None:
    quiet, loud = (Step(FIVE_PERCENT, noise) for noise in (0.001, 0.05))
    assert least_measurements(256, quiet) == pytest.approx(8.0, rel=0.01)
    assert least_measurements(256, loud) > 20
    assert least_measurements(256, loud) == pytest.approx(2 * least_measurements(16, loud))
