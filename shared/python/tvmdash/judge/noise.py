"""Noise, as known before anything is decided: the scatter of pairs, and the luck by which builds differ."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvmdash.judge.evidence import Evidence, Pairs
from tvmdash.judge.rules import RULES


@dataclass(frozen=True)
class SeriesNoise:
    """Variances of one series: of a pair of processes on a usual night; of luck of generated code and of libraries."""

    pair: float
    code: float
    library: float


@dataclass(frozen=True)
class HomeNoise:
    """The scatter of a home's measurements. factors: by night, how much wider pairs do than usual.

    redrawn: the share of the luck of generated code that another layout draws anew. common: the variance of what all
    series have in common in a step by chance alone; none where both builds were measured at the same time.
    """

    series: Mapping[str, SeriesNoise]
    factors: Mapping[int, float]
    redrawn: float
    common: float = 0.0

    def error(self, name: str, pairs: Pairs, usual: float = 0.0) -> float:
        """The variance of what pairs say, luck left out. usual: that of a pair, where it is larger than was known."""
        expected = max(self.series[name].pair, usual) * self.factors.get(pairs.night, 1.0) ** 2
        own = pairs.std**2 if pairs.count > 2 else 0.0
        return max(expected, own if own > RULES.odd_night * expected else 0.0) / pairs.count + RULES.night_sd**2


def learn(evidence: Mapping[str, Evidence]) -> HomeNoise:
    """Learn scatter and luck of each series, shrunk to what others of its metric on its kind of device show."""
    factors = _factors(evidence)
    pair: dict[str, float] = {}
    kinds: dict[tuple[bool, str], dict[str, Evidence]] = {}
    for name, each in evidence.items():
        kinds.setdefault((each.is_of_device, each.metric), {})[name] = each
    for (of_device, metric), alike in kinds.items():
        prior = RULES.pair_sd_of_device if of_device else RULES.pair_sd
        prior = RULES.pair_sd_of_compiling if metric == "compile_time" else prior
        pair |= _pair_variances(alike, factors, prior**2)
    jumps = _centred(
        {name: list(_jumps(each, pair[name], factors)) for name, each in evidence.items() if not each.is_control}
    )
    same = {name: [jump for jump in own if jump.same_code] for name, own in jumps.items()}
    library = _luck(same, RULES.library_luck)
    other = {
        name: [replace(jump, error=jump.error + 2 * library[name]) for jump in own if not jump.same_code]
        for name, own in jumps.items()
    }
    between, weight = _between_layouts(evidence, pair, factors, RULES.redrawn * RULES.code_luck**2)
    seen = between / weight / RULES.redrawn if weight else 0.0
    code = _luck(other, RULES.code_luck, max(0.0, seen), min(weight, RULES.luck_freedom))
    lucks = (RULES.code_luck**2, RULES.library_luck**2)
    series = {name: SeriesNoise(pair[name], code.get(name, lucks[0]), library.get(name, lucks[1])) for name in evidence}
    typical = float(np.mean([each.code for each in series.values()])) if series else RULES.code_luck**2
    # Again, now that it is known how large luck is.
    between, weight = _between_layouts(evidence, pair, factors, RULES.redrawn * typical)
    total = between / typical + RULES.redrawn * RULES.redrawn_freedom
    return HomeNoise(series, factors, min(1.0, max(0.02, total / (weight + RULES.redrawn_freedom))))


def _factors(evidence: Mapping[str, Evidence]) -> dict[int, float]:
    """By night, the median over the home of how far pairs scatter, against what each series usually does."""
    by_night: dict[int, list[float]] = {}
    for each in evidence.values():
        known = [(pairs.night, math.log(pairs.std**2 + 1e-9)) for pairs in each.pairs if pairs.count > 2]
        usual = float(np.mean([log for _, log in known])) if known else 0.0
        for night, log in known:
            by_night.setdefault(night, []).append(log - usual)
    nights = {night: float(np.median(logs)) * len(logs) / (len(logs) + 4) for night, logs in by_night.items()}
    middle = float(np.median(list(nights.values()))) if nights else 0.0
    return {
        night: math.exp(min(RULES.most_factor, max(RULES.least_factor, (log - middle) / 2)))
        for night, log in nights.items()
    }


def _pair_variances(evidence: Mapping[str, Evidence], factors: Mapping[int, float], prior: float) -> dict[str, float]:
    own = {}
    for name, each in evidence.items():
        parts = [
            (pairs.std / factors.get(pairs.night, 1.0), pairs.count - 1) for pairs in each.pairs if pairs.count > 1
        ]
        usual = statistics.median_low([std for std, _ in parts]) if parts else 0.0
        most = max(RULES.most_pair_sd**2, RULES.odd_night * usual**2)
        squares = sum(min(std**2, most) * freedom for std, freedom in parts)
        own[name] = squares, sum(freedom for _, freedom in parts)
    total, freedom = (sum(part[at] for part in own.values()) for at in (0, 1))
    home = (total + prior * RULES.pair_freedom) / (freedom + RULES.pair_freedom)
    return {
        name: min((value + home * RULES.pair_freedom) / (count + RULES.pair_freedom), _find_most(value, count))
        for name, (value, count) in own.items()
    }


def _find_most(squares: float, freedom: float) -> float:
    """The largest variance that a sum of squares with these degrees of freedom leaves possible, by RULES.beyond_own.

    Source: Wilson & Hilferty 1931.
    """
    part = 2 / (9 * freedom) if freedom else math.inf
    least = 1 - part - RULES.beyond_own * math.sqrt(part)
    return squares / freedom / least**3 if least > 0 else math.inf


@dataclass(frozen=True)
class _Jump:
    """From one build to the next: how far, and the variance of what is not luck in it. place: the next build's."""

    log: float
    error: float
    same_code: bool
    place: int
    is_tonights: bool
    is_open: bool

    def is_striking(self, luck: float) -> bool:
        """Return True where it may be a step on which nothing is decided yet."""
        return self.is_open and self.log**2 > RULES.striking_jump * (self.error + 2 * luck)


