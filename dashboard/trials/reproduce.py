"""The plan of `reproduce`: a published number measured again, with all that pinned it, and whether it holds.

What was measured in turn with a reference then is measured in turn with it now: the machine and the hour cancel.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactSpec, read_artifact, runs_here
from dashboard.artifacts.provide import Provided
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import CodeFolders, Job
from dashboard.trials import result as results
from dashboard.trials.receipt import Code, Fact, PinnedRun, compare_engines, find_code, find_differing, is_same_machine
from dashboard.trials.rounds import MeasuringRequest, Round, RoundOutcome, key_of
from dashboard.trials.session import MeasuringSession
from dashboard.trials.trial import Measuring, begin, name_machine
from dashboard.trials.workspace import MeasuringWorkspace, open_workspace
from tvmdash import common
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.judge import two
from tvmdash.judge.repeated import Repeated, compare_repeated
from tvmdash.records import PointValue
from tvmdash.records.metrics import MAY_BE_EXACT
from tvmdash.trials.trial import (
    Reproduced,
    ReproducedSeries,
    Reproduction,
    RunOfPairs,
    Trial,
    TrialKind,
    TrialNumber,
    TrialSeries,
    TrialState,
    TrialTvm,
)

MATTERS = 0.05
"""A change of a time that matters, as a fraction, where nobody says another."""
_REFERENCE = "reference"
"""The judge's name for the TVM that both were measured beside."""
_BYTES = "bytes"
"""Unit of numbers that no clock and no neighbour on the machine disturbs."""
_LATELY = datetime.timedelta(hours=12)
_log = logging.getLogger("reproduce")


def reproduce(
    home: Home,
    request: MeasuringRequest,
    receipt: PinnedRun,
    *,
    code: CodeFolders,
    matters: float = MATTERS,
) -> tuple[Trial, Path]:
    """Set up what the receipt pins, as far as it can be had, and measure; what came of it, and its file.

    The request says which of its series, and how often. matters: a change of a time that must not go unseen, as a
    fraction. Within a night it is part of that night. DashboardError where the TVM cannot be had or the first round
    fails; HeldError where another night holds the home.
    """
    series = _select(receipt, request.series)
    with (
        open_workspace(home, code, seed=receipt.pins.seed) as workspace,
        MeasuringSession(_set_apart(workspace, receipt.pins.seed), request) as session,
    ):
        here = workspace.find_job(receipt.experiment) or workspace.find_job(experiment_of(receipt.experiment))
        found = find_code(receipt, here, code, workspace.folder / "receipt")
        provided = session.lease(_provide(receipt.pins.artifact, session.finder))
        session.runner.use(_add_library(found, provided.artifact))
        reference, why = _provide_reference(receipt, session)
        differs = [*find_differing(receipt, provided.artifact, found, provided.note), *why]
        part = Reproduction(
            Reproduced.CANNOT_TELL, receipt.source, receipt.experiment, receipt.stamp,
            _list_lines(receipt, series, is_paired=reference is not None), is_same_machine(receipt),
            found.is_same, found.text, matters, reference.key if reference else "", tuple(differs),
        )  # fmt: skip
        new = _make_trial(receipt, provided.artifact, part, session)
        trial, path = begin(home, new, lambda old: _is_unfinished(old) and _asks(old) == _asks(new))
        plan = _Reproducing(series, receipt, provided.artifact, reference, request.rounds)
        # One session for all rounds: the receipt's TVM, code and seed are set up in it.
        measuring = Measuring(replace(request, seed=None), lambda _: contextlib.nullcontext(session), path, trial)
        return measuring.perform(plan), path


def _is_unfinished(trial: Trial) -> bool:
    """Return True where it was stopped lately: values of another day do not show the number as it is now."""
    is_lately = common.is_stamp(trial.stamp) and common.utc_now() - common.parse_stamp(trial.stamp) < _LATELY
    return is_lately and trial.state is not TrialState.DONE


def _asks(trial: Trial) -> object:
    """Return the key that two reproductions share where one continues the other."""
    part = trial.reproduction
    return part and (part.source, part.experiment, part.night, list(part.lines), part.reference)


