"""The product's judge in these worlds: `--judge tests.benchmarks.worlds.product:Product`, or `:AsBuilt`.

What the product keeps in its ledger is kept here: the steps that were told, and which of them are open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.benchmarks.worlds.evidence import Measure, SeriesEvidence, Told, Verdict
from tests.benchmarks.worlds.evidence import Pairs as Measured
from tvmdash.judge import Evidence, KnownStep, Pairs
from tvmdash.judge.chance import Nulls, chance_of, find_nulls
from tvmdash.judge.home import Change, Decision, Judgement, judge
from tvmdash.judge.model import FoundStep

_WORDS = {
    Decision.TOLD: "told", Decision.BETTER: "better", Decision.FIXED: "fixed", Decision.SUSPECTED: "suspect",
    Decision.REOPENED: "told", Decision.WITHDRAWN: "withdrawn",
}  # fmt: skip


@dataclass
class _Incident:
    """One that was opened: its first build's place, and the series that are in it."""

    begin: int
    size: float
    series: set[str]


class Product:
    """One home's judge, as the product measures again: children of the builds, their code linked elsewhere."""

    relinked = True

    def __init__(self) -> None:
        self.steps: dict[str, list[KnownStep]] = {}
        self.open: dict[str, _Incident] = {}
        self.closed: dict[str, _Incident] = {}
        self.places: dict[str, int] = {}
        self.own: set[str] = set()
        self.nights: dict[str, int] = {}
        self.exact = _Exact()
        self.nulls = Nulls(), Nulls()
        self.kept: dict[int, tuple[Measured, Pairs]] = {}

    def night(self, night: str, evidence: Sequence[SeriesEvidence], measure: Measure) -> Verdict:
        self.nights.setdefault(night, len(self.nights))
        told = [said for each in evidence if each.kind in {"exact", "accuracy"} for said in self.exact.of(night, each)]
        timed = {each.series: each for each in evidence if each.pairs and each.pairs[-1].night == night}
        undecided: tuple[str, ...] = ()
        by_chance: float | None = None
        if timed:
            self._learn_places(timed.values())
            given = {name: self._evidence(each) for name, each in timed.items()}
            judgement = judge(given, _Ask(self, timed, measure))
            told += self._tell(judgement)
            undecided = tuple(sorted(judgement.undecided))
            by_chance = self._expect(judgement, self.nights[night])
        still = {name: tuple(sorted(incident.series)) for name, incident in self.open.items()}
        return Verdict(tuple(told), still | self.exact.open, undecided, by_chance)

    def _expect(self, judgement: Judgement, night: int) -> float | None:
        """How many series are told tonight by chance, as far as earlier nights say; tonight's nulls are kept."""
        widths = [nulls.width for nulls in self.nulls if nulls.width is not None]
        models = [model for model in judgement.models.values() if not model.evidence.is_control]
        told = {name for change in judgement.changes for name in change.series if change.decision != "suspected"}
        tonight = find_nulls([model for model in models if model.name not in told], night)
        self.nulls = self.nulls[0] + tonight[0], self.nulls[1] + tonight[1]
        if not widths:
            return None
        return sum(chance_of(model, judgement.prior, max(widths)) for model in models)

    def _learn_places(self, timed: Iterable[SeriesEvidence]) -> None:
        every = list(timed)
        builds = [build for each in every for pairs in each.pairs for build in (pairs.base, pairs.build)]
        for at, build in enumerate({build.artifact: build for build in builds}.values()):
            self.places.setdefault(build.artifact, 10**6 + at if build.order is None else build.order)
        self.own |= {pairs.build.artifact for each in every for pairs in each.pairs}

    def _evidence(self, each: SeriesEvidence) -> Evidence:
        builds = {build.artifact: build for pairs in each.pairs for build in (pairs.base, pairs.build)}
        return Evidence(
            each.experiment,
            tuple(self.pairs(pairs) for pairs in each.pairs),
            {name: self.places[name] for name in builds if name in self.own},
            each.pairs[-1].build.artifact,
            {name: hash(build.code) for name, build in builds.items()},
            {"lower": 1, "higher": -1, "none": 0}[each.direction],
            each.is_control,
            steps=tuple(self.steps.get(each.series, ())),
        )

    def pairs(self, measured: Measured) -> Pairs:
        """As the product keeps them."""
        if id(measured) not in self.kept:
            self.kept[id(measured)] = measured, self._keep_pairs(measured)
        return self.kept[id(measured)][1]

    def _keep_pairs(self, measured: Measured) -> Pairs:
        logs = np.array(measured.logs)
        std = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
        return Pairs(
            self.nights[measured.night], measured.build.artifact, measured.base.artifact, float(logs.mean()), std,
            len(logs), measured.build.layout, measured.base.layout,
        )  # fmt: skip

    def _tell(self, judgement: Judgement) -> list[Told]:
        """What is told, points with one cause in one; and what is known from here on."""
        joined: dict[tuple[Decision, str], list[Change]] = {}
        news: set[str] = set()
        for change in judgement.changes:
            incident = change.incident
            if change.decision == Decision.TOLD:
                incident = self._incident(change, news, judgement)
            elif change.decision == Decision.BETTER:
                incident = f"b{change.scope}{change.found.begin}"
            elif change.decision == Decision.SUSPECTED:
                incident = change.series[0]
            joined.setdefault((change.decision, incident), []).append(change)
        told = []
        for (decision, incident), changes in joined.items():
            for change in changes:
                self._keep(change, incident)
            if decision not in {Decision.TOLD, Decision.REOPENED} or incident in news:
                worst = max(changes, key=lambda change: abs(change.found.shift))
                names = tuple(dict.fromkeys(name for change in changes for name in change.series))
                scope = worst.scope.value if len(names) > 1 else "point"
                first = next(name for name, place in self.places.items() if place == worst.found.begin)
                numbers = (worst.found.effect, *worst.interval)
                told.append(Told(_WORDS[decision], names, *numbers, first, scope, incident))  # type: ignore[arg-type]
        return told

    def _incident(self, change: Change, news: set[str], judgement: Judgement) -> str:
        """That of the same build, or of the one before that the series missed; else a new one."""
        places = sorted(self.places.values())
        at = places.index(change.found.begin)
        near = set(places[max(0, at - 1) : at + 2])
        for name, incident in self.open.items():
            measured = {self.places[pairs.build] for of in change.series for pairs in judgement.models[of].pairs}
            same = incident.begin == change.found.begin
            missed = incident.begin in near and incident.begin not in measured
            if (same or missed) and 0.6 < incident.size / change.found.shift < 1.65:
                incident.series |= set(change.series)
                return name
        name = f"{change.scope[0]}{change.found.begin}-{len(self.nights)}"
        self.open[name] = _Incident(change.found.begin, change.found.shift, set(change.series))
        news.add(name)
        return name

    def _keep(self, change: Change, incident: str) -> None:
        if change.decision == Decision.SUSPECTED:
            return
        if change.decision == Decision.REOPENED:
            self._reopen(change)
            return
        for name in change.series:
            steps = self.steps.setdefault(name, [])
            size = change.of(name).shift
            if change.decision in {Decision.FIXED, Decision.WITHDRAWN}:
                self._close(steps, incident, change.found)
                if incident in self.open:
                    self.open[incident].series.discard(name)
                continue
            if all(step.begin != change.found.begin for step in steps):
                steps.append(KnownStep(change.found.begin, size, incident if change.decision == Decision.TOLD else ""))
        if incident in self.open and not self.open[incident].series:
            self.closed[incident] = self.open.pop(incident)

    @staticmethod
    def _close(steps: list[KnownStep], incident: str, found: FoundStep) -> None:
        """End the incident's step; where all that came since is over with it, that as well."""
        (first,) = (at for at, step in enumerate(steps) if step.incident == incident)
        between = [at for at in range(first, len(steps)) if steps[at].until is None]
        left = abs(found.shift + sum(steps[at].size for at in between))
        for at in between if left < abs(found.shift + steps[first].size) else [first]:
            steps[at] = replace(steps[at], incident="", until=found.begin, ended=incident if at == first else "")

    def _reopen(self, change: Change) -> None:
        (name,) = change.series
        self.open.setdefault(change.incident, self.closed.get(change.incident)).series.add(name)  # type: ignore[union-attr, arg-type]
        opened = {"incident": change.incident, "until": None, "ended": ""}
        self.steps[name] = [
            replace(step, **opened) if step.ended == change.incident else step for step in self.steps[name]
        ]


