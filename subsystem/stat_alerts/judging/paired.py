"""Decisions on series that were measured in turn with another TVM, from the judge's reading of their pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from judging.memory import ALERT, BREAK, RECOVERED, Memory
from judging.table import InTurn, Table, pairs_again
from tvmdash.incidents.ledger import CHANGE, DETECTOR, Ledger
from tvmdash.judge import RULES, Evidence, KnownStep, Pairs, two
from tvmdash.judge.history.cause import PAIRED, Cause, Reason, ReasonKind, of_tvm
from tvmdash.judge.history.series import Decision, Measured, SeriesState
from tvmdash.judge.home import Change, Judgement, Scope, interval, judge
from tvmdash.judge.home import Decision as Said
from tvmdash.judge.model import FoundStep, SeriesModel, log_of_any
from tvmdash.machine.devices import CPU, device_of
from tvmdash.verdict.remeasured import RatioRun


class AskPairs(Protocol):
    """Run a series with the artifacts of two nights in turn `count` times, or as often as possible."""

    def __call__(self, series: str, new: int, old: int, count: int) -> Sequence[RatioRun]: ...


@dataclass(frozen=True)
class ReferenceStanding:
    """Tonight's artifact against the reference, over all its nights. effect, low, high: a fraction, 95 %.

    differs: beyond doubt. is_itself: the reference ran the very same, so that nothing differs.
    """

    effect: float
    low: float
    high: float
    differs: bool
    is_itself: bool


@dataclass(frozen=True)
class PairsTonight:
    """A paired row tonight. said: what is told or suspected, None where nothing is.

    found: its likeliest step. builds: of tonight's side of it. cut, after: the first night of the new builds, the
    last before. visible: the step that would be shown in nine of ten cases, None where none would. is_young: no
    other build is known. is_apart: nothing joins the last builds with those before. is_known: tonight's build, or
    one that ran the same, was measured before. is_shared: many series have the step that is told. prior: the log
    odds of a step of one series at one build. start: of what is reopened, the first night of its level.
    """

    model: SeriesModel
    prior: float
    reference: ReferenceStanding | None
    said: Said | None = None
    found: FoundStep | None = None
    incident: str = ""
    builds: int = 0
    cut: int = 0
    after: int = 0
    visible: float | None = None
    is_young: bool = False
    is_apart: bool = False
    is_known: bool = False
    is_shared: bool = False
    start: int | None = None

    @property
    def is_told(self) -> bool:
        return self.said in {Said.TOLD, Said.BETTER}

    @property
    def is_suspect(self) -> bool:
        return self.said is Said.SUSPECTED

    @property
    def pairs_again(self) -> int:
        """The number of pairs that measured tonight's build again."""
        return sum(pairs.count for pairs in self.model.again)

    @property
    def bounds(self) -> tuple[float, float, float] | None:
        """The effect of the likeliest step with its 95 % interval, as fractions; of too few pairs there is none."""
        few = not self.is_shared and self.found and self.model.count_pairs(self.found.begin) < RULES.fewest_pairs
        if self.found is None or few:
            return None
        return (self.found.effect, *interval(self.found))

    @property
    def same_code(self) -> bool | None:
        """None where the code of one side is unknown."""
        each = self.model.evidence
        if self.found is None:
            return None
        older = [build for build in each.places if each.places[build] < self.found.begin]
        newer = [build for build in each.places if each.places[build] == self.found.begin]
        codes = [each.code.get(max(older, key=each.places.__getitem__, default=""), 0), each.code.get(newer[0], 0)]
        return codes[0] == codes[1] if all(codes) else None


@dataclass(frozen=True)
class _Row:
    """One row's evidence, and the nights of its builds: the first of each, and the last."""

    evidence: Evidence
    first: Mapping[str, int]
    last: Mapping[str, int]
    reference: str