def _select(receipt: PinnedRun, texts: Sequence[str]) -> Sequence[TrialSeries]:
    """Select the series of these names, or all; a ratio to the reference goes by the name of its series."""
    every, ratios = results.list_series(receipt.repeatable), receipt.ratios
    if not every:
        raise DashboardError(f"{receipt.source}: contains no value that can be remeasured.")
    wanted: dict[str, TrialSeries] = {}
    for text in texts:
        in_ratios = {one.id for one in results.select_named(results.list_series(ratios.values()), text)}
        found = results.select_named(every, text) or [
            one for one in every if one.id in ratios and ratios[one.id].key.id in in_ratios
        ]
        if not found:
            raise DashboardError(f"{receipt.source}: no series {text!r} among its {len(every)}.")
        wanted |= {one.id: one for one in found}
    return list(wanted.values()) or every


def _provide(pinned: Mapping[str, Any], finder: ArtifactFinder) -> Provided:
    """The very artifact where it is at hand, else the same commit or version, built anew."""
    key, facts = str(pinned.get("key")), dict(pinned.get("facts") or {})
    there = finder.config.artifacts / key
    if "/" not in key and (there / MANIFEST).is_file() and runs_here(read_artifact(there)):
        return finder.find(key)
    if facts.get("remote"):
        options = json.loads(str(facts.get("options") or "{}"))
        return finder.provide(ArtifactSpec.of(str(facts["remote"]), str(pinned["commit"]), options))
    return finder.provide(finder.spec_of_wheel(str(pinned["version"]), str(facts.get("source") or "")))


def _provide_reference(receipt: PinnedRun, session: MeasuringSession) -> tuple[Artifact | None, list[Fact]]:
    """Provide the reference that it was measured beside, if any; else say why that cannot be had."""
    if not receipt.ratios or not receipt.pins.reference:
        return None, []
    try:
        return session.lease(_provide(receipt.pins.reference, session.finder)).artifact, []
    except (DashboardError, KeyError) as error:
        return None, [("reference", str(receipt.pins.reference.get("version")), f"not available: {error}")]


def _set_apart(workspace: MeasuringWorkspace, seed: int) -> MeasuringWorkspace:
    """Make a workspace with the receipt's seed, also within a night, and with setups of its own."""
    # Apart, so that old code does not push out what tonight's setup left.
    setup = workspace.plan.config.setup / ".reproduce"
    setup.mkdir(parents=True, exist_ok=True)
    # Engines are large and named by their requirements, so those of the nights serve any code.
    engines = setup / ".engines"
    if not engines.is_symlink() and not engines.exists():
        engines.symlink_to(Path("..") / ".engines")
    (setup.parent / ".engines").mkdir(exist_ok=True)
    return replace(
        workspace, plan=replace(workspace.plan, seed=seed, config=replace(workspace.plan.config, setup=setup))
    )


def _add_library(code: Code, artifact: Artifact) -> Job:
    """The job; with an old library its stages see that one."""
    if code.shared is None:
        return code.job
    python_path = [code.shared / "python", *artifact.import_path]
    added = {"BENCHMARK_DEPS": str(code.shared), "PYTHONPATH": ":".join(map(str, python_path))}
    return replace(code.job, config={**code.job.config, "env": {**code.job.config.get("env", {}), **added}})


def _list_lines(receipt: PinnedRun, series: Iterable[TrialSeries], *, is_paired: bool) -> dict[str, ReproducedSeries]:
    """The numbers of then; of what was measured in turn and can be again, the ratio."""
    values = {value.key.id: value for value in receipt.values}
    ratios = receipt.ratios if is_paired else {}
    return {one.id: _make_line(ratios.get(one.id) or values[one.id]) for one in series}


def _make_line(value: PointValue) -> ReproducedSeries:
    pairs = RunOfPairs.of(value.logs) if value.logs else None
    return ReproducedSeries(Reproduced.CANNOT_TELL, value.value, pairs=pairs)


