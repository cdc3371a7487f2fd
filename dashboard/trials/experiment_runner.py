"""One experiment after the other, measured with any artifact by the night's own engine; nothing of it is published.

The experiment's code, config and seed are those of the workspace; only the artifact differs. Environment, process
groups and time limits are as in a night.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.night import engine, setup_cache
from dashboard.night.context import write_reference
from dashboard.plan.job import Job
from dashboard.process.sandbox import Guest
from dashboard.trials.rounds import MeasuredRun, MeasuringError, Round, RoundState
from dashboard.trials.workspace import MeasuringWorkspace, ScratchContext
from tvmdash import common, records
from tvmdash.common.files import trees
from tvmdash.dashboard_info import StepResult
from tvmdash.dashboard_info.stages import pipeline
from tvmdash.measure.prebuilt import LAYOUT
from tvmdash.text import format_list

POINTS, METRICS, MINUTES = "TVMDASH_POINTS", "TVMDASH_METRICS", "TVMDASH_MINUTES"
LEAST_S = 1.0
"""With less time left, nothing is begun."""
_LAST_PROCESS_S = 20.0
"""For the process that is measuring when an experiment begins no other one, so that what it has is not lost."""
_STAGES = ("run", "analyze")


@dataclass(frozen=True)
class Hosting:
    """The isolation of a round whose TVMs are not all trusted.

    guest: what its stages are run with; None where all is trusted. setup_on: the trusted TVM that a setup is run with,
    because nights take what it leaves; None where there is none.
    """

    guest: Guest | None = None
    setup_on: Artifact | None = None


TRUSTED = Hosting()
"""Where all TVMs are the home's own, or named by its operator."""


@dataclass
class MeasuringBudget:
    """The time for measuring, from `begun` on."""

    total_s: float = math.inf
    begun: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        return self.total_s - (time.monotonic() - self.begun)

    def restart(self, total_s: float) -> None:
        """Begin the budget now, with `total_s`."""
        self.total_s, self.begun = total_s, time.monotonic()


