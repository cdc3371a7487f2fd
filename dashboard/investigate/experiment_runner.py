"""One experiment after the other, measured with any artifact by the night's own engine; nothing of it is published.

The experiment's code, config and seed are those of the workspace; only the artifact differs. Environment, process
groups and time limits are as in a night.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.investigate.request import BUDGET, FAILED, INACTIVE
from dashboard.investigate.workspace import MeasuringWorkspace, ScratchContext
from dashboard.night import engine
from dashboard.plan.job import Job
from tvmdash import common, records
from tvmdash.dashboard_info import StepResult
from tvmdash.errors import DashboardError
from tvmdash.records import PointValue
from tvmdash.stages import pipeline
from tvmdash.text import list_in_words

POINTS = "TVMDASH_POINTS"
_STAGES = ("run", "analyze")


class MeasuringError(DashboardError):
    """A round that gave no values; `state` is one of the states of an answer."""

    def __init__(self, state: str, words: str) -> None:
        super().__init__(words)
        self.state = state


@dataclass
class ExperimentRunner:
    """What is ready of each experiment, and how long its last round took; `budget_s` from `begun` on."""

    workspace: MeasuringWorkspace
    begun: float
    budget_s: float
    _context: ScratchContext = field(init=False)
    _jobs: dict[str, Job] = field(default_factory=dict)
    _took_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._context = self.workspace.context()

    @property
    def left_s(self) -> float:
        """How much of the budget is left."""
        return self.budget_s - (time.monotonic() - self.begun)

    def fingerprint(self, experiment: str) -> str:
        """Of the experiment's code and config as they were copied here."""
        return self._context.workspace(self.job(experiment)).fingerprint.read_text(encoding="ascii")

    def check_budget(self, experiment: str, *, rounds: int = 1) -> None:
        """Raise MeasuringError where that many rounds would not fit any more, going by the experiment's last one."""
        if self.left_s <= max(1.0, (rounds - 0.2) * self._took_s.get(experiment, 0.0)):
            raise MeasuringError(BUDGET, f"the {self.budget_s:.0f} s for measuring are over")

    def measure(
        self, experiment: str, artifact: Artifact, points: Sequence[Mapping[str, Any]] = ()
    ) -> list[PointValue]:
        """One run of the experiment on `artifact`, of these points, or of all; at least one value.

        MeasuringError where there is none; hold a lease on the artifact.
        """
        path = self._run(experiment, artifact, points)
        try:
            night = records.read_data(path, experiment, home=self.workspace.home.machine())
        finally:
            path.unlink(missing_ok=True)
        found = list(night.values())
        if not found:
            errors = [failure.error for failure in night.failures]
            raise MeasuringError(FAILED, f"analyze: {list_in_words(errors, 2) or 'it left no value'}")
        return found

    def measure_night(
        self, experiment: str, artifact: Artifact, points: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, Any]:
        """The same as the whole data file of a night; it may hold no value."""
        path = self._run(experiment, artifact, points)
        try:
            value: dict[str, Any] = dict(common.read_json(path))
        finally:
            path.unlink(missing_ok=True)
        value["night"]["config"] = dict(self.job(experiment).config)
        return value

    def _run(self, experiment: str, artifact: Artifact, points: Sequence[Mapping[str, Any]]) -> Path:
        """The data file that one run leaves, in a folder that nobody reads."""
        began = time.monotonic()
        job = self.job(experiment)
        spec = ArtifactSpec("bench", artifact.key)
        self._context.artifacts[spec] = artifact
        job = replace(job, tvm=spec, config=self._config(job, points))
        self._setup(job)
        for name in _STAGES:
            shutil.rmtree(self._context.workspace(job).of(name), ignore_errors=True)
            self._must(name, self._perform(job, name))
        self._took_s[experiment] = time.monotonic() - began
        return self._context.home.data_file(experiment, self.workspace.stamp)

    def job(self, name: str) -> Job:
        """The experiment, its code copied and its setup at hand; MeasuringError where it does not run."""
        if name not in self._jobs:
            job = self.workspace.job(name)
            if job is None:
                raise MeasuringError(
                    INACTIVE, f"experiment {name} does not run tonight: it is inactive, rejected or failed"
                )
            self.use(job)
            fingerprint = self.workspace.fingerprint(name)
            if fingerprint is not None:
                self._context.workspace(job).fingerprint.write_text(fingerprint, encoding="ascii")
        return self._jobs[name]

    def use(self, job: Job) -> None:
        """Measure the experiment of that name as this job has it from now on."""
        engine.take_copy(self._context, job)
        self._jobs[job.name] = job

    def _config(self, job: Job, listed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The config; the stages see the real home, the points, and no more time than is left."""
        points = self._context.workspace(job).root / "points.json"
        common.write_json(points, [dict(point) for point in listed], durable=False)
        added = {"TVMDASH_HOME": str(self.workspace.home.root), **({POINTS: str(points)} if listed else {})}
        run = pipeline("experiment").stage("run")
        allowed_s = job.timeout_s(run, self._context.plan.config)
        timeouts = {**job.config.get("timeouts", {}), "run": max(1, math.ceil(min(allowed_s, self.left_s)))}
        return {**job.config, "env": {**job.config.get("env", {}), **added}, "timeouts": timeouts, "rerun_setup": False}

    def _setup(self, job: Job) -> None:
        """What an earlier setup left came with the copy of the code; only where there was none it is made, or found."""
        shown = self._context.workspace(job).code / "setup"
        if not shown.exists() and job.has(pipeline("experiment").stage("setup")):
            self._must("setup", self._perform(job, "setup"))

    def _perform(self, job: Job, name: str) -> StepResult:
        return engine.perform(self._context, job, pipeline("experiment").stage(name))

    def _must(self, name: str, result: StepResult) -> None:
        if result.success:
            return
        if name == "run" and self.left_s <= 0:
            raise MeasuringError(BUDGET, f"the {self.budget_s:.0f} s for measuring again ended in the middle of a run")
        raise MeasuringError(FAILED, f"{name}: {result.message}")
