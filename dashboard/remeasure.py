"""Measure points of tonight's experiments again, with the artifacts of tonight and of earlier nights.

The experiment's code, config and seed are tonight's; only the artifact differs. Stages run by the night's own engine:
same environment, process groups, time limits; nothing that they leave is published.
"""

from __future__ import annotations

import logging
import math
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dashboard import engine
from dashboard.artifacts import shelf
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec, read_artifact
from dashboard.artifacts.locks import Deadline, Lock
from dashboard.plan import CodeFolders, Job
from dashboard.remeasure_place import Apart, Place, opened
from dashboard.remeasure_request import (
    BUDGET,
    FAILED,
    GONE,
    INACTIVE,
    MEASURED,
    UNKNOWN,
    Answer,
    Round,
    read,
    write,
)
from tvmdash import common, records
from tvmdash.dashboard_info import Home, StepResult
from tvmdash.errors import DashboardError
from tvmdash.stages import pipeline
from tvmdash.words import list_in_words

POINTS = "TVMDASH_POINTS"
_LEASE_S = 5.0
_STAGES = ("run", "analyze")
_log = logging.getLogger("remeasure")


class _RoundError(DashboardError):
    """A round that gave no values; `state` is one of the states of an answer."""

    def __init__(self, state: str, words: str) -> None:
        super().__init__(words)
        self.state = state


def remeasure(
    home: Home, request: Path, result: Path, *, budget_s: float | None, code: CodeFolders, seed: int | None = None
) -> list[Answer]:
    """Do the rounds of the file `request` in their order; what came of each, also left in the file `result`.

    Within a night it is part of that night; else it takes the home's lock, or raises HeldError.
    `budget_s` ends it: a round that would not fit, going by the experiment's round before, is not begun.
    """
    rounds = read(request)
    begun = time.monotonic()
    with opened(home, code, seed=seed) as place:
        bench = _Bench(place, begun, math.inf if budget_s is None else budget_s)
        answers: list[Answer] = []
        write(result, place.stamp, answers)
        for number, one in enumerate(rounds):
            answers.append(bench.measure(number, one))
            write(result, place.stamp, answers)
    return answers