@dataclass(frozen=True)
class _BuildMean:
    """All pairs of a build and a base as they were built."""

    build: str
    base: str
    log: float
    error: float


def _means(each: Evidence, pair: float, factors: Mapping[int, float]) -> list[_BuildMean]:
    """Return the mean of each of the series' builds, beside the base with which it was measured most."""
    sums: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for pairs in each.pairs[-each.window :]:
        if pairs.build in each.places and pairs.count > 1 and not pairs.layout and not pairs.base_layout:
            error = pair * factors.get(pairs.night, 1.0) ** 2 / pairs.count + RULES.night_sd**2
            sums.setdefault((pairs.build, pairs.base), []).append((pairs.log, 1 / error))
    best: dict[str, _BuildMean] = {}
    for (build, base), parts in sums.items():
        weight = sum(weight for _, weight in parts)
        mean = _BuildMean(build, base, sum(log * weight for log, weight in parts) / weight, 1 / weight)
        if build not in best or mean.error < best[build].error:
            best[build] = mean
    return list(best.values())


def _jumps(each: Evidence, pair: float, factors: Mapping[int, float]) -> Iterator[_Jump]:
    """Yield the jumps between builds that no told step parts."""
    means = _means(each, pair, factors)
    open_since = sorted({each.places[mean.build] for mean in means})[-RULES.builds :][:1]
    for before, after in itertools.pairwise(means):
        low, high = sorted((each.places[before.build], each.places[after.build]))
        if any(low < place <= high for step in each.steps for place in (step.begin, step.until) if place is not None):
            continue
        code = each.code.get(before.build, 0)
        facts = (
            bool(code) and code == each.code.get(after.build),
            high,
            after.build == each.tonight,
            high >= open_since[0],
        )
        if after.base == before.build:
            yield _Jump(after.log, after.error, *facts)
        elif after.base == before.base:
            yield _Jump(after.log - before.log, after.error + before.error, *facts)


def _centred(jumps: Mapping[str, Sequence[_Jump]]) -> dict[str, list[_Jump]]:
    """Center the jumps to each build on what all series with new code, or all others, did there: that is no luck."""
    together: dict[tuple[int, bool], list[float]] = {}
    for own in jumps.values():
        for jump in own:
            together.setdefault((jump.place, jump.same_code), []).append(jump.log)
    middle = {at: float(np.median(logs)) if len(logs) >= RULES.many else 0.0 for at, logs in together.items()}
    return {
        name: [replace(jump, log=jump.log - middle[jump.place, jump.same_code]) for jump in own]
        for name, own in jumps.items()
    }


def _luck(
    jumps: Mapping[str, Sequence[_Jump]], guess: float, seen: float = 0.0, seen_weight: float = 0.0
) -> dict[str, float]:
    """Return by series the variance of a build's luck, shrunk to that of all of them and this to the guess."""
    every = [jump for own in jumps.values() for jump in own]
    together = Counter(jump.place for jump in every)
    # True steps are among the jumps: few that strike say nothing of luck until they are decided.
    every = [jump for jump in every if together[jump.place] >= RULES.crowd or not jump.is_striking(guess**2)]
    home = guess**2
    prior = guess**2 * RULES.luck_freedom + seen * seen_weight
    # What a jump counts for depends on the luck that is sought, so it is found in rounds.
    for _ in range(4):
        total, weight = _gather(every, home)
        home = max(RULES.least_luck**2, (total + prior) / (weight + RULES.luck_freedom + seen_weight))
    lucks = {}
    for name, own in jumps.items():
        total, weight = _gather([jump for jump in own if not jump.is_tonights and not jump.is_striking(home)], home)
        own_luck = (total + home * RULES.luck_of_home_freedom) / (weight + RULES.luck_of_home_freedom)
        lucks[name] = max(RULES.least_luck**2, own_luck)
    return lucks


def _gather(jumps: Sequence[_Jump], luck: float) -> tuple[float, float]:
    """Sum what jumps say of luck's variance, and what they count for, going by what it is about."""
    total = weight = 0.0
    for jump in jumps:
        expected = jump.error + 2 * luck
        share = (2 * luck / expected) ** 2
        total += share * (min(jump.log**2, RULES.most_jump * expected) - jump.error) / 2
        weight += share
    return total, weight


def _between_layouts(
    evidence: Mapping[str, Evidence], pair: Mapping[str, float], factors: Mapping[int, float], guess: float
) -> tuple[float, float]:
    """Sum what tells of the variance between layouts of one build; also return what it counts for."""
    total = weights = 0.0
    for name, each in evidence.items():
        by_builds: dict[tuple[str, str], list[Pairs]] = {}
        for pairs in each.pairs[-each.window :]:
            # Not as they were built: how far these differ decided what to measure again.
            if pairs.count > 2 and pairs.layout:
                by_builds.setdefault((pairs.build, pairs.base), []).append(pairs)
        for one, other in itertools.chain.from_iterable(map(itertools.pairwise, by_builds.values())):
            sides = (one.layout != other.layout) + (one.base_layout != other.base_layout)
            if sides:
                error = sum(pair[name] * factors.get(each.night, 1.0) ** 2 / each.count for each in (one, other))
                expected = 2 * sides * guess
                weight = (expected / (expected + error)) ** 2
                square = min((one.log - other.log) ** 2, RULES.most_jump * (expected + error))
                total += weight * (square - error) / (2 * sides)
                weights += weight
    return total, weights
