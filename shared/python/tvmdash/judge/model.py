"""One series as a linear model: measurements are differences of builds, steps are columns; and the odds of a step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tvmdash.judge.evidence import Evidence, KnownStep, Pairs
from tvmdash.judge.noise import HomeNoise
from tvmdash.judge.rules import RULES

FloatArray = npt.NDArray[np.float64]


def _log_t(x: float, scale: float, freedom: float) -> float:
    """The logarithm of the density of Student's t with the standard deviation `scale`, without what all have."""
    scale *= math.sqrt(1 - 2 / freedom)
    return -math.log(scale) - (freedom + 1) / 2 * math.log1p((x / scale) ** 2 / freedom)


def log_factor(
    shift: float, error: float, slabs: Sequence[float], centre: float = 0.0, freedom: float = RULES.freedom
) -> float:
    """The logarithm of the Bayes factor of a step around `centre` against none, for a shift with its standard error.

    A step of unknown size is a mixture of slabs around the centre (spike and slab, Mitchell & Beauchamp 1988).
    freedom: how heavy the tails of the error are, as degrees of freedom of Student's t.
    """
    parts = [_log_t(shift - centre, math.hypot(error, slab), freedom) for slab in slabs]
    return add_logs(parts) - math.log(len(parts)) - _log_t(shift, error, freedom)


def factors_of_sizes(shifts: FloatArray, errors: FloatArray, freedoms: FloatArray, sizes: FloatArray) -> FloatArray:
    """By size and series, the logarithm of how much likelier a step of about that size makes the shift than none."""
    wide = np.hypot(errors, RULES.alike * sizes[:, None])
    return _logs_t(shifts - sizes[:, None], wide, freedoms) - _logs_t(shifts, errors, freedoms)


def _logs_t(x: FloatArray, scale: FloatArray, freedoms: FloatArray) -> FloatArray:
    scale = scale * np.sqrt(1 - 2 / freedoms)
    return np.asarray(-np.log(scale) - (freedoms + 1) / 2 * np.log1p((x / scale) ** 2 / freedoms))


def log_of_none(of_sizes: FloatArray, sizes: FloatArray, common: float) -> float:
    """The logarithm of how likely no step makes what was seen, where chance moves all series together by `common`.

    of_sizes: by size, the logarithm of how much likelier a step of it makes that than no movement at all.
    """
    order = np.argsort(sizes)
    edges = (sizes[order][1:] + sizes[order][:-1]) / 2
    below = np.array([0.0, *(0.5 * (1 + math.erf(edge / common / math.sqrt(2))) for edge in edges), 1.0])
    weights = np.diff(below)
    middle = int(np.searchsorted(sizes[order], 0.0))
    still = weights[middle - 1 : middle + 1].sum() / 2  # nearest to 0 on either side: half of that is no movement
    weights[middle - 1 : middle + 1] /= 2
    terms = of_sizes[order] + np.log(np.maximum(weights, 1e-300))
    return float(np.logaddexp.reduce([math.log(max(still, 1e-300)), *terms]))


def add_logs(logs: Sequence[float]) -> float:
    """Return the logarithm of the sum."""
    top = max(logs)
    return top + math.log(sum(math.exp(log - top) for log in logs))


@dataclass(frozen=True)
class FoundStep:
    """The likeliest step: log odds, its shift (log) and standard error, the place of the first build that has it."""

    odds: float
    shift: float
    error: float
    begin: int
    centre: float = 0.0

    @property
    def effect(self) -> float:
        """The shift as a fraction."""
        return math.expm1(self.shift)


class Shift(NamedTuple):
    """The distance of builds from those before (log), its standard error, and the degrees of freedom of that."""

    log: float
    error: float
    freedom: float


def find_freedom(kurtosis: float) -> float:
    """The degrees of freedom of Student's t with this excess kurtosis, as far as the rules let tails go."""
    return min(RULES.most_freedom, max(RULES.least_freedom, 4 + 6 / kurtosis if kurtosis else math.inf))


def log_of_any(measured: Shift) -> float:
    """The logarithm of how much likelier a step of any size makes what was measured than none."""
    return log_factor(measured.log, measured.error, RULES.slabs, 0.0, measured.freedom)


