"""Outcomes of re-measuring, series by series, and in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from judging.evidence import BROKEN, BUDGET, Confirmation, Evidence
from judging.judge import Judged
from judging.table import Table

from rerun.questions import Asking
from tvmdash.judge.history.cause import CONTROLS, OLDER_ARTIFACTS, SAME_ARTIFACT, SAME_VERSION, ReasonKind
from tvmdash.judge.history.series import Decision
from tvmdash.series.naming import id_of
from tvmdash.text import elide, format_duration, format_list
from tvmdash.verdict.remeasured import Outcome, OutcomeKind

_OF_REASON = {
    ReasonKind.REFUTED: OutcomeKind.OUTLIER,
    ReasonKind.OPEN: OutcomeKind.UNCLEAR,
    ReasonKind.MODES: OutcomeKind.MODES,
    ReasonKind.YOUNG: OutcomeKind.YOUNG,
}
_NAMED = 2


def outcomes_of(judged: Judged, table: Table, evidence: Evidence, asking: Asking) -> Iterator[Outcome]:
    """Yield one for each series that the detector wanted to be measured again."""
    for row, decision, fleet in judged.decisions():
        series = table.rows[row]
        of_machine = series.key in fleet.controls or fleet.decided.machine is not None
        if series.key not in asking.asked or of_machine or not _was_suspect(decision):
            continue
        outcome = _outcome(decision, judged.night)
        cut = _cut(table, row, decision, judged.night)
        new = sum(rerun.night >= cut for rerun in decision.reruns)
        nights = {rerun.night for rerun in decision.reruns} | {cut, max(cut - 1, table.offset)}
        used = [table.build(series.experiment, night) for night in nights]
        artifacts = {table.build(series.experiment, rerun.night).artifact for rerun in decision.reruns}
        fingerprints = {build.fingerprint for build in used if build.fingerprint}
        measured = outcome != OutcomeKind.UNMEASURED
        yield Outcome(
            series.key, series.name, outcome, new, len(decision.reruns) - new,
            decision.effect if measured else None, decision.effect_low if measured else None,
            decision.effect_high if measured else None, same=len(artifacts) == 1, changed=len(fingerprints) > 1,
            why="" if measured else _why(series.key, series.experiment, evidence, asking),
            evidence=_evidence(decision) if outcome == OutcomeKind.MACHINE else "",
        )  # fmt: skip


def _was_suspect(decision: Decision) -> bool:
    """Tell a series asked for its own sake from one asked to tell the machine from the compiler."""
    return bool(decision.reruns) or decision.kind != "quiet" or decision.reason.kind == ReasonKind.UNMEASURED


def _outcome(decision: Decision, night: int) -> OutcomeKind:
    if not decision.reruns or decision.reason.kind == ReasonKind.UNMEASURED:
        return OutcomeKind.UNMEASURED
    if decision.kind == "alert":
        return OutcomeKind.REPRODUCED if decision.is_reproduced else OutcomeKind.YOUNG
    if decision.kind == "environment" or night in decision.state.moved:
        return OutcomeKind.MACHINE
    return _OF_REASON.get(decision.reason.kind, OutcomeKind.UNCLEAR)


def _evidence(decision: Decision) -> str:
    """Name the evidence that it was the machine: re-runs where no cut has another cause."""
    return OLDER_ARTIFACTS if decision.cause is None else decision.cause.evidence


def _cut(table: Table, row: int, decision: Decision, night: int) -> int:
    """Return the first night of the suspected level."""
    if decision.cut is not None:
        return decision.cut
    known = np.isfinite(table.values[row, : night + 1 - table.offset]).nonzero()[0] + table.offset
    return int(known[-min(decision.nights or 1, len(known))])


def _why(series: str, experiment: str, evidence: Evidence, asking: Asking) -> str:
    """Say why the series was not measured again."""
    if evidence.ended == BROKEN:
        return evidence.words
    if series in asking.stalled:
        return "the time budget ran out"
    for stamp in asking.asked[series]:
        artifact = asking.artifact(experiment, stamp)
        if artifact is None:
            return f"the artifact of {stamp} is unknown; the night was imported, added by hand, or measured without TVM"
        lack = evidence.lack(id_of(series), experiment, artifact)
        if lack is not None:
            return lack.error
    return "there are no older artifacts to compare with"


def lines(confirmation: Confirmation) -> Iterator[str]:
    """Write a line or two for the report; nothing where nothing was suspicious."""
    evidence = confirmation.evidence
    parts = [text for kind in _SAID for text in _parts(confirmation.outcomes, kind)]
    if parts:
        runs = f"{len(evidence.runs)} run{'s' * (len(evidence.runs) != 1)}"
        yield f"Remeasured tonight ({runs}, {format_duration(evidence.seconds)}): {'; '.join(parts)}."
    left = [outcome for outcome in confirmation.outcomes if outcome.outcome == OutcomeKind.UNMEASURED]
    if left:
        shown = [f"{elide(outcome.name, 60)} ({elide(outcome.why, 200)})" for outcome in left]
        yield f"Not remeasured, so the decision rests on the history alone: {format_list(shown, _NAMED)}."
    if evidence.ended == BUDGET:
        yield f"The time budget of {evidence.budget_s:.0f} s for remeasuring ran out (confirm_seconds in the config)."


_SAID = {
    OutcomeKind.REPRODUCED: "the difference between the artifacts was reproduced in {names}",
    OutcomeKind.OUTLIER: "no difference remained in {names}",
    OutcomeKind.MACHINE: "caused by the machine, not TVM, in {names}: {because}",
    OutcomeKind.UNCLEAR: "still unclear in {names}",
    OutcomeKind.MODES: "no more than single builds differ without any change in {names}",
    OutcomeKind.YOUNG: "reproduced, but no more than single builds may differ by chance, in {names}",
}


def _parts(outcomes: Sequence[Outcome], kind: OutcomeKind) -> Iterator[str]:
    """Describe the series with this outcome, those with the same evidence together."""
    members = [outcome for outcome in outcomes if outcome.outcome == kind]
    for evidence in dict.fromkeys(outcome.evidence for outcome in members):
        yield _part([outcome for outcome in members if outcome.evidence == evidence], kind)


def _part(members: Sequence[Outcome], kind: OutcomeKind) -> str:
    names = format_list([elide(outcome.name, 60) for outcome in members], _NAMED)
    text = _SAID[kind].format(names=names, because=_because(members))
    if kind == OutcomeKind.MACHINE and any(outcome.changed for outcome in members):
        text += " (or by the experiment itself, because its code or config changed)"
    return text


def _because(members: Sequence[Outcome]) -> str:
    if members[0].evidence in _BECAUSE:
        return _BECAUSE[members[0].evidence]
    others = "the same artifact's other runs" if all(outcome.same for outcome in members) else "older artifacts"
    return f"{others} moved as well"


_BECAUSE = {
    SAME_ARTIFACT: "the same artifact was measured before and after the shift",
    SAME_VERSION: "the same version of TVM was measured before and after the shift",
    CONTROLS: "controls moved as well",
}
