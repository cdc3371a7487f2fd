"""A home's night: what moved in it, in many points at once or in one, after measuring again what was open."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tvmdash.judge.evidence import Ask, Evidence, KnownStep
from tvmdash.judge.model import FoundStep, SeriesModel, Shift, factors_of_sizes, log_of_none, log_of_size
from tvmdash.judge.noise import HomeNoise, learn
from tvmdash.judge.rules import RULES


class Decision(enum.StrEnum):
    """told: worse. better. fixed: an open step is taken back. suspected: likely worse, not sure enough to be told.

    withdrawn: what was measured since an open step was told is against it. reopened: a step that was called the end of
    another is none, as was measured since.
    """

    TOLD = "told"
    BETTER = "better"
    FIXED = "fixed"
    WITHDRAWN = "withdrawn"
    REOPENED = "reopened"
    SUSPECTED = "suspected"


class Scope(enum.StrEnum):
    """Whose step it is: all points of the home, of one experiment, those with new code, or a point's own."""

    HOME = "home"
    EXPERIMENT = "experiment"
    CODE = "code"
    POINT = "point"


@dataclass(frozen=True)
class Change:
    """One step of one series, or of many at once, from the build at `begin` on; found: of all of them together.

    incident: that of the open step which is taken back. own: of many series, what is known of each: its own pairs and
    that the others moved so far.
    """

    decision: Decision
    series: tuple[str, ...]
    found: FoundStep
    scope: Scope = Scope.POINT
    incident: str = ""
    own: Mapping[str, FoundStep] = field(default_factory=dict)

    def of(self, name: str) -> FoundStep:
        """Return the step as one of its series has it."""
        return self.own.get(name, self.found)

    @property
    def interval(self) -> tuple[float, float]:
        """That of the effect, a fraction, with 95 % confidence."""
        return interval(self.found)


def decide(found: FoundStep, sign: int, pairs: int) -> Decision | None:
    """Decide on a step of one series, across which `pairs` pairs lie; None where nothing is said of it.

    sign: as `Evidence` has it.
    """
    is_worse = found.shift * sign > 0
    if abs(found.effect) < RULES.least:
        return None
    if found.odds >= RULES.log("told") and pairs >= RULES.fewest_pairs:
        return Decision.TOLD if is_worse or not sign else Decision.BETTER
    return Decision.SUSPECTED if found.odds >= RULES.log("suspected") and is_worse else None


def interval(found: FoundStep | Shift) -> tuple[float, float]:
    """Return the 95 % interval of a step, as fractions."""
    shift = found.log if isinstance(found, Shift) else found.shift
    reach = RULES.errors_of_interval * found.error
    return math.expm1(shift - reach), math.expm1(shift + reach)


@dataclass(frozen=True)
class Judgement:
    """changes: what the night says. found: by series, its likeliest step, told or not. models: what it rests on.

    prior: the log odds of a step of one series at one build. undecided: series of which a step to tonight's build is
    neither told nor excluded; apart: those of them where nothing joins the last builds with those before.
    """

    changes: tuple[Change, ...]
    found: Mapping[str, FoundStep | None]
    models: Mapping[str, SeriesModel]
    noise: HomeNoise
    prior: float
    undecided: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()


def judge(evidence: Mapping[str, Evidence], ask: Ask | None = None, noise: HomeNoise | None = None) -> Judgement:
    """Judge the pairs of a home's series, each of which has some tonight; `ask` measures what is open.

    noise: what more than these pairs say of it; None where they are all that is known.
    """
    return _Night(evidence, ask, noise or learn(evidence)).judge()


