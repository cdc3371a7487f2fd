"""`reproduce`: measure a published number again, with all that pinned it, and say whether it holds."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import MANIFEST, Artifact, ArtifactSpec, read_artifact, runs_here
from dashboard.artifacts.provide import Provided
from dashboard.investigate.experiment_runner import ExperimentRunner, MeasuringError
from dashboard.investigate.receipt import Receipt
from dashboard.investigate.reproduce import facts as reproduce_facts
from dashboard.investigate.reproduce import verdict as reproduce_verdict
from dashboard.investigate.reproduce.facts import Fact
from dashboard.investigate.reproduce.pick import REPRODUCTIONS, Drawn
from dashboard.investigate.reproduce.source_code import Code, find
from dashboard.investigate.reproduce.verdict import MATTERS, Conditions, Line
from dashboard.investigate.request import BUDGET
from dashboard.investigate.series_selection import WantedSeries, of_values
from dashboard.investigate.workspace import MeasuringWorkspace, open_workspace
from dashboard.plan.artifact_names import PYPI, ArtifactFinder
from dashboard.plan.job import CodeFolders, Job
from tvmdash import common, records
from tvmdash.dashboard_info import Home, experiment_of
from tvmdash.errors import DashboardError
from tvmdash.stats.comparison import HOLDS, repeated

SCHEMA_VERSION = 2
"""2: a verdict for each series and for all; labels and metric of each."""
ROUNDS = 5
_log = logging.getLogger("reproduce")


@dataclass(frozen=True)
class Wanted:
    """What is to be reproduced. series: as people name them; empty: every one of the receipt.

    matters: a change of a time that must not go unseen, as a fraction. drawn: how the receipt was chosen, if by lot.
    """

    receipt: Receipt
    series: tuple[str, ...] = ()
    rounds: int = ROUNDS
    budget_s: float = math.inf
    rebuild: bool = True
    matters: float = MATTERS
    drawn: Drawn | None = None


@dataclass
class Reproduction:
    """What came of it. is_same_machine is None where the receipt does not say. differs: facts, then and now."""

    stamp: str
    source: str
    experiment: str
    night: str
    artifact: Mapping[str, Any]
    is_same_machine: bool | None
    is_same_code: bool
    code: str
    matters: float
    differs: list[Fact] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    rounds: int = 0
    ended: str = ""
    elapsed_s: float = 0.0
    drawn: Drawn | None = None

    @property
    def verdict(self) -> str:
        """The verdict over all series."""
        return reproduce_verdict.of_all(self.lines)

    @property
    def holds(self) -> bool:
        """Whether every series holds."""
        return self.verdict == HOLDS

    def to_json(self) -> dict[str, Any]:
        """As the file holds it."""
        lines = [{**asdict(line)["series"], **asdict(line)} for line in self.lines]
        for line in lines:
            del line["series"]  # its fields stand beside the others
        return {"schema_version": SCHEMA_VERSION, "verdict": self.verdict, **asdict(self), "lines": lines}


def reproduce(home: Home, wanted: Wanted, *, code: CodeFolders) -> tuple[Reproduction, Path]:
    """Set up what the receipt pins, as far as it can be had, and measure; what came of it, and its file.

    Within a night it is part of that night. DashboardError where the TVM cannot be had or the first round fails;
    HeldError where a night that this is no part of holds the home.
    """
    receipt, begun = wanted.receipt, time.monotonic()
    series = _chosen(receipt, wanted.series)
    with open_workspace(home, code, seed=receipt.seed) as workspace:
        here = workspace.job(receipt.experiment) or workspace.job(experiment_of(receipt.experiment))
        found = find(receipt, here, code, workspace.folder / "receipt")
        finder = ArtifactFinder(
            workspace.plan.config, workspace.plan.config.tmp_data / "logs" / workspace.stamp, wanted.rebuild
        )
        with _provided(receipt, finder) as provided:
            artifact = provided.artifact
            runner = ExperimentRunner(_apart(workspace, receipt.seed), time.monotonic(), wanted.budget_s)
            runner.use(_with_library(found, artifact))
            done = _begin(workspace, wanted, found, artifact, provided.note)
            nights = _measure(runner, wanted, artifact, series, done)
    done.lines = _judged(series, receipt, nights, Conditions(done.is_same_machine, done.is_same_code, wanted.matters))
    done.differs += reproduce_facts.of_engines(receipt, nights)
    done.elapsed_s = round(time.monotonic() - begun, 3)
    path = home.root / "results" / REPRODUCTIONS / f"{done.stamp}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    common.write_json(path, done.to_json())
    return done, path


def _chosen(receipt: Receipt, texts: Sequence[str]) -> list[WantedSeries]:
    every = of_values(receipt.values)
    found = [one for text in texts for one in _named(receipt, every, text)] if texts else every
    if not found:
        raise DashboardError(f"{receipt.source}: holds no value that could be measured again.")
    return list({one.id: one for one in found}.values())


def _named(receipt: Receipt, every: list[WantedSeries], text: str) -> list[WantedSeries]:
    chosen = [one for one in every if text in (one.id, one.name, one.labels.get("path"))]
    chosen = chosen or [one for one in every if text in one.name or one.id.startswith(text)]
    if not chosen:
        raise DashboardError(f"{receipt.source}: holds no series {text!r}, only {len(every)} others.")
    return chosen


def _provided(receipt: Receipt, finder: ArtifactFinder) -> Provided:
    """The very artifact where it is at hand, else the same commit or version, built anew."""
    artifact = receipt.artifact
    key, facts = str(artifact.get("key")), dict(artifact.get("facts") or {})
    there = finder.config.artifacts / key
    if "/" not in key and (there / MANIFEST).is_file() and runs_here(read_artifact(there)):
        return finder.named(key)
    if facts.get("remote"):
        options = json.loads(str(facts.get("options") or "{}"))
        return finder.of(ArtifactSpec.of(str(facts["remote"]), str(artifact["commit"]), options))
    return finder.of(ArtifactSpec(PYPI, str(artifact["version"])))


def _apart(workspace: MeasuringWorkspace, seed: int) -> MeasuringWorkspace:
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


def _with_library(found: Code, artifact: Artifact) -> Job:
    """The job; with an old library its stages see that one."""
    if found.shared is None:
        return found.job
    python_path = [found.shared / "python", *artifact.pythonpath]
    added = {"BENCHMARK_DEPS": str(found.shared), "PYTHONPATH": ":".join(map(str, python_path))}
    return replace(found.job, config={**found.job.config, "env": {**found.job.config.get("env", {}), **added}})


def _begin(workspace: MeasuringWorkspace, wanted: Wanted, found: Code, artifact: Artifact, note: str) -> Reproduction:
    receipt = wanted.receipt
    return Reproduction(
        workspace.stamp, receipt.source, receipt.experiment, receipt.stamp, artifact.identity(),
        reproduce_facts.is_same_machine(receipt), found.is_same, found.words, wanted.matters,
        list(reproduce_facts.differing(receipt, artifact, found, note)), drawn=wanted.drawn,
    )  # fmt: skip


def _measure(
    runner: ExperimentRunner, wanted: Wanted, artifact: Artifact, series: list[WantedSeries], done: Reproduction
) -> list[dict[str, Any]]:
    experiment = wanted.receipt.experiment
    points = list({json.dumps(one.point, sort_keys=True): one.point for one in series}.values())
    nights: list[dict[str, Any]] = []
    for number in range(wanted.rounds):
        try:
            runner.check_budget(experiment)
            nights.append(runner.measure_night(experiment, artifact, points))
        except MeasuringError as error:
            if error.state != BUDGET and not nights:
                raise
            done.ended = str(error)
            break
        done.rounds = number + 1
        _log.info("%s: round %d", experiment, number + 1)
    return nights


def _judged(series: list[WantedSeries], receipt: Receipt, nights: list[dict[str, Any]], was: Conditions) -> list[Line]:
    old = {one.key.id: one.value for one in receipt.values}
    parsed = [list(records.values_of(night, receipt.experiment, receipt.stamp)) for night in nights]
    new = [tuple(value for one in parsed if (value := wanted.value_in(one)) is not None) for wanted in series]
    found = repeated([old[one.id] for one in series], new)
    return [
        reproduce_verdict.judge(one, old[one.id], values, result, was)
        for one, values, result in zip(series, new, found, strict=True)
    ]