@dataclass
class _Bench:
    """One experiment after the other on one place; what is ready of each, and how long its last round took."""

    place: Place
    begun: float
    budget_s: float
    _context: Apart = field(init=False)
    _jobs: dict[str, Job] = field(default_factory=dict)
    _took_s: dict[str, float] = field(default_factory=dict)
    _failed: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._context = self.place.context()

    def measure(self, number: int, one: Round) -> Answer:
        """One round; whatever goes wrong in it is in the answer."""
        began = time.monotonic()
        key: str | None = None
        try:
            job = self._job(one.experiment)
            key = self._key(one)
            if (one.experiment, key) in self._failed:
                raise _RoundError(FAILED, self._failed[one.experiment, key])
            self._check_budget(one)
            values = self._values(one, job, key)
        except (DashboardError, OSError) as error:
            state = error.state if isinstance(error, _RoundError) else FAILED
            if key and state == FAILED:  # it is not tried again in this call
                self._failed[one.experiment, key] = str(error)
            _log.warning("%s with the artifact of %s: %s", one.experiment, one.stamp, error)
            return Answer(one.experiment, one.stamp, number, state, key, seconds=_since(began), error=str(error))
        self._took_s[one.experiment] = time.monotonic() - began
        _log.info("%s with %s: %d values in %.1f s", one.experiment, key, len(values), _since(began))
        return Answer(one.experiment, one.stamp, number, MEASURED, key, values, _since(began))

    def _left_s(self) -> float:
        return self.budget_s - (time.monotonic() - self.begun)

    def _check_budget(self, one: Round) -> None:
        if self._left_s() <= max(1.0, 0.8 * self._took_s.get(one.experiment, 0.0)):
            raise _RoundError(BUDGET, f"the {self.budget_s:.0f} s for measuring again are over")

    def _job(self, name: str) -> Job:
        """The experiment, its code copied and its setup at hand."""
        if name not in self._jobs:
            job = self.place.job(name)
            if job is None:
                raise _RoundError(
                    INACTIVE, f"experiment {name} does not run tonight: it is inactive, rejected or failed"
                )
            engine.take_copy(self._context, job)
            fingerprint = self.place.fingerprint(name)
            if fingerprint is not None:
                self._context.workspace(job).fingerprint.write_text(fingerprint, encoding="ascii")
            self._jobs[name] = job
        return self._jobs[name]

    def _key(self, one: Round) -> str:
        """The artifact's key, as the data of that night names it."""
        value = common.read_json(self.place.home.data_file(one.experiment, one.stamp))
        night: Any = value.get("night") if isinstance(value, dict) else None
        artifact = night.get("artifact") if isinstance(night, dict) else None
        key = artifact.get("key") if isinstance(artifact, dict) else None
        if not isinstance(key, str) or not key or Path(key).name != key:
            raise _RoundError(
                UNKNOWN, f"the data of {one.stamp} does not name its artifact: imported, or added by hand"
            )
        return key

    def _values(self, one: Round, job: Job, key: str) -> dict[str, float]:
        artifact, lease = self._take(key)
        with lease:
            spec = ArtifactSpec("remeasure", key)
            self._context.artifacts[spec] = artifact
            job = replace(job, tvm=spec, config=self._config(one, job))
            self._setup(job)
            for name in _STAGES:
                shutil.rmtree(self._context.workspace(job).of(name), ignore_errors=True)
                self._must(name, self._perform(job, name))
        return self._read(one)

    def _take(self, key: str) -> tuple[Artifact, Lock]:
        """The artifact from the shelf, which nobody removes before the lease ends. The network is left alone."""
        path = self.place.plan.config.artifacts / key
        if not path.exists():
            raise _RoundError(GONE, f"its artifact {key} is gone")
        try:
            artifact = read_artifact(path)
            lease = shelf.use(artifact, Deadline(_LEASE_S))
        except ArtifactError as error:
            raise _RoundError(GONE, f"its artifact {key} does not count any more: {error}") from error
        if lease is None:
            raise _RoundError(GONE, f"its artifact {key} has just been removed")
        return artifact, lease

    def _config(self, one: Round, job: Job) -> dict[str, Any]:
        """Tonight's config; the stages see the real home, the points, and no more time than is left."""
        points = self._context.workspace(job).root / "points.json"
        common.write_json(points, [dict(point) for point in one.points], durable=False)
        added = {"TVMDASH_HOME": str(self.place.home.root), **({POINTS: str(points)} if one.points else {})}
        run = pipeline("experiment").stage("run")
        allowed_s = job.timeout_s(run, self._context.plan.config)
        timeouts = {**job.config.get("timeouts", {}), "run": max(1, math.ceil(min(allowed_s, self._left_s())))}
        return {**job.config, "env": {**job.config.get("env", {}), **added}, "timeouts": timeouts, "rerun_setup": False}

    def _setup(self, job: Job) -> None:
        """What tonight's setup left came with the copy of its code; only where there was none it is made, or found."""
        shown = self._context.workspace(job).code / "setup"
        if not shown.exists() and job.has(pipeline("experiment").stage("setup")):
            self._must("setup", self._perform(job, "setup"))

    def _perform(self, job: Job, name: str) -> StepResult:
        return engine.perform(self._context, job, pipeline("experiment").stage(name))

    def _must(self, name: str, result: StepResult) -> None:
        if result.success:
            return
        if name == "run" and self._left_s() <= 0:
            raise _RoundError(BUDGET, f"the {self.budget_s:.0f} s for measuring again ended in the middle of a run")
        raise _RoundError(FAILED, f"{name}: {result.message}")

    def _read(self, one: Round) -> dict[str, float]:
        """The values of the series that were asked for."""
        path = self._context.home.data_file(one.experiment, self.place.stamp)
        try:
            night = records.read_data(path, one.experiment)
        finally:
            path.unlink(missing_ok=True)
        values = {point.key.id: point.value for point in night.values() if one.asks_for(point.key.labels)}
        if not values:
            errors = (
                list_in_words([failure.error for failure in night.failures], 2) or "it left no value of these points"
            )
            raise _RoundError(FAILED, f"analyze: {errors}")
        return values


def are_measured(answers: Sequence[Answer]) -> bool:
    """Whether each round gave values."""
    return all(answer.state == MEASURED for answer in answers)


def _since(began: float) -> float:
    return round(time.monotonic() - began, 3)


def in_words(answers: Sequence[Answer]) -> str:
    """A line for each round."""
    lines = []
    for answer in answers:
        what = f"{len(answer.values)} values" if answer.state == MEASURED else f"{answer.state}: {answer.error}"
        build = answer.artifact or "no artifact"
        lines.append(f"{answer.experiment} of {answer.stamp} ({build}): {what}, {answer.seconds:.1f} s")
    return "\n".join(lines)