@dataclass
class ExperimentRunner:
    """Runs experiments in a workspace, within a budget."""

    workspace: MeasuringWorkspace
    budget: MeasuringBudget
    _context: ScratchContext = field(init=False)
    _jobs: dict[str, Job] = field(default_factory=dict)
    _took_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._context = self.workspace.scratch_context()

    def fingerprint(self, experiment: str) -> str:
        """Return the fingerprint of the experiment's code and config as they were copied here."""
        return self._context.workspace(self.job(experiment)).fingerprint.read_text(encoding="ascii")

    def check_budget(self, experiment: str, *, runs: int = 1) -> None:
        """Raise MeasuringError where that many runs would not fit any more, going by the experiment's last one."""
        if self.budget.left_s <= max(LEAST_S, (runs - 0.2) * self._took_s.get(experiment, 0.0)):
            raise MeasuringError(
                RoundState.BUDGET, f"the time budget of {self.budget.total_s:.0f} s for measuring is used up"
            )

    def measure(
        self, asked: Round, artifact: Artifact, beside: Artifact | None = None, hosting: Hosting = TRUSTED
    ) -> MeasuredRun:
        """Run the round once on `artifact`, in turn with `beside`; MeasuringError where it fails.

        Hold a lease on either.
        """
        path = self._run(asked, artifact, beside, hosting)
        try:
            data = dict(common.read_json(path))
            night = records.read_data(path, asked.experiment, home=self.workspace.home.machine())
        finally:
            # All runs have one stamp: a later one that leaves no file must not be read as this one.
            path.unlink(missing_ok=True)
        data["night"]["config"] = dict(self.job(asked.experiment).config)
        values = list(night.values())
        if asked.needs_values and not values:
            errors = [failure.error for failure in night.failures]
            raise MeasuringError(RoundState.FAILED, f"analyze: {format_list(errors, 2) or 'it left no value'}")
        wanted = tuple(value for value in values if asked.asks_for(value.key.labels))
        if asked.needs_values and not wanted:
            raise MeasuringError(RoundState.FAILED, "analyze: it left no value of these points")
        return MeasuredRun(artifact, data, wanted)

    def _run(self, asked: Round, artifact: Artifact, beside: Artifact | None, hosting: Hosting) -> Path:
        """The data file that one run leaves, in a folder that nobody reads."""
        began = time.monotonic()
        spec = ArtifactSpec("bench", artifact.key)
        self._context.artifacts[spec] = artifact
        job = self.job(asked.experiment)
        job = replace(job, tvm=spec, config=self._config(job, asked))
        self._setup(job, hosting)
        self._name_reference(job, beside)
        context = replace(self._context, guest=_show(hosting.guest, artifact, beside))
        for name in _STAGES:
            # What the run before left.
            trees.remove(self._context.workspace(job).of(name))
            self._check(name, engine.perform(context, job, pipeline("experiment").stage(name)))
        self._took_s[asked.experiment] = time.monotonic() - began
        return self._context.home.data_file(asked.experiment, self.workspace.stamp)

    def _name_reference(self, job: Job, beside: Artifact | None) -> None:
        path = self._context.workspace(job).reference
        if beside:
            write_reference(path, beside)
        else:
            path.unlink(missing_ok=True)

    def job(self, name: str) -> Job:
        """The experiment, its code copied; MeasuringError where it does not run."""
        if name not in self._jobs:
            job = self.workspace.find_job(name)
            if job is None:
                text = f"experiment {name} does not run tonight because it is inactive, rejected or failed"
                raise MeasuringError(RoundState.INACTIVE, text)
            self.use(job)
            fingerprint = self.workspace.read_fingerprint(name)
            if fingerprint is not None:
                self._context.workspace(job).fingerprint.write_text(fingerprint, encoding="ascii")
        return self._jobs[name]

    def use(self, job: Job) -> None:
        """Measure the experiment of that name as this job has it from now on."""
        engine.take_copy(self._context, job)
        self._jobs[job.name] = job

    def _config(self, job: Job, asked: Round) -> dict[str, Any]:
        """Make the config; the stages see the real home, the points, and no more time than is left."""
        points = self._context.workspace(job).root / "points.json"
        common.write_json(points, [dict(point) for point in asked.points], durable=False)
        run = pipeline("experiment").stage("run")
        allowed_s = min(job.timeout_s(run, self._context.plan.config), self.budget.left_s)
        # An experiment that keeps to its minutes begins nothing that the end of the budget would cut off.
        minutes = max(allowed_s / 2, allowed_s - _LAST_PROCESS_S) / 60
        named = {
            POINTS: str(points) if asked.points else "",
            METRICS: " ".join(asked.metrics),
            MINUTES: f"{minutes:.3f}",
            LAYOUT: str(asked.layout or ""),
        }
        added = {"TVMDASH_HOME": str(self.workspace.home.root), **{key: text for key, text in named.items() if text}}
        timeouts = {**job.config.get("timeouts", {}), "run": max(1, math.ceil(allowed_s))}
        env = {**job.config.get("env", {}), **added}
        return {**job.config, "env": env, "timeouts": timeouts, "rerun_setup": False}

    def _setup(self, job: Job, hosting: Hosting) -> None:
        """Run the setup where no earlier one came with the copy of the code."""
        setup = pipeline("experiment").stage("setup")
        if (self._context.workspace(job).code / "setup").exists() or not job.has(setup):
            return
        context = self._context
        if hosting.guest:
            self._check_host(job, hosting)
            own = {job.tvm: hosting.setup_on} if job.tvm and hosting.setup_on else {}
            context = replace(context, artifacts={**context.artifacts, **own})
        self._check("setup", engine.perform(context, job, setup))

    def _check_host(self, job: Job, hosting: Hosting) -> None:
        """Raise MeasuringError where a setup would have to be made with a TVM that is not trusted."""
        kept = setup_cache.find(self._context.plan.config.setup, job.experiment, self.fingerprint(job.name))
        if hosting.setup_on is None and kept is None:
            text = "nights reuse its setup, so setup is not run with a guest's TVM. Run a night first"
            raise MeasuringError(RoundState.FAILED, f"setup: {text}")

    def _check(self, name: str, result: StepResult) -> None:
        if result.success:
            return
        if name == "run" and self.budget.left_s <= 0:
            text = f"the time budget of {self.budget.total_s:.0f} s for remeasuring ran out during a run"
            raise MeasuringError(RoundState.BUDGET, text)
        raise MeasuringError(RoundState.FAILED, f"{name}: {result.message}")


def _show(guest: Guest | None, *artifacts: Artifact | None) -> Guest | None:
    """Let the guest see these TVMs as well."""
    if guest is None:
        return None
    return replace(guest, visible=(*guest.visible, *(artifact.path for artifact in artifacts if artifact)))
