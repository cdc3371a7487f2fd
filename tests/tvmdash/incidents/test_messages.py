"""What incidents, causes and reasons are in words: each case as values, its text in golden/messages/incidents.txt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden_files import Golden
from tests.tvmdash.incidents.test_incidents import AT, ONE, moved, opened
from tvmdash.incidents import ledger as ledgers
from tvmdash.incidents.cause_text import describe_cause, format_cause_in_short
from tvmdash.incidents.events import Moved, MovedFunction
from tvmdash.incidents.headline import format_headline
from tvmdash.incidents.ledger import Event, Incident
from tvmdash.incidents.reason_text import format_reason
from tvmdash.incidents.text import describe
from tvmdash.judge.history.cause import MACHINE, RUNTIME, Cause, Reason, ReasonKind
from tvmdash.judge.history.series import Decision, SeriesState

EXACT: dict[str, Any] = {"metric": "code_size", "unit": "bytes", "kind": "size", "low": None, "high": None}
REGISTERS: dict[str, Any] = {**EXACT, "metric": "registers", "unit": "registers", "kind": "count", "processes": 3}


RATE: dict[str, Any] = {"metric": "tokens_per_s", "unit": "1/s", "effect": -0.09, "kind": "rate"}


def exact(before: float, after: float, **changes: Any) -> Moved:
    values = {**EXACT, "before": before, "after": after, "effect": after / before - 1 if before else 1.0}
    return moved(**{**values, "processes": 3, **changes})


def incident(*series: Moved, **changes: Any) -> Incident:
    return ledgers.fold([opened(ONE, *series, **changes)]).incidents[ONE]


def functions(*changed: tuple[str, float | None, float | None]) -> Moved:
    parts = tuple(MovedFunction(*each) for each in changed)
    return exact(70, 71, **REGISTERS, functions=parts)


MACHINE_MOVED: dict[str, Any] = {
    "kind": "machine",
    "blame": "machine",
    "size": 0.1,
    "moved": [],
    "notes": ["4 of 5 controls moved"],
}
BISECTED = {
    "series": "s1",
    "name": "n",
    "builds": 4,
    "measurements": 48,
    "effect": 0.051,
    "low": 0.047,
    "high": 0.055,
    "probability": 0.97,
    "elapsed_s": 60.0,
    "suspects": [{"id": "1b565e7c3" + "0" * 31, "title": "Fold less", "author": "Ada", "date": "2026-07-04T10:00:00Z"}],
}


def bisected(count: int, **changes: Any) -> Incident:
    answer = Event(AT, "ann", ledgers.BISECTED, ONE, {**BISECTED, "count": count, **changes})
    return ledgers.fold([opened(), answer]).incidents[ONE]


INCIDENTS = {
    "one series": incident(moved(z=6.31, nights=4)),
    "far beyond its noise, with what else changed": incident(moved(z=31.0, nights=1), notes=["new driver"]),
    "remeasured": incident(moved(again_new=5, again_old=5)),
    "remeasured, older artifacts less often": incident(moved(again_new=5, again_old=3, low=0.0495, high=0.0505)),
    "nobody knows before or after": incident(moved(z=6.31, nights=4), versions=["", ""]),
    "last good unknown": incident(moved(z=6.31, nights=4), versions=["", "bbb"]),
    "the same TVM": incident(moved(z=6.31, nights=4), versions=["bbb", "bbb"]),
    "another build of the same TVM": incident(moved(), versions=["v7", "v7"], artifacts=["a", "b"]),
    "nothing was measured for a week": incident(moved(z=6.31, nights=4), after="20260627T031500Z"),
    "faster": incident(moved(worse=False, effect=-0.1)),
    "many series, the worst first": incident(
        *[moved(f"s{at}", effect=at / 100) for at in range(1, 10)], moved("b", worse=False, effect=-0.3)
    ),
    "three workloads": incident(*[moved(name, workload=name) for name in "abc"]),
    "slower and faster": incident(
        moved("a", workload="a"), moved("b", workload="b", worse=False, effect=-0.1, low=-0.11, high=-0.09)
    ),
    "rates of two workloads": incident(*[moved(name, workload=name, **RATE) for name in "ab"]),
    "five series": incident(*[moved(name, workload=name) for name in "abcde"]),
    "nothing was measured for two nights": incident(moved(), after="20260702T031500Z"),
    "two workloads": incident(moved("s1", workload="resnet18"), moved("s2", workload="resnet50", effect=0.081)),
    "series of one workload": incident(moved("s1", workload="mlp"), moved("s2", workload="mlp")),
    "a time whose metric is not called so": incident(moved(metric="latency", kind="time")),
    "no time although its metric is called so": incident(moved(metric="lifetime", kind="number")),
    "lower is worse": incident(moved(metric="tokens_per_s", unit="1/s", effect=-0.09, kind="number")),
    "lower is neither": incident(moved(metric="tokens_per_s", unit="1/s", effect=-0.09, kind="number", worse=None)),
    "not positive": incident(moved(relative=False, effect=4.2, before=-0.2, after=0.3, z=6.0, nights=4)),
    "several not positive": incident(
        *[moved(name, relative=False, effect=4.2, before=0.0, after=-1500.0) for name in ("s1", "s2")]
    ),
    "machine": incident(**MACHINE_MOVED, fleet="an identifier", fleet_kind="times"),
    "machine, of sizes": incident(**MACHINE_MOVED, fleet="an identifier", fleet_kind="sizes"),
    "machine, faster, with its cause": incident(
        **{**MACHINE_MOVED, "size": -0.1}, fleet_name="times on m", cause=Cause("machine", "same_artifact").to_json()
    ),
    "machine, of long ago": incident(**MACHINE_MOVED, fleet="sizes on m"),
    "everything on one machine": incident(**{**MACHINE_MOVED, "blame": "unknown"}),
    "one series, not TVM's": incident(moved(), kind="machine", blame="machine", notes=["a control moved"]),
    "creep": incident(kind="creep", size=0.05, moved=[]),
    "creep of one": incident(moved(z=6.31, nights=40), kind="creep"),
    "without series": incident(moved=[]),
    "with its cause": incident(moved(z=6.31, nights=4), cause=Cause("runtime", "paired", same_code=1).to_json()),
    "an exact number by one byte": incident(exact(35_794, 35_795)),
    "an exact number by much, from one process": incident(exact(35_937, 35_794, processes=1, worse=False)),
    "exact numbers of several series": incident(
        exact(35_794, 35_795, workload="mlp"), exact(20_480, 20_491, series="s2", workload="dqn")
    ),
    "an accuracy": incident(exact(1.0, 0.997, metric="top1", unit="", kind="number")),
    "an error": incident(exact(1e-6, 3.8e-6, metric="max_abs_error", unit="", kind="number", worse=None)),
    "an exact number from zero": incident(exact(0.0, 3.0, metric="count", unit="", kind="number", relative=False)),
    "a sum of the same size": incident(exact(500, 500, worse=None)),
    "exact, the experiment's": incident(exact(1, 2), blame="experiment", notes=["config of exp"]),
    "exact, the machine's": incident(exact(1, 2), blame="machine"),
    "exact, unknown whose": incident(exact(1, 2), blame="unknown"),
    "exact, some worse": incident(exact(5, 6), exact(7, 6, series="s2", worse=False)),
    "in one function": incident(functions(("conv_kernel", 40, 41))),
    "in several functions": incident(functions(("conv_kernel", 40, 41), ("dense_kernel", 30, 29))),
    "functions came, went, and changed alike": incident(
        functions(("a", None, 41), ("b", 30, None), ("c", 5, 5), ("d", 1, 2))
    ),
    "bisected to one": bisected(1),
    "bisected to one of several": bisected(3),
    "bisected for sure": bisected(1, probability=0.99999),
    "bisected to one of many": bisected(5, suspects=[{"id": f"0.{at}.0"} for at in range(5)]),
}
CAUSES = {
    "remeasured, the same code": Cause("runtime", "measured_again", same_code=1, old=1.0, new=1.08),
    "remeasured, some code the same": Cause("build", "measured_again", same_code=1, changed_code=1),
    "controls still": Cause("code", "controls", changed_code=1, controls=5, controls_shift=0.001),
    "a control of them moved": Cause("build", "controls", controls=5, controls_moved=1, controls_shift=0.001),
    "controls moved": Cause("machine", "controls", controls=5, controls_moved=4, controls_shift=0.06),
    "controls moved together": Cause("machine", "controls", controls=5, controls_shift=0.01),
    "itself a control": Cause("machine", "control"),
    "paired": Cause("build", "paired"),
    "same artifact": Cause("machine", "same_artifact"),
    "same artifact, another experiment": Cause("machine", "same_artifact", experiment_changed=True),
    "same version": Cause("machine", "same_version"),
    "older artifacts moved": Cause("machine", "older_artifacts", older=6, older_shift=0.05),
    "older artifacts stayed": Cause("build", "older_artifacts", older=6, older_shift=0.001),
    "exact": Cause("build", "exact"),
    "nothing but the same code": Cause("unknown", same_code=1),
    "nothing known": Cause(),
    "nothing known, some code the same": Cause(same_code=1, changed_code=2),
    "one control scatters": Cause("unknown", controls=1, controls_shift=0.02),
    "controls disagree": Cause("unknown", controls=3, controls_moved=1, controls_shift=0.01, new_artifacts=("b",)),
}
REASONS = {
    **{kind.value: Reason(kind) for kind in ReasonKind},
    ReasonKind.NOT_POSITIVE.value: Reason(ReasonKind.NOT_POSITIVE, -3.0),
    ReasonKind.TOO_FEW_NIGHTS.value: Reason(ReasonKind.TOO_FEW_NIGHTS, nights=2, needed=18),
    ReasonKind.NEW_LEVEL.value: Reason(ReasonKind.NEW_LEVEL, nights=3),
    ReasonKind.WITHIN_NOISE.value: Reason(ReasonKind.WITHIN_NOISE, 1.26, 4, 5.7),
    ReasonKind.TOO_SHORT.value: Reason(ReasonKind.TOO_SHORT, nights=2, needed=4),
    ReasonKind.NOT_RELEVANT.value: Reason(ReasonKind.NOT_RELEVANT, 0.0035),
}


def messages() -> Iterator[tuple[str, str]]:
    for name, case in INCIDENTS.items():
        yield f"incident: {name}", f"{format_headline(case)}\n{describe(case)}"
    for name, cause in CAUSES.items():
        yield f"cause: {name}", f"{format_cause_in_short(cause)}\n{describe_cause(cause)}"
    for name, reason in REASONS.items():
        yield f"reason: {name}", format_reason(Decision("quiet", reason, 1, SeriesState()))
    for kind, whose in ((ReasonKind.SHIFTED, RUNTIME), (ReasonKind.CONTROL_MOVED, MACHINE)):
        decision = Decision("quiet", Reason(kind), 1, SeriesState(), cause=Cause(whose))
        yield f"reason: {kind}, {whose}", format_reason(decision)


def test_messages(golden: Golden) -> None:
    golden.messages("incidents", messages())
