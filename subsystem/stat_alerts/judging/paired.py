"""Series that were measured beside a reference: judged by their ratios, experiment by experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from judging.table import REACH, Table
from tvmdash.detect import ratios
from tvmdash.detect.cause import PAIRED, Cause, of_tvm
from tvmdash.detect.noise import IntArray
from tvmdash.detect.ratios import RatioDecision, RatioHistory, Standing
from tvmdash.detect.reason import Reason, ReasonKind
from tvmdash.detect.series import Decision, SeriesState
from tvmdash.series.store import code_number


@dataclass(frozen=True)
class Beside:
    """What a paired row's ratios say tonight: of the step since the builds before, and of the reference itself."""

    decision: RatioDecision | None
    reference: Standing | None


def judge_rows(table: Table, night: int, rows: Iterable[int], states: Mapping[str, SeriesState]) -> dict[int, Beside]:
    """By row; nothing of rows that have no ratio tonight."""
    members: dict[str, list[int]] = {}
    for row in rows:
        members.setdefault(table.rows[row].experiment, []).append(row)
    found: dict[int, Beside] = {}
    for of_experiment in members.values():
        named = {str(row): history(table, row, night) for row in of_experiment}
        starts = {str(row): states.get(table.rows[row].key, SeriesState()).start for row in of_experiment}
        decisions = ratios.decide(named, starts)
        standings = ratios.compare_with_reference(named)
        for row in of_experiment:
            if str(row) in standings:
                found[row] = Beside(decisions.get(str(row)), standings[str(row)])
    return found


def history(table: Table, row: int, night: int) -> RatioHistory:
    """The row's ratios of the last REACH nights up to `night`, with what was measured on each."""
    assert table.ratios is not None
    stop = night + 1 - table.offset
    start = max(0, stop - REACH)
    part = (row, slice(start, stop))
    builds = [table.build(table.rows[row].experiment, table.offset + at) for at in range(start, stop)]
    return RatioHistory(
        table.ratios.logs[part],
        table.ratios.std[part],
        np.nan_to_num(table.ratios.pairs[part]),
        _numbers(build.artifact for build in builds),
        _numbers(build.reference for build in builds),
        table.code[part],
        table.offset + start,
    )


def _numbers(keys: Iterable[str | None]) -> IntArray:
    return np.array([code_number(key) if key else 0 for key in keys], np.int64)


def decision_of(beside: Beside, state: SeriesState, night: int) -> Decision:
    """What the detector says of the series, in the form that every series has."""
    said = beside.decision
    if said is None:
        return Decision("quiet", Reason(ReasonKind.ONE_BUILD), night, state)
    told = said.is_told
    kind = ReasonKind.SHIFTED if told else ReasonKind.WITHIN_NOISE
    reason = Reason(kind) if told else Reason(kind, value=said.z, nights=said.builds, needed=said.needed)
    return Decision(
        "alert" if told else "quiet",
        reason,
        night,
        replace(state, start=said.cut) if told else state,
        cut=said.cut if told else None,
        after=said.after if told else None,
        effect=said.effect if told else None,
        effect_low=said.low if told else None,
        effect_high=said.high if told else None,
        z=said.z,
        nights=said.builds,
        threshold=said.needed,
        scale=said.error,
        cause=_cause(said) if told else None,
    )


def _cause(said: RatioDecision) -> Cause:
    """TVM's: another artifact was on the new side, and the machine is in both halves of each pair."""
    same, changed = said.same_code is True, said.same_code is False
    return of_tvm(Cause(evidence=PAIRED, same_code=int(same), changed_code=int(changed)))


def without(rows: Sequence[int], paired: Mapping[int, Beside]) -> list[int]:
    """Those of the rows that are judged by their times."""
    return [row for row in rows if row not in paired]
