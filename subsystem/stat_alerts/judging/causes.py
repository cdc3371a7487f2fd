"""Whose doing a shift of a series or of a fleet was: by the artifacts, by what was measured again, and by controls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from judging.table import Table
from tvmdash.judge.history.cause import (
    BUILD,
    CONTROL,
    EXACT,
    MACHINE,
    MEASURED_AGAIN,
    NOTHING,
    OLDER_ARTIFACTS,
    SAME_ARTIFACT,
    SAME_VERSION,
    Cause,
    of_many,
    of_tvm,
)
from tvmdash.judge.history.fleet.common import BASELINE, find_control_shifts, weigh_controls
from tvmdash.judge.history.series import Decision

NEAR = 2
"""Nights on each side of a cut that must have the same artifact: a cut is exact to a night."""


def cause_of(table: Table, row: int, decision: Decision, controls: Sequence[int], night: int) -> Cause:
    """Find the cause of a decision with a cut; `controls` are rows, whose programs TVM cannot have changed."""
    assert decision.cut is not None
    if row in controls:
        return _same_artifact(table, row, decision.cut, night) or Cause(MACHINE, CONTROL)
    again = _with_re_runs(Cause(), table, row, decision)
    if again.old_artifacts and decision.is_reproduced:
        cause: Cause | None = replace(again, whose=BUILD, evidence=MEASURED_AGAIN)
    elif table.rows[row].kind == "exact":
        cause = _same_artifact(table, row, decision.cut, night) or Cause(BUILD, EXACT)
    else:
        cause = _same_artifact(table, row, decision.cut, night)
    if cause is None:
        cause = _with_re_runs(_by_controls(table, decision, controls, night), table, row, decision)
    if cause.whose == MACHINE:
        return cause
    cause = _with_code(cause, [_same_code(table, row, decision.cut, night)])
    return of_tvm(cause) if cause.is_tvms else cause


def of_fleet(table: Table, rows: Iterable[int], cause: Cause, cut: int, night: int) -> Cause:
    """Find the cause of what a whole fleet did since `cut`: not TVM's where every series is on the same artifact."""
    present = [row for row in rows if math.isfinite(table.values[row, night - table.offset])]
    # one series that got another artifact leaves TVM in question for the whole fleet
    if cause.evidence in {NOTHING, OLDER_ARTIFACTS} and not cause.is_tvms:
        same = [_same_artifact(table, row, cut, night) for row in present]
        causes = [cause for cause in same if cause is not None]
        if present and len(causes) == len(present):
            return of_many(causes)
    return _with_code(cause, [_same_code(table, row, cut, night) for row in present])


def unchanged(table: Table, night: int, rows: Sequence[int]) -> list[int]:
    """Select the rows measured with one artifact for as long as a baseline reaches back, tonight included."""
    nights = range(max(table.offset, night + 1 - BASELINE), night + 1)
    by_experiment: dict[str, bool] = {}
    for row in rows:
        experiment = table.rows[row].experiment
        if experiment not in by_experiment:
            by_experiment[experiment] = table.same(experiment, _measured(table, experiment, nights)) is not None
    return [row for row in rows if by_experiment[table.rows[row].experiment]]


def _measured(table: Table, experiment: str, nights: Iterable[int]) -> list[int]:
    return [night for night in nights if table.stamps[night] in table.versions.get(experiment, {})]


def _same_artifact(table: Table, row: int, cut: int, night: int) -> Cause | None:
    """Blame the machine, or the experiment itself, where the nights around the cut were measured with one artifact."""
    known = np.isfinite(table.values[row, : night + 1 - table.offset]).nonzero()[0] + table.offset
    before, after = known[known < cut][-NEAR:].tolist(), known[known >= cut][:NEAR].tolist()
    experiment = table.rows[row].experiment
    same = table.same(experiment, before + after) if before and after else None
    if same is None:
        return None
    prints = {table.build(experiment, at).fingerprint for at in (before[-1], after[0])}
    return Cause(MACHINE, SAME_ARTIFACT if same.recorded else SAME_VERSION, experiment_changed=len(prints) > 1)


def _with_re_runs(cause: Cause, table: Table, row: int, decision: Decision) -> Cause:
    """Add to the cause what artifacts from before and since the cut gave tonight, against the level before it.

    An artifact that was measured on both sides of the cut is of the new side: the cut is then a night or two late.
    """
    assert decision.cut is not None
    made = [(table.build(table.rows[row].experiment, rerun.night).artifact, rerun) for rerun in decision.reruns]
    since = {artifact for artifact, rerun in made if rerun.night >= decision.cut}
    new = [rerun.value for artifact, rerun in made if rerun.night >= decision.cut]
    old = [rerun.value for artifact, rerun in made if artifact not in since]
    earlier = {artifact for artifact, _ in made} - since
    level = _level_before(table, row, decision) if decision.state.unit is None else math.nan
    return replace(
        cause,
        old=_ratio(old, level),
        new=_ratio(new, level),
        old_artifacts=tuple(sorted(artifact for artifact in earlier if artifact)),
        new_artifacts=tuple(sorted(artifact for artifact in since if artifact)),
    )


def _level_before(table: Table, row: int, decision: Decision) -> float:
    assert decision.cut is not None
    values = table.values[row, max(0, decision.cut - BASELINE - table.offset) : decision.cut - table.offset]
    values = values[np.isfinite(values)]
    return float(np.median(values)) if len(values) else math.nan


def _ratio(values: Sequence[float], level: float) -> float | None:
    ratio = float(np.median(values)) / level if values else math.nan
    return ratio if math.isfinite(ratio) else None


def _by_controls(table: Table, decision: Decision, controls: Sequence[int], night: int) -> Cause:
    if decision.effect is None or decision.state.unit is not None or decision.cut is None or decision.effect <= -1:
        return Cause()
    shifts = find_control_shifts((table.history(row, night) for row in controls), decision.cut)
    return weigh_controls(shifts, math.log1p(decision.effect))


def _same_code(table: Table, row: int, cut: int, night: int) -> bool | None:
    """Return None where the code of one side is unknown."""
    code = table.code[row]
    before = code[: cut - table.offset]
    after = code[cut - table.offset : night + 1 - table.offset]
    known = [side[side != 0] for side in (before, after)]
    if not all(len(side) for side in known):
        return None
    return bool(known[0][-1] == known[1][0])


def _with_code(cause: Cause, codes: Sequence[bool | None]) -> Cause:
    """Add how many of the series have the same generated code on both sides, and how many have not."""
    return replace(cause, same_code=codes.count(True), changed_code=codes.count(False))
