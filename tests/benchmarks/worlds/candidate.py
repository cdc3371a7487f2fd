"""A first candidate for a judge by odds, for these worlds: `--judge tests.benchmarks.worlds.candidate:Candidate`.

Every pair is a difference of two builds; a build lies where its level is, beside its luck, of which a relink draws a
share anew. Steps of the level are found by generalised least squares, told at 19 to 1, and measured again while the
odds are open. It has no absolute times, no drift and no machine yet, and the product does not use it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.benchmarks.worlds.evidence import Build, Measure, Pairs, SeriesEvidence, Told, Verdict

TOLD, AMBER, QUIET = math.log(19), math.log(0.25), math.log(0.005)
STEPS_A_NIGHT = 0.05
LEAST, LEAST_OF_GROUP = 0.01, 0.005
SLABS = (0.015, 0.05, 0.15)
SLABS_OF_GROUP = (0.006, 0.015, 0.05)
BACK = 0.02
FREEDOM = 6.0
WINDOW, CUTS = 40, 8
ROUND, MOST_ROUNDS = 5, 8


def log_t(x: float, scale: float) -> float:
    half = (FREEDOM + 1) / 2
    return (
        math.lgamma(half)
        - math.lgamma(FREEDOM / 2)
        - 0.5 * math.log(FREEDOM * math.pi)
        - math.log(scale)
        - half * math.log1p((x / scale) ** 2 / FREEDOM)
    )


def log_factor(shift: float, error: float, slabs: Sequence[float], centre: float = 0.0) -> float:
    """How much likelier a step of unknown size makes the shift than none, as a logarithm."""
    of_step = [log_t(shift - centre, math.hypot(error, slab)) for slab in slabs]
    top = max(of_step)
    return top + math.log(sum(math.exp(value - top) for value in of_step) / len(of_step)) - log_t(shift, error)


@dataclass
class Step:
    """A told step of one series: from the order on."""

    begin: int
    incident: str
    size: float
    artifact: str
    is_back: bool = False


@dataclass
class Track:
    """What is kept of one series."""

    steps: list[Step] = field(default_factory=list)
    variance: float = 0.013**2
    luck: float = 0.004**2


@dataclass
class Found:
    """The likeliest step of a series tonight."""

    odds: float
    shift: float
    error: float
    begin: int
    centre: float = 0.0


class Observed:
    """A series' measurements as a linear model."""

    def __init__(self, series: SeriesEvidence, order: Mapping[str, int]) -> None:
        self.series = series
        self.pairs = [pairs for pairs in series.pairs if len(pairs.logs) >= 2][-WINDOW:]
        self.order = order
        self.again: list[Pairs] = []

    @property
    def all(self) -> list[Pairs]:
        return [*self.pairs, *self.again]

    def arrays(self, track: Track, factor: Mapping[str, float], own: frozenset[str], redrawn: float) -> None:
        every = self.all
        nodes: dict[tuple[str, int], int] = {}
        for pairs in every:
            for build in (pairs.build, pairs.base):
                nodes.setdefault((build.artifact, build.layout), len(nodes))
        self.a = np.zeros((len(every), len(nodes)))
        self.y, error = np.zeros(len(every)), np.zeros(len(every))
        for at, pairs in enumerate(every):
            logs = np.asarray(pairs.logs)
            expected = track.variance * factor.get(pairs.night, 1.0) ** 2
            self.y[at] = robust_mean(logs, math.sqrt(expected))
            seen = float(logs.var(ddof=1))
            error[at] = max(expected, seen if seen > 4 * expected else 0.0) / len(logs) + 0.001**2
            self.a[at, nodes[pairs.build.artifact, pairs.build.layout]] += 1
            self.a[at, nodes[pairs.base.artifact, pairs.base.layout]] -= 1
        self.orders = np.array([self.order[name] for name, _ in nodes])
        foreign = sorted({name for name, _ in nodes if name not in own})
        wide = np.array([[float(name == other) for other in foreign] for name, _ in nodes]).reshape(len(nodes), -1)
        offsets = self.a @ wide
        artifacts = {name: at for at, name in enumerate(dict.fromkeys(name for name, _ in nodes))}
        kept = np.zeros((len(every), len(artifacts)))
        for (name, _), at in nodes.items():
            kept[:, artifacts[name]] += self.a[:, at]
        cov = (
            track.luck * (redrawn * self.a @ self.a.T + (1 - redrawn) * kept @ kept.T)
            + np.diag(error)
            + offsets @ offsets.T
        )
        for step in track.steps:
            x = self.column(step.begin)
            cov += np.outer(x, x) * 0.3**2
        self.inverse = np.linalg.inv(cov)
        self.precise = self.inverse @ self.y

    def column(self, begin: int) -> np.ndarray:
        return self.a @ (self.orders >= begin).astype(float)

    def shift(self, begin: int) -> tuple[float, float] | None:
        x = self.column(begin)
        precision = float(x @ self.inverse @ x)
        if precision < 1 / 0.25**2:
            return None
        return float(x @ self.precise) / precision, 1 / math.sqrt(precision)


