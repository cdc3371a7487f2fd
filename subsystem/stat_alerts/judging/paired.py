"""Series that were measured beside a reference: judged by their ratios, experiment by experiment."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from judging.table import Table
from tvmdash.contracts.remeasured import RatioRun
from tvmdash.detect.beside.builds import Again
from tvmdash.detect.beside.decisions import RatioDecision, decide
from tvmdash.detect.beside.luck import Elsewhere, Learned
from tvmdash.detect.beside.reference import ReferenceStanding, compare_with_reference
from tvmdash.detect.cause import PAIRED, Cause, of_tvm
from tvmdash.detect.reason import Reason, ReasonKind
from tvmdash.detect.series import Decision, Measured, SeriesState

MOST_AGAIN = 3
"""So many runs at most measure a suspect again."""


class AskPairs(Protocol):
    """So many runs of a series with the artifacts of two nights in turn, or as many as there are."""

    def __call__(self, series: str, new: int, old: int, count: int) -> Sequence[RatioRun]: ...


@dataclass(frozen=True)
class Beside:
    """What a paired row's ratios say tonight: of the step since the builds before, and of the reference itself."""

    decision: RatioDecision | None
    reference: ReferenceStanding | None


def judge_rows(
    table: Table, night: int, rows: Iterable[int], states: Mapping[str, SeriesState], ask: AskPairs | None = None
) -> dict[int, Beside]:
    """By row; nothing of rows that have no ratio tonight. What may have moved is measured again by `ask`."""
    members: dict[str, list[int]] = {}
    for row in rows:
        members.setdefault(table.rows[row].experiment, []).append(row)
    every = {
        experiment: Learned.of({str(row): table.ratio_history(row, night) for row in own})
        for experiment, own in members.items()
    }
    found: dict[int, Beside] = {}
    for experiment, of_experiment in members.items():
        learned = every[experiment]
        starts = {str(row): states.get(table.rows[row].key, SeriesState()).start for row in of_experiment}
        elsewhere = Elsewhere.of(other for name, other in every.items() if name != experiment)
        decisions: Mapping[str, RatioDecision] = decide(learned, starts, elsewhere)
        if ask:
            decisions = _measured_again(_Asked(learned, starts, elsewhere, decisions), ask, table, night)
        standings = compare_with_reference(learned)
        for row in of_experiment:
            if str(row) in standings:
                found[row] = Beside(decisions.get(str(row)), standings[str(row)])
    return found


@dataclass(frozen=True)
class _Asked:
    """An experiment whose suspects are measured again."""

    learned: Learned
    starts: Mapping[str, int]
    elsewhere: Elsewhere
    decisions: Mapping[str, RatioDecision]


def _measured_again(of: _Asked, ask: AskPairs, table: Table, night: int) -> Mapping[str, RatioDecision]:
    """The decisions with what may have moved measured again: tonight's artifact and the last one of the level before.

    Until each is clear, or there is no more to be had.
    """
    found = of.decisions
    histories = dict(of.learned.histories)
    for count in range(1, MOST_AGAIN + 1):
        more = {}
        for name, decision in found.items():
            if decision.is_worth_measuring and not (count > 1 and decision.is_clear):
                row = table.rows[int(name)]
                runs = ask(row.key, night, decision.after, count)
                older = int(histories[name].build[decision.after - histories[name].offset])
                if len(runs) == count:
                    more[name] = tuple(Again(run.log, run.pairs, older, run.std) for run in runs)
        if not more:
            break
        histories |= {name: replace(histories[name], again=again) for name, again in more.items()}
        found = decide(Learned.of(histories), of.starts, of.elsewhere)
    return found


def decision_of(beside: Beside, state: SeriesState, night: int) -> Decision:
    """What the detector says of the series, in the form that every series has."""
    said = beside.decision
    if said is None:
        return Decision("quiet", Reason(ReasonKind.ONE_BUILD), night, state)
    told, pairs = said.is_told, said.evidence.pairs_again
    reason = Reason(ReasonKind.WITHIN_NOISE, value=said.z, nights=said.builds, needed=said.needed)
    if told:
        reason = Reason(ReasonKind.SHIFTED)
    elif pairs:
        reason = Reason(ReasonKind.OPEN if said.is_suspect else ReasonKind.REFUTED)
    shown = told or pairs > 0
    sides = ((night, math.exp(said.evidence.contrasts[0].shift)), (said.after, 1.0))
    return Decision(
        "alert" if told else "quiet",
        reason,
        night,
        replace(state, start=said.cut) if told else state,
        cut=said.cut if told else None,
        after=said.after if told else None,
        effect=said.effect if shown else None,
        effect_low=said.low if shown else None,
        effect_high=said.high if shown else None,
        z=said.z,
        nights=said.builds,
        threshold=said.needed,
        scale=said.error,
        reruns=tuple(Measured(at, ratio) for at, ratio in sides for _ in range(pairs)),
        cause=_cause(said) if told else None,
    )


def _cause(said: RatioDecision) -> Cause:
    """TVM's: another artifact was on the new side, and the machine is in both halves of each pair."""
    same, changed = said.same_code is True, said.same_code is False
    return of_tvm(Cause(evidence=PAIRED, same_code=int(same), changed_code=int(changed)))