class _Night:
    """The judge at work: models change with what is measured again and with what is told."""

    def __init__(self, evidence: Mapping[str, Evidence], ask: Ask | None, noise: HomeNoise) -> None:
        self.ask, self.noise = ask, noise
        self.models = {name: SeriesModel(name, each, self.noise) for name, each in evidence.items()}
        self.prior = RULES.log_of_point(sum(not each.is_control for each in evidence.values()))
        self.found: dict[str, FoundStep | None] = {}

    def judge(self) -> Judgement:
        self._join()
        settled = [*self._reopened(), *self._over()]
        changes = [*settled, *self._returned(), *self._groups()]
        # After the groups, whose steps are known by now: what is left is a point's own.
        self.found = {name: model.best(self.prior) for name, model in self.models.items()}
        self._measure()
        enough = {name for change in settled for name in change.series}
        for name, found in self.found.items():
            if found is not None and not self.models[name].evidence.is_control and name not in enough:
                changes += self._of_point(name, found)
        apart = frozenset(
            name
            for name, model in self.models.items()
            if self._find_gap(model) is not None and not model.evidence.is_control
        )
        undecided = apart | frozenset(self._undecided(changes))
        return Judgement(tuple(changes), self.found, self.models, self.noise, self.prior, undecided, apart)

    def _join(self) -> None:
        """Measure tonight's build beside one from before a new reference that left nothing to join the two."""
        for name, model in self.models.items():
            gap = self._find_gap(model)
            if gap is not None and not model.evidence.is_control:
                self._again(name, gap, 0)

    @staticmethod
    def _find_gap(model: SeriesModel) -> int | None:
        """The newest build in question that nothing joins with those before it."""
        return next((cut for cut in reversed(model.cuts()) if model.shift(cut) is None), None)

    def _returned(self) -> Iterator[Change]:
        """Open steps of series that run tonight what they ran before them, byte for byte."""
        for name, model in self.models.items():
            each = model.evidence
            for step in each.steps:
                if step.incident and each.has_returned and each.place < step.begin:
                    found = FoundStep(math.inf, -step.size, 0.0, step.begin, -step.size)
                    yield Change(Decision.FIXED, (name,), found, incident=step.incident)

    def _reopened(self) -> Iterator[Change]:
        """Ends of incidents that did not last: the series is measured where it was before them."""
        for name, model in self.models.items():
            for step in model.evidence.steps:
                shift = model.find_still(step, self.prior) if step.ended else None
                if shift is not None and step.until is not None:
                    found = FoundStep(-math.inf, shift.log, shift.error, step.until, step.size)
                    yield Change(Decision.REOPENED, (name,), found, incident=step.ended)
                    self._know(name, step, replace(step, incident=step.ended, until=None, ended=""))
                    break

    def _over(self) -> Iterator[Change]:
        """Open steps that are none by now, though no build took them back: none ever was, or little by little."""
        for name, model in list(self.models.items()):
            each = model.evidence
            for step in each.steps:
                found = self._find_end(name, step) if step.incident and step.begin <= each.place else None
                if found is not None:
                    never = found.begin == step.begin
                    found = replace(found, begin=each.place) if never else found
                    decision = Decision.WITHDRAWN if never else Decision.FIXED
                    yield Change(decision, (name,), found, incident=step.incident)
                    self._know(name, step, replace(step, incident="", until=found.begin, ended=step.incident))

    def _know(self, name: str, step: KnownStep, other: KnownStep) -> None:
        """Replace a step of a series by another in what is known."""
        model = self.models[name]
        steps = [other if each is step else each for each in model.evidence.steps]
        self.models[name] = SeriesModel(name, replace(model.evidence, steps=steps), self.noise, model.again)

    def _find_end(self, name: str, step: KnownStep) -> FoundStep | None:
        """Find the end of a step: the builds since are where those before it were, whatever else was known between."""
        model = self.models[name]
        ends = []
        for until in (step.begin, *(cut for cut in model.cuts() if cut > step.begin)):
            over = [one for one in model.evidence.steps if step.begin <= one.begin < until and one.until is None]
            over = over or [step]
            steps = [replace(one, until=until) if one in over else one for one in model.evidence.steps]
            left = SeriesModel(name, replace(model.evidence, steps=steps), self.noise).shift(until)
            if left is not None:
                # An end at the begin says that there was no step: the pairs alone have to be likelier without it.
                rare = 0.0 if until == step.begin else RULES.log("back_again")
                odds = rare - log_of_size(left, step.size)
                size = 0.0 if until == step.begin else sum(one.size for one in over)
                ends.append(FoundStep(odds, left.log - size, left.error, until, size))
        best = max(ends, default=None, key=lambda end: end.odds)
        return best if best is not None and best.odds > RULES.log("told") else None

    # points
    def _of_point(self, name: str, found: FoundStep) -> Iterator[Change]:
        model = self.models[name]
        decision = decide(found, model.evidence.sign, model.count_pairs(found.begin))
        if decision is not None:
            closed = self._closed_by(model.evidence, found) if decision is not Decision.SUSPECTED else ""
            yield Change(Decision.FIXED if closed else decision, (name,), found, incident=closed)

    @staticmethod
    def _closed_by(each: Evidence, found: FoundStep) -> str:
        """The incident of the open step that this one takes back, of several the one of its size."""
        left = {
            step.incident: abs(found.shift + step.size)
            for step in each.steps
            if step.incident and step.begin < found.begin and step.size * found.shift < 0
            if abs(found.shift + step.size) < max(RULES.back * abs(step.size), 2 * found.error)
        }
        return min(left, key=left.__getitem__, default="")

    def _undecided(self, changes: Iterable[Change]) -> Iterator[str]:
        decided = {name for change in changes if change.decision != Decision.SUSPECTED for name in change.series}
        for name, found in self.found.items():
            is_open = found is not None and found.odds >= RULES.log("open") and abs(found.effect) >= RULES.least
            if name not in decided and is_open and not self.models[name].evidence.is_control:
                yield name

    def _measure(self) -> None:
        """Measure again what is likeliest, until all is decided or nothing is to be had."""
        rounds: dict[str, int] = {}
        while self.ask is not None:
            unsure = {
                name: found.odds - RULES.patience * rounds.get(name, 0)
                for name, found in self.found.items()
                if found is not None
                and not self.models[name].evidence.is_control
                and rounds.get(name, 0) < RULES.most_rounds
                and self._is_open(name, found, rounds.get(name, 0))
            }
            if not unsure:
                return
            name = max(unsure, key=unsure.__getitem__)
            found = self.found[name]
            assert found is not None
            rounds[name] = rounds.get(name, 0) + 1
            is_over = not self._again(name, found.begin, rounds[name])
            if not is_over:
                found = self.found[name] = self.models[name].best(self.prior)
                is_over = found is None or (rounds[name] >= RULES.layouts and self._is_luck(name, found))
            if is_over:
                rounds[name] = RULES.most_rounds

    def _is_luck(self, name: str, found: FoundStep) -> bool:
        """Return True where the step's error is for the most part luck, which pairs don't narrow."""
        return self.models[name].error_of_pairs(found.begin) < RULES.of_pairs * found.error

    def _is_open(self, name: str, found: FoundStep, rounds: int) -> bool:
        """Return True where another look may decide it; told is only what has had one, pairs enough, odds to spare."""
        if abs(found.shift) < RULES.worth * RULES.least:
            return False
        told = RULES.log("told")
        few = not rounds or self.models[name].count_pairs(found.begin) < RULES.fewest_pairs
        return RULES.log("worth_measuring") < found.odds < told + RULES.spare or (found.odds >= told and few)

    def _again(self, name: str, begin: int, number: int) -> bool:
        """Measure the series' newest build in turn with one before the step."""
        model = self.models[name]
        older = model.older(begin)
        if not older or self.ask is None:
            return False
        base = older[number % len(older)]
        pairs = self.ask(name, model.evidence.tonight, base, RULES.round)
        if pairs is None or pairs.count < 2:
            return False
        self.models[name] = model.with_more(pairs)
        return True

    # groups
    def _groups(self) -> Iterator[Change]:
        """Yield steps that many series share; the series of one are known to have it from here on."""
        for scope, names, prior in self._list_groups():
            share = RULES.share_of_code if scope == Scope.CODE else RULES.share_of_group
            # One build may move some of a group up and others down, so what is left is searched again.
            left = names
            while (change := self._search_group(scope, left, prior, share)) is not None:
                yield change
                left = [name for name in left if name not in change.series]

    def _search_group(self, scope: Scope, names: Sequence[str], prior: float, share: float) -> Change | None:
        """The step that these share, after measuring again while it is open; None where none is told."""
        found, members = self._best_of_group(names, prior, share)
        tried: set[str] = set()
        while found is not None and self._is_group_open(found) and self.ask is not None:
            more = [name for name in names if name not in tried][: RULES.round]
            measured = [self._again(name, found.begin, len(tried)) for name in more]
            if not any(measured):
                break
            tried |= set(more)
            found, members = self._best_of_group(names, prior, share)
        if found is None or found.odds < RULES.log("told") or len(members) <= RULES.clearest:
            return None
        closed = self._closed_by_group(members, found)
        decision = Decision.FIXED if closed else Decision.TOLD if found.shift > 0 else Decision.BETTER
        own = {name: self._own_part(name, found) for name in members}
        for name in members:
            model = self.models[name]
            steps = (*model.evidence.steps, KnownStep(found.begin, own[name].shift))
            evidence = replace(model.evidence, steps=steps)
            self.models[name] = SeriesModel(name, evidence, self.noise, model.again)
        return Change(decision, tuple(members), found, scope, closed, own)

    def _own_part(self, name: str, found: FoundStep) -> FoundStep:
        """Estimate the step of one series by the step of all, from which its own differs, and by its own pairs."""
        model = self.models[name]
        sign = model.evidence.sign or 1
        measured = model.shift(found.begin)
        wide = found.error**2 + (RULES.alike * found.shift) ** 2
        if measured is None:
            return replace(found, shift=sign * found.shift, error=math.sqrt(wide))
        weights = (1 / wide, 1 / measured.error**2)
        shift = (sign * found.shift * weights[0] + measured.log * weights[1]) / sum(weights)
        return replace(found, shift=shift, error=1 / math.sqrt(sum(weights)))

    @staticmethod
    def _is_group_open(found: FoundStep) -> bool:
        is_large = abs(found.shift) >= RULES.least_of_group * RULES.known
        return is_large and RULES.log("worth_measuring") < found.odds < RULES.log("told")

    def _list_groups(self) -> Iterator[tuple[Scope, list[str], float]]:
        """List, of each metric, the home, each experiment and what has new code, with the prior of a common step."""
        metrics: dict[str, dict[str, list[str]]] = {}
        for name, model in self.models.items():
            each = model.evidence
            if not each.is_control:
                metrics.setdefault(each.metric, {}).setdefault(each.experiment, []).append(name)
        for experiments in metrics.values():
            every = [name for names in experiments.values() for name in names]
            groups = [(Scope.HOME, every, RULES.step_of_home)]
            if len(experiments) > 1:
                share = RULES.step_of_experiments / len(experiments)
                groups += [(Scope.EXPERIMENT, names, share) for names in experiments.values()]
            changed = [name for name in every if self._has_new_code(name)]
            if len(changed) < RULES.known * len(every):
                groups.append((Scope.CODE, changed, RULES.step_of_code))
            yield from ((scope, names, prior / len(metrics)) for scope, names, prior in groups if len(names) >= 3)

    def _has_new_code(self, name: str) -> bool:
        """Return True where tonight's generated code is another than that of the build before."""
        each = self.models[name].evidence
        builds = list(dict.fromkeys(pairs.build for pairs in self.models[name].pairs if pairs.build in each.places))
        before = [build for build in builds if build != each.tonight]
        code = each.code.get(each.tonight, 0)
        return bool(before and code and each.code.get(before[-1]) and each.code[before[-1]] != code)

    def _shift_of(self, name: str, begin: int) -> Shift | None:
        """Return the shift of a series, worse being positive."""
        measured = self.models[name].shift(begin)
        sign = self.models[name].evidence.sign or 1
        return None if measured is None else measured._replace(log=sign * measured.log)

    def _best_of_group(self, names: Sequence[str], prior: float, share: float) -> tuple[FoundStep | None, list[str]]:
        """The likeliest step of a group, and the series that have it."""
        cuts_of = {name: set(self.models[name].cuts()) for name in names}
        every: list[tuple[FoundStep, list[str]]] = []
        for begin in sorted(set().union(*cuts_of.values()))[-RULES.builds :]:
            known = [name for name in names if begin in cuts_of[name]]
            rows = {name: row for name in known if (row := self._shift_of(name, begin)) is not None}
            if len(rows) >= max(3, RULES.known * len(names)):
                every.append(_find_common(rows, begin, prior, share, self.noise.common))
        if not every:
            return None, []
        told = [each for each in every if each[0].odds >= RULES.log("told")]
        if told:
            return max(told, key=lambda each: abs(each[0].shift) / each[0].error)
        return max(every, key=lambda each: each[0].odds)

    def _closed_by_group(self, members: Sequence[str], found: FoundStep) -> str:
        """The incident whose series these are, for the most part, and which they take back."""
        sizes: dict[str, list[float]] = {}
        for name, model in self.models.items():
            for step in model.evidence.steps:
                if step.incident and step.begin < found.begin:
                    inside = name in members
                    sizes.setdefault(step.incident, []).append(
                        step.size * (model.evidence.sign or 1) if inside else math.nan
                    )
        for incident, own in sizes.items():
            known = [size for size in own if not math.isnan(size)]
            size = float(np.mean(known)) if known else 0.0
            near = abs(found.shift + size) < max(RULES.back * abs(size), 2.5 * found.error)
            if len(known) >= RULES.known * len(own) and near and size * found.shift < 0:
                return incident
        return ""


