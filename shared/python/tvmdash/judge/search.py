"""Bisection where each look is a noisy measurement: which commit made a series slower, and how sure that is.

A Bayesian search (Horstein 1963, sequential transmission with noiseless feedback; Waeber, Frazier & Henderson 2013):
each commit that could be the culprit has a probability, and the next one to be measured splits it in halves. At a
commit, measurements go on until a sequential test is clear (Wald 1945), because a build costs more than a run. What was
measured counts with its whole likelihood: a doubtful look is a doubtful half, and may be looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tvmdash.judge import RULES, two

LEAST_EACH, MOST_EACH, MOST_OF_ALL = 3, 24, 200
"""Measurements of one commit: before they may count as clear, and before another one tells more (`most_each`)."""
CLEAR = math.log(99.0)
"""Log likelihood ratio at which a commit's test ends: a wrong side in about one of a hundred."""
BUILD_SHARE = 0.12
LEAST_BUILD_NOISE = 0.002
"""Two builds of the same speed differ by this share of the step, at least by this much: layout is a build's own."""
ODD_BUILD = 0.02
"""Share of builds that are expected to be odd: neither of the one speed nor of the other."""
ENDS_LEAST, ENDS_MOST = 12, 240
"""Measurements of the bad end against the good one before the search: at least, and before the step is given up."""
LEAST_NOISE = 1e-4
"""Sizes in bytes have no noise at all."""


@dataclass(frozen=True)
class Step:
    """The step that is searched for: its `size` (difference of logarithms) and one measurement's deviation, `noise`.

    A measurement is ln(elapsed at the commit / elapsed at the good end), both measured in one go in alternation.
    """

    size: float
    noise: float

    @property
    def build_noise(self) -> float:
        """The deviation between builds of one speed."""
        return max(LEAST_BUILD_NOISE, BUILD_SHARE * abs(self.size))

    @property
    def most_each(self) -> int:
        """After how many measurements of one commit no more are made: twice what should make it clear."""
        expected = CLEAR * 2 * self.noise**2 / self.size**2 if self.size else 0.0
        return max(MOST_EACH, min(MOST_OF_ALL, math.ceil(2 * expected)))

    def support(self, values: Sequence[float]) -> float:
        """The log likelihood ratio of values that were measured at one commit: above 0 for the slow side."""
        count = len(values)
        if not count:
            return 0.0
        mean = _held_mean(values, self.noise)
        variance = self.noise**2 / count + self.build_noise**2
        odd = ODD_BUILD * _density(mean - self.size / 2, variance + (2 * self.size) ** 2)
        sides = [(1 - ODD_BUILD) * _density(mean - level, variance) + odd for level in (self.size, 0.0)]
        return math.log(sides[0] / sides[1])


def make_step(ends: Sequence[float], others: Iterable[Sequence[float]] = ()) -> Step:
    """Estimate the step from the measurements of the bad end; the noise from all that was measured, `others` too."""
    noise = _noise([ends, *others])
    return Step(_held_mean(ends, noise), noise)


def _noise(groups: Sequence[Sequence[float]]) -> float:
    """One measurement's deviation within its commit, pooled; outliers are held, as `_held_mean` holds them."""
    away = [np.asarray(values) - np.median(values) for values in groups if len(values) >= LEAST_EACH]
    if not away:
        return LEAST_NOISE
    every = np.concatenate(away)
    core = max(LEAST_NOISE, 1.4826 * float(np.median(np.abs(every))))
    held = np.clip(every, -2.5 * core, 2.5 * core)
    return max(LEAST_NOISE, math.sqrt(float(np.sum(held**2)) / max(1, len(every) - len(away))))


def ends_are_clear(ends: Sequence[float]) -> bool | None:
    """Tell whether the ends differ enough for a search; None while more measurements of the bad end should say."""
    if len(ends) < ENDS_LEAST:
        return None
    series = two.RoundSeries("", {str(at): log for at, log in enumerate(ends)}, "lower")
    found = two.compare_rounds({"": series})[""]
    if found.is_told:
        return True
    is_nothing = abs(found.effect) + found.within < RULES.least
    return False if is_nothing or len(ends) >= ENDS_MOST else None


def _held_mean(values: Sequence[float], noise: float) -> float:
    """Return their mean with outliers held: a disturbed run is no evidence of its size."""
    middle = float(np.median(values))
    return float(np.mean(np.clip(values, middle - 2.5 * noise, middle + 2.5 * noise)))