@dataclass
class _Asking:
    """The judge's questions, put to what a night measures again: builds become nights that measured them."""

    table: Table
    night: int
    rows: Mapping[str, _Row]
    ask: AskPairs
    served: dict[tuple[str, str], int] = field(default_factory=dict)

    def __call__(self, series: str, build: str, base: str, count: int) -> Pairs | None:
        row = self.rows[series]
        if base not in row.last:
            return None
        number = self.served[series, base] = self.served.get((series, base), 0) + 1
        runs = self.ask(self.table.rows[int(series)].key, self.night, row.last[base], number)
        if len(runs) < number:
            return None
        return pairs_again(self.night, build, base, runs[number - 1])


def judge_rows(
    table: Table, night: int, rows: Iterable[int], memory: Memory, ledger: Ledger, ask: AskPairs | None = None
) -> dict[int, PairsTonight]:
    """Judge rows of one machine; nothing of rows without a ratio tonight. What is open is measured again by `ask`."""
    open_of, ended = _open_incidents(ledger), _ended_incidents(ledger)
    given = {str(row): _read_row(table, row, night, memory, open_of, ended) for row in rows}
    known = {name: row for name, row in given.items() if row is not None}
    if not known:
        return {}
    asking = _Asking(table, night, known, ask) if ask else None
    judgement = judge({name: row.evidence for name, row in known.items()}, asking)
    in_order = sorted(judgement.changes, key=lambda change: change.decision is Said.REOPENED)
    changes = {name: change for change in in_order for name in change.series}
    stands = _list_stands(known, judgement)
    return {int(name): _beside(row, judgement, name, changes.get(name), stands[name]) for name, row in known.items()}


def _beside(
    row: _Row, judgement: Judgement, name: str, change: Change | None, reference: ReferenceStanding | None
) -> PairsTonight:
    model = judgement.models[name]
    found = change.of(name) if change is not None else judgement.found[name]
    visible = model.visible(judgement.prior)
    made = PairsTonight(
        model, judgement.prior, reference, change.decision if change else None, found,
        change.incident if change else "",
        visible=visible if math.isfinite(visible) else None, is_young=len(row.first) < 2,
        is_shared=change is not None and change.scope is not Scope.POINT,
        is_apart=name in judgement.apart, is_known=row.first[row.evidence.tonight] < row.last[row.evidence.tonight],
    )  # fmt: skip
    if found is None:
        return made
    places = row.evidence.places
    new = [build for build in row.first if places[build] >= found.begin]
    cut = min(row.first[build] for build in row.first if places[build] == found.begin)
    older = [build for build in row.first if places[build] < found.begin]
    is_since_reference = row.reference == max(older, key=places.__getitem__, default="")
    is_step = made.said is not None and made.said is not Said.WITHDRAWN
    if is_step and made.bounds is not None and is_since_reference and made.reference is not None:
        effect, low, high = made.bounds  # what is told of a step is one number, wherever it stands
        differs = made.reference.differs or made.is_told
        made = replace(made, reference=replace(made.reference, effect=effect, low=low, high=high, differs=differs))
    before = [last for build, last in row.last.items() if places[build] < found.begin and last < cut]
    opened = {step.begin for step in model.evidence.steps if step.incident and step.incident == made.incident}
    start = min((row.first[build] for build in row.first if places[build] in opened), default=None)
    return replace(
        made,
        builds=len(new),
        cut=cut,
        after=max(before, default=max(0, cut - 1)),
        start=start if made.said is Said.REOPENED else None,
    )


def _open_incidents(ledger: Ledger) -> Mapping[str, tuple[str, float]]:
    """Find by series the newest open incident in which it is worse and not back, and by how much (a fraction)."""
    return {
        moved.series: (incident.id, moved.effect)
        for incident in ledger.open()
        if incident.kind == CHANGE
        for moved in incident.moved
        if moved.worse and not moved.recovered and not moved.is_exact
    }


def _ended_incidents(ledger: Ledger) -> Mapping[tuple[str, str], str]:
    """Find by series, and night since which it is back, the incident that the detector called ended for it."""
    return {
        (moved.series, moved.recovered): incident.id
        for incident in ledger.incidents.values()
        if incident.kind == CHANGE and incident.changes[-1].who == DETECTOR
        for moved in incident.moved
        if moved.worse and moved.recovered and not moved.is_exact
    }


