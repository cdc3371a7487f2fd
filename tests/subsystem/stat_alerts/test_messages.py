"""What stat_alerts says of a night: each case as values, its text in golden/messages/stat_alerts.txt."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tests.golden_files import Golden
from tests.subsystem import scripts
from tests.tvmdash.incidents.test_incidents import AT, ONE, TWO, moved, opened
from tests.tvmdash.incidents.test_messages import exact, incident
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.ledger import DETECTOR, Event, fold
from tvmdash.judge.history.cause import CONTROLS, MACHINE, SAME_ARTIFACT, SAME_VERSION, Cause, Reason, ReasonKind
from tvmdash.judge.history.fleet.common import Common
from tvmdash.judge.history.fleet.fleet import FleetState, NightDecision
from tvmdash.judge.history.series import Decision, SeriesState
from tvmdash.verdict import (
    MOST_TITLE,
    Absence,
    BesideReference,
    Difference,
    ExactDifference,
    Level,
    Missing,
    NightVerdict,
    OverMachines,
    PlantedStep,
    Sensitivity,
    SeriesOf,
    Standing,
    Suspect,
)
from tvmdash.verdict.remeasured import Outcome, OutcomeKind, Run

scripts.load("stat_alerts")
JUDGE, TABLE, EVIDENCE, RATES, FINDINGS, HEADLINE, REPORT = map(
    importlib.import_module,
    (
        "judging.judge",
        "judging.table",
        "judging.evidence",
        "judging.false_positive_rate",
        "report.findings",
        "report.verdict_text",
        "report.report",
    ),
)
NIGHT = "20260705T031500Z"
SLOWER, FASTER = incident(moved()), incident(moved(worse=False, effect=-0.1))
MACHINES = incident(kind="machine", blame="machine", size=0.1, moved=[], fleet="times on m", notes=["a control moved"])
JUMP = Suspect("s1", "exp s1 run time", 0.5, worse=True)
GAIN = replace(JUMP, effect=-0.2, worse=False)
SOME = {Standing.STEADY: 8}
GAP = Missing("exp", "", 8, 16, Absence.NO_VALUE)
BESIDE = BesideReference("0.26.0", 8, is_first=True, numbers=9)
WORSE = Difference("s1", "exp s1 run time", 0.08, 0.07, 0.09, worse=True)
BETTER = Difference("s2", "exp s2 run time", -0.05, -0.06, -0.04, worse=False)
TOP1 = ExactDifference("s3", "exp s3 accuracy", "", 1.0, 0.997, worse=True)
SIZE = ExactDifference("s4", "exp s4 code size", "bytes", 1000.0, 1128.0, worse=None)
EMPTY: Mapping[str, Any] = dict.fromkeys(("new", "still", "better", "changed", "machine", "suspects", "missing"), ())
HEADLINES: Mapping[str, tuple[Level, Mapping[str, Any]]] = {
    "nothing measured": (Level.NO_DATA, {}),
    "steady": (Level.STEADY, {}),
    "steady, the machine moved": (Level.STEADY, {"machine": [MACHINES]}),
    "steady, perhaps better": (Level.STEADY, {"suspects": [GAIN]}),
    "steady, some blind": (Level.STEADY, {"counts": {Standing.STEADY: 9, Standing.BLIND: 7}}),
    "a regression": (Level.REGRESSION, {"new": [SLOWER]}),
    "a regression and others": (Level.REGRESSION, {"new": [SLOWER, incident(moved(effect=0.08)), SLOWER]}),
    "a regression of a number": (Level.REGRESSION, {"new": [incident(exact(1.0, 0.997, metric="top1", unit=""))]}),
    "a regression, cause unknown": (Level.REGRESSION, {"new": [incident(moved(), blame="unknown")]}),
    "a regression still open": (Level.REGRESSION, {"still": [SLOWER]}),
    "regressions still open": (Level.REGRESSION, {"still": [SLOWER, incident(moved(effect=0.08))]}),
    "a regression and gaps": (Level.REGRESSION, {"new": [SLOWER], "missing": [GAP]}),
    "a suspect": (Level.SUSPECT, {"suspects": [JUMP]}),
    "suspects": (Level.SUSPECT, {"suspects": [replace(JUMP, worse=None), JUMP, GAIN]}),
    "a suspect that was remeasured": (Level.SUSPECT, {"suspects": [replace(JUMP, low=0.4, high=0.6)]}),
    "a suspect by its ratio": (Level.SUSPECT, {"suspects": [replace(JUMP, low=0.4, high=0.6, paired=True)]}),
    "a suspect in units of its scatter": (Level.SUSPECT, {"suspects": [replace(JUMP, effect=7.0, relative=False)]}),
    "a change": (Level.CHANGED, {"changed": [incident(exact(1e-6, 3.8e-6, unit="", worse=None))]}),
    "changes": (
        Level.CHANGED,
        {"changed": [incident(*[exact(5, 6, series=name, workload="mlp", worse=None) for name in "ab"])]},
    ),
    "changes of two metrics, and back": (
        Level.CHANGED,
        {
            "changed": [
                incident(
                    *[
                        exact(5, 6, series=name, metric=name, workload="mlp", worse=None)
                        for name in ("code_size", "planned_memory")
                    ]
                )
            ],
            "fixed": [SLOWER],
        },
    ),
    "changes of unknown metrics": (
        Level.CHANGED,
        {"changed": [incident(*[exact(5, 6, series=name, metric=name, workload="mlp", worse=None) for name in "ab"])]},
    ),
    "a change and an improvement": (
        Level.CHANGED,
        {"changed": [incident(exact(5, 6, worse=None))], "better": [FASTER]},
    ),
    "gaps": (Level.INCOMPLETE, {"missing": [GAP], "counts": {Standing.STEADY: 8, Standing.MISSING: 8}}),
    "gaps of many kinds": (
        Level.INCOMPLETE,
        {
            "missing": [replace(GAP, experiment=why.value, why=why) for why in Absence],
            "counts": {Standing.STEADY: 8, Standing.MISSING: 32},
        },
    ),
    "one gap": (
        Level.INCOMPLETE,
        {"missing": [replace(GAP, series=1)], "counts": {Standing.STEADY: 8, Standing.MISSING: 1}},
    ),
    "gaps, and better": (Level.INCOMPLETE, {"missing": [GAP], "better": [FASTER]}),
    "gaps, and perhaps better": (Level.INCOMPLETE, {"missing": [GAP], "suspects": [GAIN]}),
    "gaps, and the machine moved": (Level.INCOMPLETE, {"missing": [GAP], "machine": [MACHINES]}),
    "young": (Level.BLIND, {"counts": {Standing.YOUNG: 32}}),
    "noisy": (Level.BLIND, {"counts": {Standing.BLIND: 9, Standing.STEADY: 7}}),
    "better": (Level.IMPROVED, {"better": [FASTER]}),
    "back": (Level.IMPROVED, {"fixed": [SLOWER]}),
    "on all machines": (
        Level.REGRESSION,
        {"new": [SLOWER], "machines": {ONE: OverMachines(ONE, ("a", "b", "c"), name="exp s1 run time")}},
    ),
    "on all of many machines": (
        Level.REGRESSION,
        {"new": [SLOWER], "machines": {ONE: OverMachines(ONE, tuple("abcde"), (), (), "s1", 0.05, 0.04, 0.06)}},
    ),
    "on one machine alone": (Level.REGRESSION, {"new": [SLOWER], "machines": {ONE: OverMachines(ONE, ("a",), ("b",))}}),
    "on some machines": (
        Level.REGRESSION,
        {"new": [SLOWER], "machines": {ONE: OverMachines(ONE, ("a", "b"), (), ("c",))}},
    ),
    "beside: no difference": (Level.STEADY, {"beside": BESIDE}),
    "beside: slower": (Level.CHANGED, {"beside": replace(BESIDE, differences=(WORSE,))}),
    "beside: slower and faster": (Level.CHANGED, {"beside": replace(BESIDE, differences=(WORSE, WORSE, BETTER))}),
    "beside: another number": (Level.CHANGED, {"beside": replace(BESIDE, exact=(TOP1,))}),
    "beside: other numbers": (Level.CHANGED, {"beside": replace(BESIDE, exact=(TOP1, SIZE))}),
    "beside: numbers only": (Level.CHANGED, {"beside": replace(BESIDE, series=0, numbers=3, exact=(TOP1,))}),
    "beside: one number": (Level.STEADY, {"beside": replace(BESIDE, series=0, numbers=1)}),
    "beside: itself": (Level.STEADY, {"beside": replace(BESIDE, is_itself=True)}),
    "beside: itself, numbers only": (Level.STEADY, {"beside": replace(BESIDE, is_itself=True, series=0, numbers=2)}),
    "beside: too early": (Level.BLIND, {"beside": BESIDE, "counts": {Standing.YOUNG: 8}}),
    "beside: better": (Level.IMPROVED, {"beside": BESIDE, "better": [FASTER]}),
    "beside: a regression is graver": (Level.REGRESSION, {"beside": BESIDE, "new": [SLOWER]}),
}


def headlines() -> Iterator[tuple[str, str]]:
    for name, (level, given) in HEADLINES.items():
        values = {**EMPTY, "counts": SOME, **given}
        counts = Counter(values["counts"])
        unseeing = {("run_time", "exp"): counts[Standing.BLIND] + counts[Standing.YOUNG]}
        found = FINDINGS.Findings(**{**values, "counts": counts, "blind_of": Counter(unseeing)})
        title, reasons = HEADLINE.title(level, found), HEADLINE.reasons(level, found)
        assert len(title) <= MOST_TITLE
        yield f"headline: {name}", "\n- ".join((HEADLINE.headline(level, found), title, *reasons))


def decided(kind: ReasonKind, needed: float | None = None) -> Decision:
    return Decision("quiet", Reason(kind, needed=needed), 0, SeriesState())


def judged(decisions: Mapping[str, Decision], common: float | None = None, **more: Any) -> Any:
    """A night of one fleet, whose series are called as their keys."""
    together = None if common is None else Common(0, common, 0.001, 0.9, 32, Cause(MACHINE))
    night = NightDecision(decisions, FleetState(), together)
    rows = {key: row for row, key in enumerate(decisions)}
    return JUDGE.Judged(0, (JUDGE.FleetNight("times", rows, {}, FleetState(), frozenset(), night),), None, **more)


def lines(
    verdict: NightVerdict,
    decisions: Mapping[str, Decision] | None = None,
    events: tuple[Event, ...] = (),
    rates: Mapping[str, Any] | None = None,
    *,
    earlier: tuple[Event, ...] = (),
    **night: Any,
) -> str:
    decisions = {"s1": decided(ReasonKind.WITHIN_NOISE)} if decisions is None else decisions
    rows = tuple(TABLE.TableRow(key, "exp", "run_time", "ms", "lower", f"exp {key} run time", "f") for key in decisions)
    none, count = np.empty((0, 0)), np.empty((0, 0), int)
    table = TABLE.Table((NIGHT,), 0, rows, none, none, none, count, count, count, {})
    ledger = fold([*earlier, *events])
    told = REPORT.report_lines(table, judged(decisions, **night), ledger, events, rates or {}, verdict, set())
    return "\n".join(line.text for line in told)


QUIET = NightVerdict(NIGHT, Level.STEADY, "")
OLD = opened(found="20260704T031500Z")
UNMEASURED = Outcome("s9", "exp s9 run time", OutcomeKind.UNMEASURED, why="the time budget ran out")
RERUN = Run("exp", NIGHT, "a", {"s1": 1.0}, 90.0)


def again(*outcomes: Outcome, **evidence: Any) -> Any:
    return EVIDENCE.Confirmation(EVIDENCE.Evidence(NIGHT, 3.0, (RERUN, RERUN), **evidence), outcomes)


def remeasured(kind: OutcomeKind, **changes: Any) -> Outcome:
    return Outcome("s1", "exp s1 run time", kind, 5, 5, 0.05, 0.04, 0.06, **changes)


def reports() -> Iterator[tuple[str, str]]:
    yield "report: quiet", lines(QUIET)
    yield "report: all moved together", lines(QUIET, common=0.03)
    yield "report: suspects", lines(replace(QUIET, suspects=(replace(JUMP, series="s2"), GAIN)))
    yield "report: nothing else could be judged", lines(replace(QUIET, suspects=(JUMP,)), {})
    yield "report: nothing could be judged", lines(QUIET, {})
    few = {f"s{at}": decided(ReasonKind.TOO_FEW_NIGHTS, 18) for at in range(4)}
    others = {
        kind.value: decided(kind) for kind in (ReasonKind.NO_VALUE, ReasonKind.NEW_LEVEL, ReasonKind.NOT_POSITIVE)
    }
    yield "report: not judged", lines(QUIET, {**few, **others})
    yield "report: a new incident", lines(QUIET, events=(opened(),))
    yield "report: still open", lines(QUIET, earlier=(OLD, opened(TWO, moved("s2"), found="20260704T031500Z")))
    joined = Event.of(AT, DETECTOR, ledgers.JOINED, ONE, ledgers.Joined((moved("s7"), moved("s8"))))
    yield "report: more moved", lines(QUIET, events=(joined,), earlier=(OLD,))
    alarm = ledgers.changed(ONE, "false_alarm", at=AT, who=DETECTOR, words="back where it was")
    yield "report: a false alarm", lines(QUIET, events=(alarm,), earlier=(OLD,))
    silence = Event("2026-07-01T00:00:00Z", "ann", "silenced", "", {"pattern": "*", "until": "2026-08-01T00:00:00Z"})
    yield "report: silenced", lines(QUIET, earlier=(OLD, silence))
    some = SeriesOf("exp", 8, ("exp a", "exp b", "exp c"))
    yield "report: series came", lines(replace(QUIET, appeared=(some, SeriesOf("other", 2, ("other a", "other b")))))
    yield "report: series went", lines(replace(QUIET, vanished=(some,)))
    yield "report: one retired, one muted", lines(replace(QUIET, retired=1, muted=1))
    yield "report: several retired and muted", lines(replace(QUIET, retired=8, muted=4))
    for name, beside in {
        "one difference": replace(BESIDE, differences=(WORSE,)),
        "differences": replace(BESIDE, differences=(WORSE, BETTER)),
        "numbers": replace(BESIDE, exact=(TOP1, SIZE)),
    }.items():
        yield f"report: beside, {name}", lines(replace(QUIET, beside=beside))
    steps = (PlantedStep(0.02, 8, 3, 2), PlantedStep(0.05, 8, 8, 0))
    yield "report: sensitivity", lines(replace(QUIET, sensitivity=Sensitivity(steps, steps, 2, 0, 0, None)))
    yield "report: false alarms", lines(QUIET, rates={RATES.UNCHANGED: RATES.Rate(1000, 5)})
    for kind in [kind for kind in OutcomeKind if kind is not OutcomeKind.UNMEASURED]:
        yield f"remeasured: {kind}", lines(QUIET, confirmation=again(remeasured(kind)))
    for evidence in (SAME_ARTIFACT, SAME_VERSION, CONTROLS):
        machine = remeasured(OutcomeKind.MACHINE, evidence=evidence)
        yield f"remeasured: machine by {evidence}", lines(QUIET, confirmation=again(machine))
    ran = remeasured(OutcomeKind.MACHINE, same=True, changed=True)
    yield "remeasured: machine by its other runs, or the experiment", lines(QUIET, confirmation=again(ran))
    yield "remeasured: not, the budget is spent", lines(QUIET, confirmation=again(UNMEASURED, ended=EVIDENCE.BUDGET))


def test_messages(golden: Golden) -> None:
    golden.messages("stat_alerts", [*headlines(), *reports()])