def _density(away: float, variance: float) -> float:
    return math.exp(-(away**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@dataclass(frozen=True)
class Verdict:
    """The culprit is after commit `first` - 1 and not after commit `last`, with this probability.

    One commit where both are equal. `unbuilt` commits within could not be measured.
    """

    first: int
    last: int
    probability: float
    unbuilt: tuple[int, ...] = ()


@dataclass
class Search:
    """The search over commits 0 (good) to `count` (bad): add what was measured, ask which commit comes next."""

    count: int
    step: Step
    error: float = 0.05
    values: dict[int, list[float]] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)

    def add(self, commit: int, values: Iterable[float]) -> None:
        """Add measurements of one commit."""
        self.values.setdefault(commit, []).extend(values)

    def fail(self, commit: int) -> None:
        """Remember that the commit cannot be built or measured: it says nothing, and is walked round."""
        self.failed.add(commit)

    def posterior(self) -> NDArray[np.float64]:
        """The probability of each of the commits 1 to `count` that it is the first slow one."""
        weight = np.zeros(self.count)
        for commit, values in self.values.items():
            if 0 < commit < self.count:
                weight[:commit] += self.step.support(values)  # slow here: the culprit is this one or one before
        # Only the differences of such logarithms fit into a float.
        weight = np.exp(weight - weight.max())
        return np.asarray(weight / weight.sum())

    def next(self) -> int | None:
        """The commit to be measured next; None when the culprit is known well enough, or nothing could tell more."""
        current = self._unclear()
        if current is not None:
            return current
        verdict = self.verdict()
        if verdict.first == verdict.last and verdict.probability >= 1 - self.error:
            return None
        below = np.concatenate(([0.0], np.cumsum(self.posterior())))
        able = [commit for commit in range(1, self.count) if commit not in self.failed and not self._spent(commit)]
        gains = {commit: min(below[commit], 1 - below[commit]) for commit in able}
        best = max(gains, key=gains.__getitem__, default=None)
        return best if best is not None and gains[best] > self.error / 10 else None

    def _unclear(self) -> int | None:
        """The commit whose test has begun and is not clear yet."""
        for commit, values in self.values.items():
            begun = 0 < commit < self.count and commit not in self.failed
            if begun and (
                len(values) < LEAST_EACH or (abs(self.step.support(values)) < CLEAR and not self._spent(commit))
            ):
                return commit
        return None

    def _spent(self, commit: int) -> bool:
        return len(self.values.get(commit, ())) >= self.step.most_each

    def verdict(self) -> Verdict:
        """The shortest run of commits that holds the culprit with the probability asked for."""
        posterior = self.posterior()
        first, last, best = 0, self.count - 1, 1.0
        total = np.concatenate(([0.0], np.cumsum(posterior)))
        for start in range(self.count):
            # Cumulative sums end a little below 1: without slack the last commit would be out of reach.
            end = int(np.searchsorted(total, total[start] + 1 - self.error - 1e-12))
            if end > self.count:
                break
            probability = float(total[end] - total[start])
            if (end - 1 - start, -probability) < (last - first, -best):
                first, last, best = start, end - 1, probability
        inside = tuple(commit for commit in range(first + 1, last + 1) if commit in self.failed)
        return Verdict(first + 1, last + 1, best, inside)


def least_measurements(count: int, step: Step) -> float:
    """Return the measurements that a search among `count` commits needs on average, by information theory.

    log2(count) bits over what one look can tell at best: the capacity of a channel with two inputs, `size` apart, and
    Gaussian noise (Shannon 1948).
    """
    half, noise = abs(step.size) / 2, step.noise
    grid = np.linspace(-half - 8 * noise, half + 8 * noise, 4001)
    width = grid[1] - grid[0]
    sides = [
        np.exp(-((grid - level) ** 2) / (2 * noise**2)) / (noise * math.sqrt(2 * math.pi)) for level in (half, -half)
    ]
    output = (sides[0] + sides[1]) / 2
    entropy = -float(np.sum(output * np.log2(np.maximum(output, 1e-300))) * width)
    capacity = entropy - 0.5 * math.log2(2 * math.pi * math.e * noise**2)
    return math.log2(count) / max(capacity, 1e-12)