def robust_mean(logs: np.ndarray, sd: float) -> float:
    """The mean, in which a pair far from the median counts as one at four deviations."""
    middle = float(np.median(logs))
    return float(np.mean(np.clip(logs, middle - 4 * sd, middle + 4 * sd)))


def join(told: Sequence[Told]) -> list[Told]:
    """Points of one incident, told the same night, in one."""
    together: dict[tuple[str, str], list[Told]] = {}
    for each in told:
        together.setdefault((each.decision, each.incident or each.series[0]), []).append(each)
    joined = []
    for group in together.values():
        worst = max(group, key=lambda each: abs(each.effect))
        names = tuple(dict.fromkeys(name for each in group for name in each.series))
        joined.append(
            Told(
                worst.decision,
                names,
                worst.effect,
                worst.low,
                worst.high,
                worst.begin,
                worst.scope if len(names) > 1 else "point",
                worst.incident,
            )
        )
    return joined


def _has_new_code(one: Observed) -> bool:
    """Whether the newest build's generated code is another than the build's before."""
    builds = [pairs.build for pairs in one.pairs]
    before = [build for build in builds if build.artifact != builds[-1].artifact]
    return bool(before and builds[-1].code and before[-1].code and before[-1].code != builds[-1].code)


class Candidate:
    """One home's judge."""

    def __init__(self) -> None:
        self.tracks: dict[str, Track] = {}
        self.open: dict[str, dict[str, Step]] = {}
        self.closed: dict[str, dict[str, Step]] = {}
        self.order: dict[str, int] = {}
        self.causes: dict[str, tuple[int, bool, str]] = {}
        self.now = ""
        self.redrawn = 0.5
        self.directions: dict[str, str] = {}

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        self.now = night
        told = [
            said for series in evidence if series.kind in {"exact", "accuracy"} for said in self._exact(night, series)
        ]
        timed = [series for series in evidence if series.pairs and series.pairs[-1].night == night]
        if timed:
            told += self._timed(night, timed, measure)
        return Verdict(tuple(told), {name: tuple(steps) for name, steps in self.open.items()})

    # exact numbers
    def _exact(self, night: str, series: SeriesEvidence) -> list[Told]:
        values = series.values
        if len(values) < 2 or values[-1].night != night or values[-1].value == values[-2].value:
            return []
        now, before = values[-1], values[-2]
        earlier = [
            value
            for value in values[:-1]
            if value.build.order is not None and now.build.order is not None and value.build.order > now.build.order
        ]
        if earlier:
            return []
        by_build: dict[str, set[float]] = {}
        for value in values:
            by_build.setdefault(value.build.artifact, set()).add(value.value)
        if any(len(found) > 1 for found in by_build.values()):
            return []  # one build gave two values: it is not exact
        effect = now.value / before.value - 1 if before.value else math.inf
        for name, steps in list(self.open.items()):
            if series.series in steps and abs(steps[series.series].size + math.log1p(effect)) < 1e-9:
                del self.open[name]
                return [Told("fixed", (series.series,), effect, effect, effect, now.build.artifact, incident=name)]
        worse = effect > 0 if series.direction != "higher" else effect < 0
        name = f"x{series.series}-{now.build.artifact}"
        if worse:
            self.open[name] = {series.series: Step(0, name, math.log1p(effect), now.build.artifact)}
        return [
            Told(
                "told" if worse else "better",
                (series.series,),
                effect,
                effect,
                effect,
                now.build.artifact,
                incident=name,
            )
        ]

    # times
    def _timed(self, night: str, timed: Sequence[SeriesEvidence], measure: Measure) -> list[Told]:
        self._learn_orders(timed)
        self.directions |= {series.series: series.direction for series in timed}
        own = frozenset(pairs.build.artifact for series in timed for pairs in series.pairs)
        seen = {series.series: Observed(series, self.order) for series in timed}
        self._learn_noise(seen)
        for name, one in seen.items():
            one.arrays(self.tracks[name], self.factor, own, self.redrawn)
        prior = math.log(STEPS_A_NIGHT / max(len(timed), 15))
        told = self._groups(seen, own, measure)
        found = {name: self._best(one, prior) for name, one in seen.items()}
        self._measure(seen, found, own, prior, measure)
        controls = [found[name] for name, one in seen.items() if one.series.is_control and found[name]]
        if controls and all(control.odds >= TOLD for control in controls):
            return told
        for name, one in seen.items():
            best = found[name]
            if best is None or one.series.is_control or abs(math.expm1(best.shift)) < LEAST:
                continue
            if best.odds >= TOLD:
                told += self._tell(one, best)
            elif best.odds >= AMBER:
                told.append(self._said("suspect", (name,), best, self._artifact(best.begin)))
        return join(told)

    def _artifact(self, begin: int) -> str:
        return next(name for name, at in self.order.items() if at == begin)

    def _said(
        self, word: str, names: tuple[str, ...], found: Found, begin: str, scope: str = "point", incident: str = ""
    ) -> Told:
        low, high = (math.expm1(found.shift + side * 2.1 * found.error) for side in (-1, 1))
        return Told(word, names, math.expm1(found.shift), low, high, begin, scope, incident)  # type: ignore[arg-type]

    def _learn_orders(self, timed: Sequence[SeriesEvidence]) -> None:
        builds = {
            build.artifact: build for series in timed for pairs in series.pairs for build in (pairs.base, pairs.build)
        }
        self.order = {
            name: (build.order if build.order is not None else 10**6 + at)
            for at, (name, build) in enumerate(builds.items())
        }

    def _learn_noise(self, seen: Mapping[str, Observed]) -> None:
        own: dict[str, tuple[float, int]] = {}
        by_night: dict[str, list[tuple[str, float]]] = {}
        for name, one in seen.items():
            self.tracks.setdefault(name, Track())
            variances = [
                (pairs.night, float(np.var(pairs.logs, ddof=1)) + 1e-9, len(pairs.logs) - 1)
                for pairs in one.pairs
                if len(pairs.logs) > 2
            ]
            if variances:
                logs = float(np.mean([math.log(value) for _, value, _ in variances]))
                for night, value, _ in variances:
                    by_night.setdefault(night, []).append((name, math.log(value) - logs))
        nights = {
            night: float(np.median([value for _, value in values])) * len(values) / (len(values) + 4)
            for night, values in by_night.items()
        }
        middle = float(np.median(list(nights.values()))) if nights else 0.0
        self.factor = {night: math.exp(min(1.5, max(-0.7, (value - middle) / 2))) for night, value in nights.items()}
        for name, one in seen.items():
            parts = [
                (float(np.var(pairs.logs, ddof=1)) / self.factor.get(pairs.night, 1.0) ** 2, len(pairs.logs) - 1)
                for pairs in one.all
            ]
            freedom = sum(count for _, count in parts)
            own[name] = (sum(min(value, 0.08**2) * count for value, count in parts), freedom)
        total, freedom = (sum(part[at] for part in own.values()) for at in (0, 1))
        home = (total + 0.013**2 * 8) / (freedom + 8)
        for name, (value, count) in own.items():
            self.tracks[name].variance = (value + home * 8) / (count + 8)
        self._learn_luck(seen)
        self._learn_redrawn(seen)

    def _learn_redrawn(self, seen: Mapping[str, Observed]) -> None:
        """Which share of a build's luck a relink draws anew: how far the same two builds differ by layout."""
        shares, weights = [0.5 * 8], [8.0]
        for name, one in seen.items():
            track = self.tracks[name]
            by_builds: dict[tuple[str, str], list[tuple[float, float, tuple[int, int]]]] = {}
            for pairs in one.series.pairs:
                if len(pairs.logs) > 2:
                    error = track.variance * self.factor.get(pairs.night, 1.0) ** 2 / len(pairs.logs)
                    layouts = pairs.build.layout, pairs.base.layout
                    by_builds.setdefault((pairs.build.artifact, pairs.base.artifact), []).append(
                        (float(np.mean(pairs.logs)), error, layouts)
                    )
            for rows in by_builds.values():
                for (a, ea, la), (b, eb, lb) in itertools.pairwise(rows):
                    if la != lb:
                        sides = (la[0] != lb[0]) + (la[1] != lb[1])
                        expected = 2 * sides * track.luck
                        weight = (expected / (expected + ea + eb)) ** 2
                        shares.append(weight * min(4.0, ((a - b) ** 2 - ea - eb) / expected))
                        weights.append(weight)
        self.redrawn = min(1.0, max(0.02, sum(shares) / sum(weights)))

    def _learn_luck(self, seen: Mapping[str, Observed]) -> None:
        sizes: dict[str, list[float]] = {}
        for name, one in seen.items():
            track = self.tracks[name]
            first: dict[str, tuple[float, float, Pairs]] = {}
            for pairs in one.pairs:
                key = pairs.build.artifact
                mean, error = (
                    float(np.mean(pairs.logs)),
                    track.variance * self.factor.get(pairs.night, 1.0) ** 2 / len(pairs.logs),
                )
                first.setdefault(key, (mean, error, pairs))
            rows = list(first.values())
            squares = []
            for (a, ea, pa), (b, eb, pb) in itertools.pairwise(rows):
                told = any(
                    self.order[pa.build.artifact] < step.begin <= self.order[pb.build.artifact] for step in track.steps
                )
                if told:
                    continue
                if pb.base.artifact == pa.build.artifact:
                    squares.append((b * b - eb) / 2)
                elif pa.base.artifact == pb.base.artifact:
                    squares.append(((b - a) ** 2 - ea - eb) / 2)
            sizes[name] = squares
        pooled = sorted(value for squares in sizes.values() for value in squares)
        pooled = pooled[: max(1, int(0.95 * len(pooled)))] if pooled else []
        home = (sum(pooled) * 1.15 + 0.005**2 * 12) / (len(pooled) + 12)
        home = max(home, 0.0015**2)
        for name, squares in sizes.items():
            kept = sorted(squares)[: max(2, int(0.93 * len(squares)))]
            own = sum(kept) * 1.15
            self.tracks[name].luck = max(0.0015**2, (0.6 * own + home * 6) / (0.6 * len(kept) + 6))

    def _cuts(self, one: Observed) -> list[int]:
        orders = sorted({self.order[pairs.build.artifact] for pairs in one.pairs})
        known = {step.begin for step in self.tracks[one.series.series].steps}
        last = self.order[one.pairs[-1].build.artifact]
        first = min(orders)
        return [
            cut
            for cut in orders[-CUTS:]
            if (cut not in known and first < cut <= last)
            or (
                cut <= last
                and cut == first
                and not known
                and one.pairs[0].base.artifact in self.order
                and self.order[one.pairs[0].base.artifact] < cut
                and one.pairs[0].base.artifact in {p.build.artifact for p in one.pairs}
            )
        ]

    def _best(self, one: Observed, prior: float) -> Found | None:
        track, best, weights = self.tracks[one.series.series], None, []
        for begin in self._cuts(one):
            measured = one.shift(begin)
            if measured is None:
                continue
            shift, error = measured
            odds, centre = log_factor(shift, error, SLABS) + prior, 0.0
            for step in track.steps:
                if not step.is_back and step.begin < begin:
                    back = log_factor(shift, error, (max(0.004, 0.25 * abs(step.size)),), -step.size) + math.log(BACK)
                    if back > odds:
                        odds, centre = back, step.size
            weights.append(odds)
            if best is None or odds > best.odds:
                best = Found(odds, shift, error, begin, centre)
        if best is not None and weights:
            top = max(weights)
            best.odds = top + math.log(sum(math.exp(value - top) for value in weights))
        return best

    def _measure(
        self,
        seen: Mapping[str, Observed],
        found: dict[str, Found | None],
        own: frozenset[str],
        prior: float,
        measure: Measure,
    ) -> None:
        spent: dict[str, int] = {}
        while True:
            unsure = [
                name for name, best in found.items()
                if best is not None and spent.get(name, 0) < MOST_ROUNDS and abs(best.shift) >= 0.7 * LEAST
                and (QUIET < best.odds < TOLD + 1.5 or (best.odds >= TOLD and not spent.get(name)))
            ]  # fmt: skip
            if not unsure:
                return
            name = max(unsure, key=lambda name: found[name].odds - 2.0 * spent.get(name, 0))  # type: ignore[union-attr]
            best, one = found[name], seen[name]
            assert best is not None
            number = spent[name] = spent.get(name, 0) + 1
            if not self._again(one, best, own, measure, number):
                spent[name] = MOST_ROUNDS
                continue
            found[name] = self._best(one, prior)

    def _again(self, one: Observed, best: Found, own: frozenset[str], measure: Measure, number: int) -> bool:
        """Measure the series' newest build in turn with one before the step."""
        name, build = one.series.series, one.pairs[-1].build
        older = {
            pairs.build.artifact: pairs.build for pairs in one.pairs if self.order[pairs.build.artifact] < best.begin
        }
        older |= {
            pairs.base.artifact: pairs.base
            for pairs in one.pairs
            if pairs.base.artifact in own and self.order[pairs.base.artifact] < best.begin
        }
        since = max((step.begin for step in self.tracks[name].steps if step.begin < best.begin), default=-1)
        choices = [old for old in older.values() if self.order[old.artifact] >= since][-4:] or list(older.values())[-1:]
        if not choices:
            return False
        base = choices[number % len(choices)]
        again = measure(
            name,
            Build(build.artifact, build.order, build.code),
            Build(base.artifact, base.order, base.code),
            ROUND,
            relinked=True,
        )
        if again is None or len(again.logs) < 2:
            return False
        one.again.append(again)
        one.arrays(self.tracks[name], self.factor, own, self.redrawn)
        return True

    def _list_groups(self, seen: Mapping[str, Observed]) -> list[tuple[str, list[str], float]]:
        """The home, each experiment, and what has new code; each with how likely a step of all of it is."""
        experiments: dict[str, list[str]] = {}
        for name, one in seen.items():
            if not one.series.is_control:
                experiments.setdefault(one.series.experiment, []).append(name)
        every = [name for names in experiments.values() for name in names]
        groups = [("home", every, 0.02)]
        groups += [("experiment", names, 0.02 / len(experiments)) for names in experiments.values()]
        changed = [name for name in every if _has_new_code(seen[name])]
        if len(changed) < 0.6 * len(every):
            groups.append(("code", changed, 0.05))
        return [(scope, names, prior) for scope, names, prior in groups if len(names) >= 3]

    def _groups(self, seen: Mapping[str, Observed], own: frozenset[str], measure: Measure) -> list[Told]:
        """Steps that many series share."""
        told: list[Told] = []
        for scope, names, prior in self._list_groups(seen):
            tried: set[str] = set()
            best = self._best_of_group(names, seen, prior)
            while best is not None and QUIET < best.odds < TOLD and abs(best.shift) >= 0.6 * LEAST_OF_GROUP:
                more = [name for name in names if name not in tried][:5]
                measured = [self._again(seen[name], best, own, measure, len(tried)) for name in more]
                if not any(measured):
                    break
                tried |= set(more)
                best = self._best_of_group(names, seen, prior)
            if best is None or best.odds < TOLD or abs(best.shift) < LEAST_OF_GROUP:
                continue
            members = self._members(names, seen, best)
            artifact = self._artifact(best.begin)
            back = self._close(members, best)
            if back:
                told.append(self._said("fixed", tuple(members), best, artifact, scope, back))
            else:
                told += self._open(members, best, artifact, scope)
            for name in members:
                seen[name].arrays(self.tracks[name], self.factor, own, self.redrawn)
        return told

    def _sign(self, name: str) -> int:
        return -1 if self.directions.get(name) == "higher" else 1

    def _members(self, names: Sequence[str], seen: Mapping[str, Observed], found: Found) -> list[str]:
        """Those that do not clearly stay behind."""
        members = []
        for name in names:
            measured = seen[name].shift(found.begin)
            if measured is not None:
                shift, error = self._sign(name) * measured[0], measured[1]
                stays = abs(shift - found.shift) > 2.5 * error and abs(shift) < 0.4 * abs(found.shift)
                if not stays and shift * found.shift > -2 * error * abs(found.shift):
                    members.append(name)
        return members

    def _best_of_group(self, names: Sequence[str], seen: Mapping[str, Observed], prior: float) -> Found | None:
        best: Found | None = None
        for begin in sorted({cut for name in names for cut in self._cuts(seen[name])})[-CUTS:]:
            rows = [
                (self._sign(name) * measured[0], measured[1])
                for name in names
                if begin in self._cuts(seen[name]) and (measured := seen[name].shift(begin))
            ]
            if len(rows) < max(3, 0.6 * len(names)):
                continue
            shifts, errors = (np.array(part) for part in zip(*rows, strict=True))
            order = np.argsort(shifts)
            cut = max(1, len(rows) // 10) if len(rows) > 4 else 0
            keep = order[cut : len(rows) - cut]
            weights = 1 / errors[keep] ** 2
            shift = float((weights * shifts[keep]).sum() / weights.sum())
            spread = math.sqrt(
                float((weights * (shifts[keep] - shift) ** 2).sum() / weights.sum()) / max(1, len(keep) - 1)
            )
            error = max(math.sqrt(1 / float(weights.sum())), spread) * 1.1 + 0.0003
            agree = float(np.mean(np.sign(shifts) == np.sign(shift)))
            odds = log_factor(shift, error, SLABS_OF_GROUP) + math.log(prior)
            if agree >= 0.7 and (best is None or odds > best.odds):
                best = Found(odds, shift, error, begin)
        return best

    def _close(self, names: Sequence[str], found: Found) -> str:
        for incident, steps in list(self.open.items()):
            size = float(np.mean([step.size for step in steps.values()]))
            if len(set(names) & set(steps)) >= 0.6 * len(steps) and abs(found.shift + size) < max(
                0.35 * abs(size), 2.5 * found.error
            ):
                for name in names:
                    self._mark_back(name, incident, found)
                self.closed[incident] = self.open.pop(incident)
                return incident
        return ""

    def _mark_back(self, name: str, incident: str, found: Found) -> None:
        track = self.tracks[name]
        for step in track.steps:
            if step.incident == incident:
                step.is_back = True
        track.steps.append(Step(found.begin, incident, found.shift, self._artifact(found.begin), is_back=True))

    def _open(self, names: Sequence[str], found: Found, artifact: str, scope: str, tonight: bool = True) -> list[Told]:
        worse = found.shift * (self._sign(names[0]) if scope == "point" else 1) > 0
        incident, is_new = self._incident(found, worse, artifact)
        for name in names:
            step = Step(found.begin, incident, found.shift, artifact, is_back=not worse)
            self.tracks[name].steps.append(step)
            if worse:
                self.open.setdefault(incident, {})[name] = step
        return (
            [self._said("told" if worse else "better", tuple(names), found, artifact, scope, incident)]
            if is_new
            else []
        )

    def _incident(self, found: Found, worse: bool, artifact: str) -> tuple[str, bool]:
        """That of the build, or of one beside it, in the same way; whether it is of tonight."""
        orders = sorted(set(self.order.values()))
        place = orders.index(found.begin)
        near = {orders[at] for at in (place - 1, place, place + 1) if 0 <= at < len(orders)}
        for name, (begin, way, since) in self.causes.items():
            if way == worse and begin in near and (since == self.now or begin == found.begin or name in self.open):
                return name, since == self.now
        name = f"{'i' if worse else 'b'}{artifact}"
        self.causes[name] = found.begin, worse, self.now
        return name, True

    def _tell(self, one: Observed, found: Found) -> list[Told]:
        name, artifact = one.series.series, self._artifact(found.begin)
        for incident, steps in list(self.open.items()):
            if name in steps and (found.centre or abs(found.shift + steps[name].size) < 0.4 * abs(steps[name].size)):
                self._mark_back(name, incident, found)
                del steps[name]
                if not steps:
                    del self.open[incident]
                return [self._said("fixed", (name,), found, artifact, "point", incident)]
        return self._open([name], found, artifact, "point")
