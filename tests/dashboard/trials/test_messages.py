"""What try, compare, bisect, reproduce and signoff say of typed results: golden/messages/trials.txt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact
from dashboard.trials import reproduce
from dashboard.trials import result as results
from dashboard.trials.rounds import MeasuredRun, Round, RoundOutcome, RoundState
from tests.golden_files import Golden
from tvmdash.records import PointValue, SeriesKey
from tvmdash.records.metrics import Kind
from tvmdash.signoff import text as signoff_text
from tvmdash.trials import text as try_text
from tvmdash.trials.signoff import (
    Signoff,
    SignoffBisection,
    SignoffDoubt,
    SignoffEvidence,
    SignoffIncident,
    SignoffSeries,
    SignoffState,
    SignoffTvm,
    SignoffWaiver,
)
from tvmdash.trials.suspect import Suspect
from tvmdash.trials.trial import (
    Backfill,
    BackfillStep,
    Bisection,
    BisectionState,
    BisectionStep,
    Reproduced,
    ReproducedSeries,
    Reproduction,
    RunOfPairs,
    Trial,
    TrialChange,
    TrialKind,
    TrialNumber,
    TrialSeries,
    TrialState,
    TrialTvm,
)

STAMP = "20261121T000000Z"


def wanted(at: int, unit: str = "ms", metric: str = "run_time", kind: Kind = "time") -> TrialSeries:
    return TrialSeries(f"id{at}", "e", metric, {"workload": f"net.{at}"}, unit=unit, kind=kind)


STILL = [(1.0, 1.001), (1.001, 1.0), (1.0, 1.0), (1.0, 1.001), (1.001, 1.0), (1.0, 1.001)] * 3
SLOWER = [(1.0, 1.081), (1.001, 1.08), (1.0, 1.08), (1.0, 1.081), (1.001, 1.08), (1.0, 1.081)] * 3
WILD = [(1.0, 3.0), (3.0, 1.0), (1.0, 2.0), (2.0, 1.0), (1.0, 2.0)]
NEW = Artifact("new", "wheel", "0.28.dev0", None, Path(), (), (), {}, {}, {})
OLD = replace(NEW, key="old", version="0.26.0")


def compared(series: Mapping[str, Sequence[tuple[float, float]]], **changes: Any) -> Trial:
    """A try whose experiment was measured first on one and then on the other; by metric, or workload, (A, B)."""
    result = tried(**changes)
    for at in range(max(map(len, series.values()), default=0)):
        values = {name: each[at] for name, each in series.items() if at < len(each)}
        runs = (MeasuredRun(OLD, {}, _points(values, 0)), MeasuredRun(NEW, {}, _points(values, 1)))
        result = results.add(result, RoundOutcome(Round("e", (OLD, NEW)), RoundState.MEASURED, runs, elapsed_s=1.0))
    return replace(result, measured_s=float(sum(result.runs.values())))


def _points(values: Mapping[str, tuple[float, float]], side: int) -> tuple[PointValue, ...]:
    return tuple(
        replace(point("code_size", both[side], kind="exact"), unit="bytes")
        if name == "size"
        else replace(point("run_time", both[side]), key=SeriesKey("e", "run_time", {"workload": f"net.{name}"}))
        for name, both in values.items()
    )


def comparisons() -> Iterator[tuple[str, Trial]]:
    faster = [(b, a) for a, b in SLOWER]
    yield "something differs", compared({"1": SLOWER, "2": faster, "size": [(100.0, 104.0)] * 18, "3": STILL})
    yield "few rounds", compared({"1": STILL[:4], "size": [(100.0, 100.0)] * 4})
    yield "one is wild", compared({**{str(at): STILL[:5] for at in range(4)}, "wild": WILD, "zero": [(0.0, 1.0)] * 5})
    yield "a build crashed", compared({}, errors={"e": "on TVM 0.28.0: run: run.sh exited with code 3."})


GOOD, BAD = Suspect("0.10.0"), Suspect("0.22.0")
CULPRIT = Suspect("1b565e7c3" + "0" * 31, "Fold less", "Ada", "2026-08-07T10:00:00Z")
BISECTION = Bisection(
    BisectionState.FOUND, GOOD, BAD, 12, builds=4, suspects=(CULPRIT,), probability=0.97, noise=0.01, least=20.0,
    measurements=48,
)  # fmt: skip
SEVERAL = tuple(Suspect(f"0.{at}.0") for at in range(11, 23))


def bisected(effect: float = 0.051, half: float = 0.004, *, state: TrialState = TrialState.DONE, **part: Any) -> Trial:
    change = TrialChange(effect, effect - half, effect + half, half, half, 6, real=True)
    series = TrialSeries(
        "id", "e", "run_time", {}, name="e net.1 run time", runs=(RunOfPairs(0.05, 0.01, 6),), change=change
    )
    ends = TrialTvm("pypi:0.22.0", "b", "0.22.0"), TrialTvm("pypi:0.10.0", "a", "0.10.0")
    return Trial(
        STAMP, state, *ends, 0.0, "vm", {}, series=(series,), measured_s=60.0, kind=TrialKind.BISECT,
        bisection=replace(BISECTION, **part),
    )  # fmt: skip


BISECTIONS = {
    "found": bisected(),
    "faster, with a version": bisected(-0.05, 0.01, suspects=(Suspect("0.17.0"),)),
    "a range, one of it not measured": bisected(
        answer=BisectionState.RANGE, suspects=SEVERAL[4:6],
        steps={"0.16.0": BisectionStep(failed="run: run.sh exited with code 3.")},
    ),
    "the budget was over": bisected(state=TrialState.OVER, answer=BisectionState.OPEN, suspects=SEVERAL),
    "interrupted": bisected(state=TrialState.INTERRUPTED, answer=BisectionState.OPEN, suspects=SEVERAL),
    "no step": bisected(answer=BisectionState.NO_STEP, suspects=()),
    "unclear": bisected(state=TrialState.OVER, answer=BisectionState.OPEN, suspects=()),
}  # fmt: skip


def reproduced(
    *numbers: tuple[float, Sequence[float]],
    machine: bool | None = True,
    is_same_code: bool = True,
    paired: bool = False,
    ended: str = "",
    **part: Any,
) -> Trial:
    """Numbers of then with what each of the rounds gave now; paired: logarithms of ratios to the reference."""
    series = [replace(wanted(at), name=f"e net.{at} run time") for at in range(len(numbers))]
    pairs = RunOfPairs.of((0.1, 0.101, 0.099))
    lines = {
        one.id: ReproducedSeries(Reproduced.CANNOT_TELL, old, pairs=pairs if paired else None)
        for one, (old, _) in zip(series, numbers, strict=True)
    }
    made = Reproduction(
        Reproduced.CANNOT_TELL, "", "e", "20261101T000000Z", lines, machine, is_same_code,
        part.pop("code", "current code and config"), 0.05, **part,
    )  # fmt: skip
    tvm = TrialTvm("e/20261101T000000Z", "k", "0.27.0")
    rounds = max(len(now) for _, now in numbers)
    trial = Trial(
        STAMP, TrialState.DONE, tvm, tvm, 0.0, "vm", {}, measured_s=90.0, ended=ended, runs={"e": rounds},
        kind=TrialKind.REPRODUCE, reproduction=made,
    )  # fmt: skip
    for at in range(rounds):
        values = {one.id: now[at] for one, (_, now) in zip(series, numbers, strict=True) if at < len(now)}
        logs = {name: (log, log + 0.001, log - 0.001) for name, log in values.items()} if paired else {}
        trial = reproduce.add_values(trial, series, {} if paired else values, logs)
    return reproduce.settle(trial, series)


SAME, SLOW, NOISY = (1.0, 1.002, 0.999, 1.001), (1.2, 1.202, 1.199, 1.201), (1.0, 1.2, 0.9, 1.1)


def reproductions() -> Iterator[tuple[str, Trial]]:
    yield "holds", reproduced((1.0, SAME))
    yield "does not hold", reproduced((1.0, SAME), (1.0, SLOW))
    yield "several do not", reproduced((1.0, SLOW), (1.0, SLOW))
    yield "could hide in the noise", reproduced((1.0, NOISY))
    yield "in turn", reproduced((1.105, (0.1, 0.1, 0.1)), (1.105, (0.3, 0.3, 0.3)), paired=True, reference="wheel-1")
    yield "unknown machine", reproduced((1.0, SLOW), machine=None)
    yield (
        "another machine",
        reproduced((1.0, SLOW), (1.0, SAME), machine=False, differs=(("hw_model", "AMD", "Intel"),)),
    )
    code = "current code, NOT the original code: the receipt names no commit"
    yield "other code", reproduced((1.0, SLOW), is_same_code=False, code=code)
    yield "measured too seldom", reproduced((1.0, (1.0,)), (0.0, SAME), ended="the time budget ran out")


def backfills() -> Iterator[tuple[str, Trial]]:
    ends = TrialTvm("0.25.0", "", "0.25.0"), TrialTvm("0.20.0", "", "0.20.0")
    filled = Backfill("pypi:0.20.0..0.25.0", 6, ("e/data_1.json",), 1)
    done = Trial(
        STAMP, TrialState.DONE, *ends, 0.0, "vm", {}, measured_s=90.0, kind=TrialKind.BACKFILL, backfill=filled
    )
    yield "done", done
    failed = replace(filled, failed={"e on 0.21.0": "it crashed"}, unbuilt={"0.22.0": "no wheel"}, left=3)
    yield "out of time", replace(done, state=TrialState.OVER, backfill=failed)
    change = TrialChange(0.2, 0.18, 0.22, 0.02, 0.03, 5, real=True)
    slow = TrialSeries(
        "id1", "e", "run_time", {}, name="e mlp run time", rounds=((1.0, 1.2),) * 5, change=change, unit="ms"
    )
    calm = replace(slow, rounds=((1.2, 1.2),) * 5, change=replace(change, effect=0.0, low=-0.02, real=False))
    size = TrialNumber("id2", "e", "code_size", {}, 100.0, 104.0, unit="bytes", name="e mlp code size")
    steps = (BackfillStep("0.20.0", "0.21.0", (slow,), (size,)), BackfillStep("0.21.0", "0.25.0", (calm,), ()))
    yield "steps", replace(done, series=(slow,), numbers=(size,), backfill=replace(filled, steps=steps))


def point(metric: str, value: float, **fields: Any) -> PointValue:
    return PointValue(SeriesKey("e", metric, {"workload": "network.mlp"}), "", "lower", value, **fields)


def timed(ratio: float = 1.001, std: float = 0.002, samples: int = 10) -> tuple[PointValue, PointValue]:
    return point("run_time", 1.0), point("run_time_ratio", ratio, kind="ratio", std=std, samples=samples)


def sized(value: float, reference: float | None = 2000.0) -> PointValue:
    return replace(point("code_size", value, kind="exact", reference=reference), unit="bytes")


def tried(*runs: tuple[PointValue, ...], **changes: Any) -> Trial:
    candidate = TrialTvm("git:main", "new", "0.28.dev0", "c" * 40)
    base = TrialTvm("pypi:0.26.0", "old", "0.26.0", note="the TVM of 20261120T000000Z")
    result = Trial(STAMP, TrialState.DONE, candidate, base, 0.01, "vm (AMD)", {"e": "f"})
    for values in runs:
        run = MeasuredRun(NEW, {}, values)
        result = results.add(result, RoundOutcome(Round("e", (NEW,)), RoundState.MEASURED, (run,), elapsed_s=1.0))
    return replace(result, **{"measured_s": float(sum(result.runs.values())), **changes})


TRIES = {
    "slower, and a size": tried((*timed(1.1), sized(2100.0))),
    "faster": tried(timed(0.9)),
    "nothing changed": tried((*timed(), sized(2000.0))),
    "a size that varies": tried((*timed(), sized(2100.0)), (*timed(), sized(2110.0))),
    "not precise enough": tried(timed(1.0, 0.05), state=TrialState.OVER),
    "five pairs may be luck": tried(timed(1.0, 0.001, 5)),
    "only the candidate": tried(timed()[:1]),
    "interrupted": tried(timed(), state=TrialState.INTERRUPTED),
    "still running": tried(timed(), state=TrialState.RUNNING),
    "one build": tried(timed(), base=TrialTvm("pypi:0.28.0", "new", "0.28.0")),
    "ended, and left out": tried(
        timed(),
        errors={"e": "its code or config changed meanwhile", "f": "the time budget of 1 s ran out in its first run"},
        left_out={"other": "does not declare beside_reference"},
    ),
    "nothing was measured": tried(errors={"e": "run: run.sh exited with code 3."}),
}
SIGNED = SignoffSeries("id1", "e net.1 run time", "e", "run_time", "ms", "lower", {}, SignoffState.WORSE)
WORSE = replace(SIGNED, effect=0.06, low=0.047, high=0.073, evidence=SignoffEvidence.PAIRED)
WAIVER = SignoffWaiver(
    "2026-11-20T00:00:00Z", "ann", "bigger model", "e net.1*", "a", "b", "id1", SIGNED.name, SignoffState.WORSE, 0.06
)
CALM = replace(SIGNED, state=SignoffState.SAME, low=-0.01, high=0.012, evidence=SignoffEvidence.PAIRED)


def signed(*series: SignoffSeries, **changes: Any) -> str:
    a = SignoffTvm("a" * 40, "a" * 40, "0.27.dev0", "a" * 40, "git:a", ("a",), 1, 4)
    b = SignoffTvm("0.28.0", "0.28.0", "0.28.0", "c" * 40, "pypi:0.28.0", ("b",), 3)
    numbered = (replace(item, id=f"id{at}", name=f"e net.{at} run time") for at, item in enumerate(series, 1))
    done = Signoff(a, b, 0.05, tuple(numbered), **changes)
    return signoff_text.format_table(done)


def signoffs() -> Iterator[tuple[str, str]]:
    yield "nothing got worse", signed(CALM)
    yield "nothing was measured", signed()
    exact = {"evidence": SignoffEvidence.EXACT, "before": 20480.0, "after": 20992.0, "unit": "bytes"}
    yield (
        "each state",
        signed(
            WORSE,
            replace(SIGNED, state=SignoffState.LOST, error="InternalError: no schedule"),
            replace(SIGNED, state=SignoffState.LOST),
            replace(SIGNED, state=SignoffState.UNCLEAR, doubt=SignoffDoubt.WIDE, low=-0.1, high=0.1, effect=0.0),
            replace(SIGNED, state=SignoffState.CHANGED, **exact),
            replace(WORSE, state=SignoffState.BETTER, effect=-0.1, low=-0.111, high=-0.089),
            replace(SIGNED, state=SignoffState.NEW),
            commands=("python3 -m dashboard compare HOME git:a pypi:0.28.0",),
            faults=("Ignored an invalid waiver: waivers.jsonl:1",),
        ),
    )
    yield (
        "doubts",
        signed(*(replace(SIGNED, state=SignoffState.UNCLEAR, doubt=doubt, lacks="B") for doubt in SignoffDoubt)),
    )
    yield "waived", signed(replace(WORSE, waiver=WAIVER))
    yield "a waiver that it outgrew", signed(replace(WORSE, outgrown=WAIVER))
    incident = SignoffIncident("i20261104-0001", ("a" * 40, "c" * 40), "acknowledged", "ann", "looking at it")
    yield "with an incident", signed(replace(WORSE, incident=incident.id), incidents=(incident,))
    for count in (1, 3):
        found = SignoffBisection("id1", (CULPRIT,), 0.97, count)
        yield f"bisected to {count}", signed(WORSE, bisections=(found,))
    kinds = [kind for kind in SignoffEvidence if kind is not SignoffEvidence.NONE]
    yield "all evidence", signed(*(replace(CALM, evidence=kind) for kind in kinds))


def messages() -> Iterator[tuple[str, str]]:
    for name, done in comparisons():
        yield f"compare: {name}", try_text.format_table(done, every=True)
    for name, answer in BISECTIONS.items():
        yield f"bisect: {name}", try_text.format_table(answer)
    for name, done in (*reproductions(), *backfills()):
        yield f"{done.kind}: {name}", f"{try_text.format_table(done)}\n{try_text.summarize(done)}"
    yield "bisect: as Markdown", try_text.format_markdown(BISECTIONS["found"])
    for name, result in TRIES.items():
        yield f"try: {name}", f"{try_text.format_table(result)}\n{try_text.summarize(result)}"
    yield "try: as Markdown", try_text.format_markdown(TRIES["slower, and a size"])
    yield from ((f"signoff: {name}", text) for name, text in signoffs())


def test_messages(golden: Golden) -> None:
    golden.messages("trials", messages())