def _read_row(
    table: Table,
    row: int,
    night: int,
    memory: Memory,
    open_of: Mapping[str, tuple[str, float]],
    ended: Mapping[tuple[str, str], str],
) -> _Row | None:
    """Read the evidence of a row by a night; None where it was not measured in turn on it."""
    measured = table.in_turn(row, night)
    if not measured or measured[-1].night != night:
        return None
    series = table.rows[row]
    own: dict[str, list[int]] = {}
    code: dict[str, int] = {}
    for each in measured:
        own.setdefault(each.build, []).append(each.night)
        code[each.build] = each.code
    for base in {each.pairs.base for each in measured}:
        alone = table.measured_alone(row, base, night)
        if base not in own and alone:
            own[base] = alone
    order = table.order_builds(row, {build: nights[0] for build, nights in own.items()}, night)
    places = {build: at for at, build in enumerate(order)}
    tonight = measured[-1].build
    pairs = [*(each.pairs for each in measured), *table.again_before(row, night)]
    pairs = [each for each in pairs if each.build != each.base]
    evidence = Evidence(
        series.experiment,
        tuple(sorted(pairs, key=lambda each: each.night)),
        places,
        tonight,
        code,
        two.SIGNS[series.direction],
        is_of_device=device_of(series.labels) != CPU,
        metric=series.metric,
        has_returned=_has_returned(measured[-1].artifact, own[tonight], measured),
        steps=tuple(_known_steps(table, series.key, (places, own), measured, memory, open_of, ended)),
    )
    firsts, lasts = ({build: nights[at] for build, nights in own.items()} for at in (0, -1))
    return _Row(evidence, firsts, lasts, measured[-1].pairs.base)


def _has_returned(artifact: str, nights: Sequence[int], measured: Sequence[InTurn]) -> bool:
    """Return True for a new artifact that runs what another ran before something else was measured."""
    others = [each for each in measured[:-1] if each.night > nights[0] and each.night not in nights]
    return bool(others) and not any(each.artifact == artifact for each in measured[:-1])


def _known_steps(
    table: Table,
    key: str,
    builds: tuple[Mapping[str, int], Mapping[str, Sequence[int]]],
    measured: Sequence[InTurn],
    memory: Memory,
    open_of: Mapping[str, tuple[str, float]],
    ended: Mapping[tuple[str, str], str],
) -> Iterator[KnownStep]:
    """Yield the steps told of a series, or known to people; an open incident's is the newest alert of its sign.

    builds: the place of each, and its nights. What took a step back is the end of that, so that what is left of it, or
    came with its end, is a step of its own. ended: see `_ended_incidents`.
    """
    places, nights = builds
    known: list[KnownStep] = []
    alerts: list[int] = []
    for step in memory.steps.get(key, ()):
        since = table.index_of(step.stamp)
        build = next((each.build for each in measured if each.night >= since), None)
        if build is None or step.kind not in {ALERT, RECOVERED, BREAK}:
            continue
        is_over = [at for at, each in enumerate(known) if each.until is None and each.size * step.size < 0]
        if step.kind != RECOVERED or not is_over:
            alerts += [len(known)] if step.kind == ALERT else []
            known.append(KnownStep(places[build], step.size))
            continue
        first = is_over[-1]
        between = [at for at in range(first, len(known)) if known[at].until is None]
        left = abs(step.size + sum(known[at].size for at in between))  # where what came later is over as well
        later = [place for name, place in places.items() if place > known[first].begin and nights[name][0] >= since]
        over = between if left < abs(step.size + known[first].size) else [first]
        for at in over if later else ():
            incident = ended.get((key, step.stamp), "") if at == first else ""
            known[at] = replace(known[at], until=min(later), ended=incident)
    is_open, effect = open_of.get(key, ("", 0.0))
    still = [at for at in alerts if known[at].until is None and known[at].size * effect > 0]
    if still:
        known[still[-1]] = replace(known[still[-1]], incident=is_open)
    yield from known