def log_of_size(measured: Shift, size: float) -> float:
    """The logarithm of how much likelier a step of about that size makes what was measured than none."""
    slab = max(RULES.least_slab, RULES.alike * abs(size))
    return log_factor(measured.log, measured.error, (slab,), size, measured.freedom)


class SeriesModel:
    """A series' measurements with their covariance."""

    def __init__(self, name: str, evidence: Evidence, noise: HomeNoise, again: Sequence[Pairs] = ()) -> None:
        self.name, self.evidence, self.noise, self.again = name, evidence, noise, tuple(again)
        self.pairs = (*evidence.pairs[-evidence.window :], *again)
        nodes: dict[tuple[str, int], int] = {}
        for pairs in self.pairs:
            nodes.setdefault((pairs.build, pairs.layout), len(nodes))
            nodes.setdefault((pairs.base, pairs.base_layout), len(nodes))
        self._nodes = list(nodes)
        self._a = np.zeros((len(self.pairs), len(nodes)))
        for at, pairs in enumerate(self.pairs):
            self._a[at, nodes[pairs.build, pairs.layout]] += 1
            self._a[at, nodes[pairs.base, pairs.base_layout]] -= 1
        self._usual = self._learn_from_again()
        self._places = np.array([evidence.places.get(build, -1) for build, _ in self._nodes])
        self._y = np.array([pairs.log for pairs in self.pairs])
        self._inverse = np.linalg.inv(self._covariance())
        self._precise = self._inverse @ self._y
        # The judge asks for the same few cuts again and again.
        self._shifts: dict[int, Shift | None] = {}

    def _learn_from_again(self) -> float:
        """The variance of a pair, as what was measured again shows it: pairs of a young home scatter as they will."""
        known = RULES.pair_freedom + sum(pairs.count - 1 for pairs in self.evidence.pairs[-self.evidence.window :])
        more = sum(pairs.count - 1 for pairs in self.again)
        squares = sum((pairs.count - 1) * pairs.std**2 for pairs in self.again)
        return (self.noise.series[self.name].pair * known + squares) / (known + more)

    def with_more(self, pairs: Pairs) -> SeriesModel:
        return SeriesModel(self.name, self.evidence, self.noise, (*self.again, pairs))

    def _covariance(self) -> FloatArray:
        own, redrawn = self.noise.series[self.name], self.noise.redrawn
        builds = [build for build, _ in self._nodes]
        codes = [self.evidence.code.get(build) or build for build in builds]
        children = [
            (code, 0) if not layout else (build, layout)
            for code, (build, layout) in zip(codes, self._nodes, strict=True)
        ]
        self._errors = np.diag([self.noise.error(self.name, pairs, self._usual) for pairs in self.pairs])
        self._lucks = [
            math.sqrt(own.code * (1 - redrawn)) * self._loads(codes),
            math.sqrt(own.code * redrawn) * self._loads(children),
            math.sqrt(own.library) * self._loads(builds),
        ]
        foreign = self._loads([build if build not in self.evidence.places else None for build in builds])
        self._luckless = self._errors + foreign @ foreign.T
        covariance = self._luckless + sum(loads @ loads.T for loads in self._lucks)
        for step in self.evidence.steps:
            column = self._column(step.begin)
            if step.until is not None:
                column = column - self._column(step.until)
            covariance += np.outer(column, column) * RULES.known_step**2
        return np.asarray(covariance)

    def _loads(self, keys: Sequence[object]) -> FloatArray:
        """Mark, by measurement and level, where each of `keys`, one a node, has a level of variance 1."""
        numbers = {key: at for at, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
        gathered = np.zeros((len(keys), len(numbers)))
        for at, key in enumerate(keys):
            if key is not None:
                gathered[at, numbers[key]] = 1.0
        return np.asarray(self._a @ gathered)

    def _column(self, begin: int) -> FloatArray:
        return np.asarray(self._a @ (self._places >= begin).astype(float))

    def shift(self, begin: int) -> Shift | None:
        """Estimate how far the builds from `begin` on lie from those before; None where nothing says so."""
        if begin not in self._shifts:
            self._shifts[begin] = self._shift(begin)
        return self._shifts[begin]

    def _shift(self, begin: int) -> Shift | None:
        column = self._column(begin)
        weights = self._inverse @ column
        precision = float(column @ weights)
        if precision < 1 / RULES.joined**2:
            return None
        parts = np.concatenate([weights @ loads for loads in self._lucks]) / precision
        freedom = find_freedom(RULES.kurtosis_of_luck * float((parts**4).sum()) * precision**2)
        return Shift(float(column @ self._precise) / precision, 1 / math.sqrt(precision), freedom)

    def error_of_pairs(self, begin: int) -> float:
        """The standard error that the shift would have if builds had no luck: what more pairs would narrow."""
        column = self._column(begin)
        precision = float(column @ np.linalg.inv(self._luckless) @ column)
        return 1 / math.sqrt(precision) if precision > 0 else math.inf

    def count_pairs(self, begin: int) -> int:
        """Count the pairs that lie across that step."""
        column = self._column(begin)
        return sum(pairs.count for pairs, crossing in zip(self.pairs, column, strict=True) if crossing)

    def cuts(self) -> list[int]:
        """List where a step may have begun that is not known: at the last builds up to tonight's."""
        places = self.evidence.places
        own = sorted({places[pairs.build] for pairs in self.pairs if pairs.build in places})
        known = {step.begin for step in self.evidence.steps}
        bases = [places[pairs.base] for pairs in self.pairs if pairs.base in places]
        first = min([*own, *bases], default=0)
        return [cut for cut in own[-RULES.builds :] if first < cut <= self.evidence.place and cut not in known]

    def best(self, prior: float) -> FoundStep | None:
        """Return the step that fits best, with the odds of any; `prior`: the log odds of one at one build."""
        found: list[FoundStep] = []
        for begin in self.cuts():
            measured = self.shift(begin)
            if measured is None:
                continue
            odds, centre = log_of_any(measured) + prior + self._log_share(begin), 0.0
            for step in self.evidence.steps:
                if step.incident and step.begin < begin:
                    back = log_of_size(measured, -step.size) + RULES.log("back_again")
                    odds, centre = (back, step.size) if back > odds else (odds, centre)
            found.append(FoundStep(odds, measured.log, measured.error, begin, centre))
        if not found:
            return None
        # By fit, not by odds: these know how heavy tails are, and tails differ from build to build.
        best = max(found, key=lambda each: (each.shift / each.error) ** 2 / 2 + self._log_share(each.begin))
        return replace(best, odds=add_logs([each.odds for each in found]))

    def find_still(self, step: KnownStep, prior: float) -> Shift | None:
        """Return the shift that is left where a step was taken back, if that is no end of it after all; else None.

        It is no end where about its size is far likelier than about nothing, or where a step is told that is larger
        than what an end may leave.
        """
        measured = self.shift(step.until) if step.until in self.cuts() else None
        if measured is None:
            return None
        slab = max(RULES.least_slab, RULES.alike * abs(step.size))
        back = log_factor(measured.log, measured.error, (slab,), 0.0, measured.freedom)
        is_left = log_of_any(measured) + prior > RULES.log("told") and measured.log / step.size > RULES.back
        return measured if is_left or log_of_size(measured, step.size) - back > RULES.log("told") else None

    def _log_share(self, begin: int) -> float:
        """Return the log of how much likelier than at any build a step begins at this one, by its generated code."""
        code = self.evidence.code
        ordered = sorted(self.evidence.places, key=self.evidence.places.__getitem__)
        at = next(at for at, build in enumerate(ordered) if self.evidence.places[build] == begin)
        before = code.get(ordered[at - 1], 0) if at else 0
        if not before or not code.get(ordered[at]):
            return 0.0
        return math.log(RULES.same_code if before == code[ordered[at]] else RULES.other_code)

    def older(self, begin: int) -> list[str]:
        """Builds before a step that may be measured again, the last ones first of the level that tonight left."""
        places = self.evidence.places
        builds = dict.fromkeys(
            build for pairs in self.pairs for build in (pairs.build, pairs.base) if places.get(build, begin) < begin
        )
        steps, code = self.evidence.steps, self.evidence.code
        since = max((step.begin for step in steps if step.begin < begin and step.until is None), default=-1)
        gone = [range(step.begin, step.until) for step in steps if step.until is not None]
        of_level = [
            build for build in builds if places[build] >= since and not any(places[build] in each for each in gone)
        ]
        ordered = sorted(of_level or builds, key=places.__getitem__)
        own = code.get(self.evidence.tonight, 0)
        if ordered and own and code.get(ordered[-1], own) != own:  # what runs tonight's code tells nothing of that code
            ordered = [build for build in ordered if code.get(build, 0) != own]
        return ordered[-4:][::-1]

    def difference(self, new: str, old: str) -> Shift | None:
        """Estimate how far two builds lie from each other, whatever lies between; None where no pairs join them.

        Each build has a level of its own, so that a step anywhere is no error; the luck of the two is in it.
        """
        builds = list(dict.fromkeys(build for build, _ in self._nodes))
        if new not in builds or old not in builds:
            return None
        if new == old:
            return Shift(0.0, 0.0, RULES.most_freedom)
        others = [build for build in builds if build not in {new, old}]
        wide = self._loads([build if build in others else None for build, _ in self._nodes])
        own = self.noise.series[self.name]
        inverse = np.linalg.inv(self._errors + wide @ wide.T)
        column = self._a @ np.array([float(build == new) for build, _ in self._nodes])
        precision = float(column @ inverse @ column)
        if precision < 1 / RULES.joined**2:
            return None
        codes = [self.evidence.code.get(build, 0) for build in (new, old)]
        luck = 2 * (own.library + (0.0 if codes[0] and codes[0] == codes[1] else own.code))
        error = math.sqrt(1 / precision + luck)
        freedom = find_freedom(RULES.kurtosis_of_luck * (luck / error**2) ** 2 / 2)
        return Shift(float(column @ inverse @ self._y) / precision, error, freedom)

    def tell(self, step: float, prior: float) -> FoundStep | None:
        """Return the step found if tonight's build were slower by `step` (log); None where nothing joins it."""
        cuts = self.cuts()
        measured = self.shift(cuts[-1]) if cuts and cuts[-1] == self.evidence.place else None
        if measured is None:
            return None
        measured = measured._replace(log=measured.log + step)
        odds = log_of_any(measured) + prior + self._log_share(cuts[-1])
        return FoundStep(odds, measured.log, measured.error, cuts[-1])

    def visible(self, prior: float) -> float:
        """The step at tonight's build that would be suspected or told in nine of ten cases, a fraction, or infinite."""
        least = self.reach(prior, RULES.log("suspected"))
        return math.inf if least is None else math.expm1(least.log + RULES.nine_of_ten * least.error)

    def reach(self, prior: float, odds: float) -> Shift | None:
        """The least step at tonight's build that comes to these log odds; None where nothing joins it."""
        cuts = self.cuts()
        measured = self.shift(cuts[-1]) if cuts else None
        if measured is None:
            return None
        low, high = math.log1p(RULES.least), 4.0
        odds -= prior + self._log_share(cuts[-1])
        while high - low > 1e-4:
            middle = (low + high) / 2
            is_short = log_of_any(measured._replace(log=middle)) < odds
            low, high = (middle, high) if is_short else (low, middle)
        return measured._replace(log=high)


def locate(pairs: Sequence[Pairs], anchor: str) -> dict[str, float]:
    """Locate each build that pairs join with `anchor` against it (log): weighted least squares, no luck in it."""
    beside: dict[str, set[str]] = {}
    for each in pairs:
        beside.setdefault(each.build, set()).add(each.base)
        beside.setdefault(each.base, set()).add(each.build)
    numbers, left = {anchor: 0}, [anchor]
    while left:
        more = [build for build in beside.get(left.pop(), ()) if build not in numbers]
        numbers |= {build: len(numbers) + at for at, build in enumerate(more)}
        left += more
    known = [each for each in pairs if each.build in numbers and each.build != each.base]
    new, old = (np.array([numbers[getattr(each, side)] for each in known], int) for side in ("build", "base"))
    counts, logs = np.array([each.count for each in known], float), np.array([each.log for each in known])
    net, pulled = np.zeros((len(numbers), len(numbers))), np.zeros(len(numbers))
    for one, other, sign in ((new, new, 1), (old, old, 1), (new, old, -1), (old, new, -1)):
        np.add.at(net, (one, other), sign * counts)
    np.add.at(pulled, new, counts * logs)
    np.add.at(pulled, old, -counts * logs)
    levels = np.zeros(len(numbers))
    levels[1:] = np.linalg.solve(net[1:, 1:], pulled[1:])
    return {build: float(levels[at]) for build, at in numbers.items()}