class AsBuilt(Product):
    """The same where nothing can be linked: without a compiler, or of experiments that compile by themselves."""

    relinked = False


class _Ask:
    """The worlds' way to measure again, as the judge asks for it."""

    def __init__(self, home: Product, timed: Mapping[str, SeriesEvidence], measure: Measure) -> None:
        self.home, self.timed, self.measure = home, timed, measure

    def __call__(self, series: str, build: str, base: str, count: int) -> Pairs | None:
        known = {each.artifact: each for pairs in self.timed[series].pairs for each in (pairs.base, pairs.build)}
        new, old = (replace(known[name], layout=0) for name in (build, base))
        measured = self.measure(series, new, old, count, relinked=self.home.relinked)
        return None if measured is None else self.home.pairs(measured)


class _Exact:
    """Exact numbers: any change is told; one that came back is fixed; one that one build had two of is none."""

    def __init__(self) -> None:
        self.open: dict[str, tuple[str, ...]] = {}
        self.sizes: dict[str, float] = {}

    def of(self, night: str, each: SeriesEvidence) -> list[Told]:
        """What tonight's number says."""
        values = each.values
        if len(values) < 2 or values[-1].night != night or values[-1].value == values[-2].value:
            return []
        now, before = values[-1], values[-2]
        changes = sum(one.value != other.value for one, other in itertools.pairwise(values[-15:]))
        if changes > 5 or any((old.build.order or 0) > (now.build.order or 0) for old in values[:-1]):
            return []
        effect = now.value / before.value - 1
        numbers = (effect, effect, effect, now.build.artifact)
        for name, size in self.sizes.items():
            if name in self.open and each.series in self.open[name] and abs(size + math.log1p(effect)) < 1e-9:
                del self.open[name]
                return [Told("fixed", (each.series,), *numbers, incident=name)]
        worse = effect > 0 if each.direction != "higher" else effect < 0
        name = f"x{each.series}-{now.build.artifact}"
        if worse:
            self.open[name], self.sizes[name] = (each.series,), math.log1p(effect)
        return [Told("told" if worse else "better", (each.series,), *numbers, incident=name)]