def _make_trial(receipt: PinnedRun, artifact: Artifact, part: Reproduction, session: MeasuringSession) -> Trial:
    asked = f"{receipt.experiment}/{receipt.stamp}"
    tvm = TrialTvm(asked, artifact.key, artifact.version, artifact.commit)
    was = replace(tvm, key=str(receipt.pins.artifact.get("key")), version=str(receipt.pins.artifact.get("version")))
    fingerprint = session.runner.fingerprint(receipt.experiment)
    return Trial(
        "", TrialState.RUNNING, tvm, was, 0.0, name_machine(), {receipt.experiment: fingerprint},
        kind=TrialKind.REPRODUCE, reproduction=part,
    )  # fmt: skip


@dataclass
class _Reproducing:
    """A reproduction at work. reference: None where nothing is measured in turn."""

    series: Sequence[TrialSeries]
    receipt: PinnedRun
    artifact: Artifact
    reference: Artifact | None
    rounds: int
    _ended: str = ""

    def choose(self, trial: Trial) -> Round | None:
        """Choose all points once more, until they were measured so often."""
        number = sum(trial.runs.values())
        if number >= self.rounds or self._ended:
            return None
        points = tuple({key_of(point): point for point in results.list_points(self.series)}.values())
        return Round(
            self.receipt.experiment, (self.artifact,), points, number, needs_values=False, beside=self.reference
        )

    def take(self, trial: Trial, outcome: RoundOutcome) -> Trial:
        """Add the values of the round; DashboardError where the first one fails."""
        if not outcome.is_measured:
            if not trial.runs:
                outcome.raise_error()
            self._ended = outcome.error
            return replace(trial, ended=outcome.error)
        (run,) = outcome.runs
        found = {one.id: results.value_of(one, run.values) for one in self.series}
        logs = {one.id: results.logs_of(one, run.values) for one in self.series}
        trial = add_values(trial, self.series, found, logs)
        differs = dict.fromkeys((*_part_of(trial).differs, *compare_engines(self.receipt, [run.data])))
        number = sum(trial.runs.values()) + 1
        _log.info("%s: round %d", self.receipt.experiment, number)
        part = replace(_part_of(trial), differs=tuple(differs))
        return replace(trial, runs={self.receipt.experiment: number}, reproduction=part)

    def conclude(self, trial: Trial) -> Trial:
        """Judge each number, all considered, and the whole."""
        if trial.state is TrialState.OVER and not trial.ended:
            trial = replace(trial, ended="the time budget ran out")
        return settle(trial, self.series)


def add_values(
    trial: Trial,
    series: Iterable[TrialSeries],
    found: Mapping[str, float | None],
    logs: Mapping[str, Sequence[float]],
) -> Trial:
    """The trial with what one round gave, by ID: values, and the pairs of what is measured in turn."""
    return results.collect(trial, _list_measured(_part_of(trial).lines, series, found, logs))


def _list_measured(
    lines: Mapping[str, ReproducedSeries],
    series: Iterable[TrialSeries],
    found: Mapping[str, float | None],
    logs: Mapping[str, Sequence[float]],
) -> Iterator[TrialSeries | TrialNumber]:
    for one in series:
        line, value = lines[one.id], found.get(one.id)
        if line.pairs is not None:
            if logs.get(one.id):
                yield replace(one, runs=(RunOfPairs.of(logs[one.id]),))
        elif value is not None and (one.kind in MAY_BE_EXACT or one.unit == _BYTES):
            yield TrialNumber(
                one.id, one.experiment, one.metric, one.labels, line.value, value, one.unit, one.direction, one.title,
                one.name, kind=one.kind,
            )  # fmt: skip
        elif value is not None:
            yield replace(one, rounds=((line.value, value),))


def settle(trial: Trial, series: Iterable[TrialSeries]) -> Trial:
    """The trial with the verdict on each number, all considered, and on the whole."""
    part, found = _part_of(trial), compare(trial)
    changes = {name: results.make_change(each) for name, each in found.items()}
    trial = replace(trial, series=tuple(replace(one, change=changes.get(one.id)) for one in trial.series))
    lines = {one.id: judge(trial, one, found.get(one.id)) for one in series}
    return replace(trial, reproduction=replace(part, lines=lines, verdict=conclude(lines.values())))