def _list_stands(rows: Mapping[str, _Row], judgement: Judgement) -> dict[str, ReferenceStanding | None]:
    """Compare each row with the reference; rows with few pairs by what all of them show together."""
    stands = {name: _stand(row, judgement.models[name]) for name, row in rows.items()}
    few = {name: _compared(row) for name, row in rows.items() if stands[name] is None}
    for name, found in two.compare(few).items():
        if found.is_bounded:
            stands[name] = ReferenceStanding(found.effect, *found.bounds, differs=found.is_told, is_itself=False)
    return stands


def _compared(row: _Row) -> Evidence:
    """Reduce a row to tonight's TVM and the reference, as `compare` sees two TVMs."""
    each = row.evidence
    direct = [pairs for pairs in each.pairs if (pairs.build, pairs.base) == (each.tonight, row.reference)]
    pairs = tuple(replace(one, build=two.B, base=two.A) for one in direct)
    return replace(each, pairs=pairs, places=two.PLACES, tonight=two.B, code={}, steps=(), window=len(pairs))


def _stand(row: _Row, model: SeriesModel) -> ReferenceStanding | None:
    tonight = row.evidence.tonight
    if row.reference == tonight:
        return ReferenceStanding(0.0, 0.0, 0.0, differs=False, is_itself=True)
    shift = model.difference(tonight, row.reference)
    pairs = sum(each.count for each in model.pairs if tonight in {each.build, each.base})
    if shift is None or pairs < RULES.fewest_pairs:
        return None
    odds = log_of_any(shift) + RULES.log("differs_from_reference")
    large = abs(math.expm1(shift.log)) >= RULES.least
    return ReferenceStanding(
        math.expm1(shift.log), *interval(shift), differs=large and odds >= RULES.log("told"), is_itself=False
    )


def decision_of(beside: PairsTonight, state: SeriesState, night: int) -> Decision:
    """Translate the judge's answer into the form of decision that every series has."""
    found, pairs = beside.found, beside.pairs_again
    if found is None or beside.is_young or beside.is_apart:
        return Decision("quiet", Reason(ReasonKind.ONE_BUILD), night, state)
    # the very code of before has no error, and JSON no infinity
    z = found.shift / found.error if found.error else math.copysign(30.0, found.shift)
    moved = beside.is_told or beside.said in {Said.FIXED, Said.WITHDRAWN}
    start = beside.cut if moved else beside.start
    # no float holds the exponential of odds without a bound
    reason = Reason(ReasonKind.WITHIN_ODDS, value=math.exp(min(found.odds, 50.0)), needed=RULES.told)
    if moved:
        reason = Reason(ReasonKind.SHIFTED if beside.is_told else ReasonKind.BACK)
    elif beside.is_suspect:
        reason = Reason(ReasonKind.OPEN if pairs else ReasonKind.UNMEASURED)
    elif pairs:
        reason = Reason(ReasonKind.REFUTED)
    effect, low, high = beside.bounds or (found.effect, None, None)
    shown = moved or beside.is_suspect or pairs > 0
    sides = ((night, math.exp(found.shift)), (beside.after, 1.0))
    return Decision(
        "alert" if beside.is_told else "quiet",
        reason,
        night,
        state if start is None else replace(state, start=start),
        cut=beside.cut if beside.is_told else None,
        after=beside.after if beside.is_told else None,
        effect=effect if shown else None,
        effect_low=low if shown else None,
        effect_high=high if shown else None,
        z=z,
        nights=beside.builds,
        scale=found.error,
        reruns=tuple(Measured(at, ratio) for at, ratio in sides for _ in range(pairs)),
        is_reproduced=beside.is_told and pairs > 0,
        cause=_cause(beside) if beside.is_told else None,
    )


def _cause(beside: PairsTonight) -> Cause:
    """Blame TVM: another artifact was on the new side, and the machine is in both halves of each pair."""
    same = beside.same_code
    return of_tvm(Cause(evidence=PAIRED, same_code=int(same is True), changed_code=int(same is False)))