def _find_common(
    rows: Mapping[str, Shift], begin: int, prior: float, share: float, common: float
) -> tuple[FoundStep, list[str]]:
    """The step that most likely a `share` of the series have in common, with its odds, and those that have it.

    The clearest ones count for nothing: a few that moved by themselves are no step of all. common: as `HomeNoise` says.
    """
    shifts, errors, freedoms = (np.array(part) for part in zip(*rows.values(), strict=True))
    sizes = np.array([side * size for size in RULES.sizes_of_group for side in (1, -1)])
    factors = factors_of_sizes(shifts, errors, freedoms, sizes)
    parts = np.sort(np.logaddexp(math.log1p(-share), math.log(share) + factors), axis=1)
    of_sizes = parts.sum(axis=1) - np.maximum(parts[:, -RULES.clearest :], 0.0).sum(axis=1)
    odds = float(np.logaddexp.reduce(of_sizes)) - math.log(len(sizes)) + math.log(prior)
    if common:
        odds -= log_of_none(of_sizes, sizes, math.sqrt(common))
    best = int(of_sizes.argmax())
    wide = np.hypot(errors, RULES.alike * sizes[best])
    moved = (factors[best] + math.log(share / (1 - share)) > 0) & (np.abs(shifts - sizes[best]) < RULES.far * wide)
    if not moved.any():
        return FoundStep(odds, 0.0, math.inf, begin), []
    weights = 1 / errors[moved] ** 2
    shift = float((weights * shifts[moved]).sum() / weights.sum())
    spread = float((weights * (shifts[moved] - shift) ** 2).sum() / weights.sum()) / max(1, int(moved.sum()) - 1)
    error = math.hypot(max(1 / math.sqrt(weights.sum()), math.sqrt(spread)) + RULES.night_sd / 3, math.sqrt(common))
    return FoundStep(odds, shift, error, begin), [name for name, has in zip(rows, moved, strict=True) if has]