def _part_of(trial: Trial) -> Reproduction:
    assert trial.reproduction is not None
    return trial.reproduction


def compare(trial: Trial) -> dict[str, two.Difference]:
    """Compare each number that has noise with then, by the judge of a night; by ID.

    Of pairs, the TVM then and now are two builds that their reference joins.
    """
    evidence = {
        one.id: results.make_evidence(one, [(two.A, then_), *((two.B, run) for run in one.runs)], _REFERENCE)
        for one in trial.series if one.runs and (then_ := _part_of(trial).lines[one.id].pairs)
    }  # fmt: skip
    repeated = {
        one.id: Repeated(one.rounds[0][0], [now for _, now in one.rounds], one.direction)
        for one in trial.series if one.rounds
    }  # fmt: skip
    return two.compare(evidence) | compare_repeated(repeated)


def judge(trial: Trial, wanted: TrialSeries, found: two.Difference | None) -> ReproducedSeries:
    """Judge one number.

    It does not hold where the judge tells a difference and, of a time, that is as large as what matters. It cannot be
    told where so large a change is not excluded, nor of times on another machine; and a difference is laid on TVM only
    where machine and code are those of then. Bytes always matter.
    """
    part = _part_of(trial)
    line, number = part.lines[wanted.id], next((one for one in trial.numbers if one.id == wanted.id), None)
    if number is not None:
        is_near = number.kind == "accuracy" and abs(number.candidate - number.base) < part.matters * abs(number.base)
        why = "it differs from run to run" if number.varies else ""
        line = replace(line, now=number.candidate)
        return _settle(part, line, is_away=number.is_changed and not is_near, why=why, is_exact=True)
    measured = next((one for one in trial.series if one.id == wanted.id), None)
    if found is None or not found.is_bounded or measured is None:
        return replace(line, why=_format_too_few(line, measured))
    low, high = found.bounds
    line = replace(line, now=line.value * (1 + found.effect))
    is_away = found.is_told and abs(found.effect) >= part.matters
    hides = not is_away and max(-low, high) > part.matters
    return _settle(
        part,
        line,
        is_away=is_away,
        why=f"a change of {100 * part.matters:g} % could hide in the noise" if hides else "",
    )


def _settle(
    part: Reproduction, line: ReproducedSeries, *, is_away: bool, why: str, is_exact: bool = False
) -> ReproducedSeries:
    if part.is_same_machine is False and (is_away or not is_exact):
        why = "another machine"
    elif is_away and part.is_same_machine is None:
        why = "the receipt does not name the machine"
    elif is_away and not part.is_same_code:
        why = "the code differs from the original"
    verdict = Reproduced.CANNOT_TELL if why else Reproduced.DOES_NOT_HOLD if is_away else Reproduced.HOLDS
    return replace(line, verdict=verdict, why=why)


def _format_too_few(line: ReproducedSeries, measured: TrialSeries | None) -> str:
    if line.value <= 0 or (measured is not None and any(now <= 0 for _, now in measured.rounds)):
        return "a value is not above 0"
    count = measured.pairs if measured else 0
    return f"it was measured only {count} {'time' if count == 1 else 'times'}"


def conclude(lines: Iterable[ReproducedSeries]) -> Reproduced:
    """The verdict over several numbers: one that does not hold outweighs what cannot be told, and that what holds."""
    verdicts = {line.verdict for line in lines} or {Reproduced.CANNOT_TELL}
    order = (Reproduced.DOES_NOT_HOLD, Reproduced.CANNOT_TELL, Reproduced.HOLDS)
    return next(verdict for verdict in order if verdict in verdicts)


def describe_failure(why: str) -> Trial:
    """The trial of a receipt that could not be measured again."""
    nothing, part = TrialTvm("", "", ""), Reproduction(Reproduced.CANNOT_TELL, why=why)
    return Trial(
        "", TrialState.DONE, nothing, nothing, 0.0, name_machine(), {}, kind=TrialKind.REPRODUCE, reproduction=part
    )
