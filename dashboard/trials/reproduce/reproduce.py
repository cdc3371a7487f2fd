"""`reproduce`: measure a published number again, with all that pinned it, and say whether it holds."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactSpec, read_artifact, runs_here
from dashboard.artifacts.provide import Provided
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import CodeFolders, Job
from dashboard.trials.points import key_of
from dashboard.trials.receipt import Receipt
from dashboard.trials.reproduce import facts as reproduce_facts
from dashboard.trials.reproduce import verdict as reproduce_verdict
from dashboard.trials.reproduce.pick import REPRODUCTIONS
from dashboard.trials.reproduce.result import Reproduction
from dashboard.trials.reproduce.source_code import Code, find
from dashboard.trials.reproduce.verdict import MATTERS, Conditions, Line
from dashboard.trials.request import MeasuringRequest
from dashboard.trials.rounds import MeasuredRun, Round, RoundState
from dashboard.trials.series_selection import WantedSeries, of_values, select_named
from dashboard.trials.session import MeasuringSession
from dashboard.trials.workspace import MeasuringWorkspace, open_workspace
from tvmdash import common
from tvmdash.contracts.reproduction import Drawn
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.judge.repeated import judge_repeated

_log = logging.getLogger("reproduce")


def reproduce(
    home: Home,
    request: MeasuringRequest,
    receipt: Receipt,
    *,
    code: CodeFolders,
    matters: float = MATTERS,
    drawn: Drawn | None = None,
) -> tuple[Reproduction, Path]:
    """Set up what the receipt pins, as far as it can be had, and measure; what came of it, and its file.

    The request says which of its series, and how often. matters: a change of a time that must not go unseen, as a
    fraction. drawn: how the receipt was chosen, if by lot. Within a night it is part of that night. DashboardError
    where the TVM cannot be had or the first round fails; HeldError where another night holds the home.
    """
    begun, series = time.monotonic(), _select(receipt, request.series)
    with (
        open_workspace(home, code, seed=receipt.seed) as workspace,
        MeasuringSession(_set_apart(workspace, receipt.seed), request) as session,
    ):
        found_code = _find_code(receipt, workspace, code)
        provided = session.lease(_provide(receipt, session.finder))
        session.runner.use(_add_library(found_code, provided.artifact))
        done = Reproduction(
            workspace.stamp, receipt.source, receipt.experiment, receipt.stamp, provided.artifact.identity(),
            reproduce_facts.is_same_machine(receipt), found_code.is_same, found_code.text, matters,
            list(reproduce_facts.find_differing(receipt, provided.artifact, found_code, provided.note)), drawn=drawn,
        )  # fmt: skip
        session.budget.restart()
        runs = _measure(session, provided.artifact, series, done)
    done.lines = _judge(series, receipt, runs, Conditions(done.is_same_machine, done.is_same_code, matters))
    done.differs += reproduce_facts.compare_engines(receipt, [run.data for run in runs])
    done.elapsed_s = round(time.monotonic() - begun, 3)
    path = workspace.result_file(REPRODUCTIONS)
    common.write_json(path, done.to_json())
    return done, path


def _find_code(receipt: Receipt, workspace: MeasuringWorkspace, code: CodeFolders) -> Code:
    here = workspace.find_job(receipt.experiment) or workspace.find_job(experiment_of(receipt.experiment))
    return find(receipt, here, code, workspace.folder / "receipt")


def _select(receipt: Receipt, texts: Sequence[str]) -> list[WantedSeries]:
    every = of_values(receipt.repeatable)
    named = {text: select_named(every, text) for text in texts}
    for text, matching in named.items():
        if not matching and select_named(of_values(receipt.values), text):
            why = "is a ratio to the reference, but reproduce measures one TVM alone"
            raise DashboardError(f"{receipt.source}: {text!r} {why}. Give the time series of that point, or use `try`.")
        if not matching:
            raise DashboardError(f"{receipt.source}: no series {text!r} among its {len(every)}.")
    if not every:
        raise DashboardError(f"{receipt.source}: contains no value that can be remeasured.")
    return list({series.id: series for matching in named.values() for series in matching}.values()) or every


def _provide(receipt: Receipt, finder: ArtifactFinder) -> Provided:
    """The very artifact where it is at hand, else the same commit or version, built anew."""
    artifact = receipt.artifact
    key, facts = str(artifact.get("key")), dict(artifact.get("facts") or {})
    there = finder.config.artifacts / key
    if "/" not in key and (there / MANIFEST).is_file() and runs_here(read_artifact(there)):
        return finder.find(key)
    if facts.get("remote"):
        options = json.loads(str(facts.get("options") or "{}"))
        return finder.provide(ArtifactSpec.of(str(facts["remote"]), str(artifact["commit"]), options))
    return finder.provide(finder.spec_of_wheel(str(artifact["version"]), str(facts.get("source") or "")))


def _set_apart(workspace: MeasuringWorkspace, seed: int) -> MeasuringWorkspace:
    """A workspace with the receipt's seed, also within a night.

    Its setups are kept apart, so that old code does not push out what tonight's setup left.
    """
    setup = workspace.plan.config.setup / ".reproduce"
    setup.mkdir(parents=True, exist_ok=True)
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


def _measure(
    session: MeasuringSession, artifact: Artifact, series: Sequence[WantedSeries], done: Reproduction
) -> list[MeasuredRun]:
    points = tuple({key_of(wanted.point): wanted.point for wanted in series}.values())
    runs: list[MeasuredRun] = []
    for number in range(session.request.rounds):
        outcome = session.measure(Round(done.experiment, (artifact,), points, needs_values=False))
        if not outcome.is_measured:
            if outcome.state is not RoundState.BUDGET and not runs:
                outcome.raise_error()
            done.ended = outcome.error
            break
        runs += outcome.runs
        done.rounds = number + 1
        _log.info("%s: round %d", done.experiment, number + 1)
    return runs


def _judge(
    series: Sequence[WantedSeries], receipt: Receipt, runs: Sequence[MeasuredRun], was: Conditions
) -> list[Line]:
    old = {value.key.id: value.value for value in receipt.values}
    new = [tuple(value for run in runs if (value := wanted.value_in(run.values)) is not None) for wanted in series]
    repeats = judge_repeated([old[wanted.id] for wanted in series], new)
    return [
        reproduce_verdict.judge(wanted, old[wanted.id], values, repeat, was)
        for wanted, values, repeat in zip(series, new, repeats, strict=True)
    ]
