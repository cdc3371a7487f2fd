"""Measure points of tonight's experiments again, with the artifacts of tonight and of earlier nights.

The experiment's code, config and seed are tonight's; only the artifact differs. Stages run by the night's own engine:
same environment, process groups, time limits; nothing that they leave is published.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError, read_artifact
from dashboard.artifacts.locks import Deadline
from dashboard.investigate.experiment_runner import ExperimentRunner, MeasuringError
from dashboard.investigate.request import FAILED, GONE, MEASURED, UNKNOWN, Answer, Round, read, write
from dashboard.investigate.workspace import open_workspace
from dashboard.plan.job import CodeFolders
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError
from tvmdash.files.lock import Lock

_LEASE_S = 5.0
_log = logging.getLogger("remeasure")


def remeasure(
    home: Home, request: Path, result: Path, *, budget_s: float | None, code: CodeFolders, seed: int | None = None
) -> list[Answer]:
    """Do the rounds of the file `request` in their order; what came of each, also left in the file `result`.

    Within a night it is part of that night; else it takes the home's lock, or raises HeldError.
    `budget_s` ends it: a round that would not fit, going by the experiment's round before, is not begun.
    """
    rounds = read(request)
    begun = time.monotonic()
    with open_workspace(home, code, seed=seed) as workspace:
        runner = ExperimentRunner(workspace, begun, math.inf if budget_s is None else budget_s)
        asked = _Asked(runner)
        answers: list[Answer] = []
        write(result, workspace.stamp, answers)
        for number, one in enumerate(rounds):
            answers.append(asked.measure(number, one))
            write(result, workspace.stamp, answers)
    return answers


@dataclass
class _Asked:
    """The rounds of one request on a runner, and which pairs of experiment and artifact failed."""

    runner: ExperimentRunner
    _failed: dict[tuple[str, str], str] = field(default_factory=dict)

    def measure(self, number: int, one: Round) -> Answer:
        """One round; whatever goes wrong in it is in the answer."""
        began = time.monotonic()
        key: str | None = None
        try:
            self.runner.job(one.experiment)
            key = self._key(one)
            if (one.experiment, key) in self._failed:
                raise MeasuringError(FAILED, self._failed[one.experiment, key])
            self.runner.check_budget(one.experiment)
            values = self._values(one, key)
        except (DashboardError, OSError) as error:
            state = error.state if isinstance(error, MeasuringError) else FAILED
            if key and state == FAILED:  # it is not tried again in this call
                self._failed[one.experiment, key] = str(error)
            _log.warning("%s with the artifact of %s: %s", one.experiment, one.stamp, error)
            return Answer(one.experiment, one.stamp, number, state, key, seconds=_since(began), error=str(error))
        _log.info("%s with %s: %d values in %.1f s", one.experiment, key, len(values), _since(began))
        return Answer(one.experiment, one.stamp, number, MEASURED, key, values, _since(began))

    def _key(self, one: Round) -> str:
        """The artifact's key, as the data of that night names it."""
        value = common.read_json(self.runner.workspace.home.data_file(one.experiment, one.stamp))
        night: Any = value.get("night") if isinstance(value, dict) else None
        artifact = night.get("artifact") if isinstance(night, dict) else None
        key = artifact.get("key") if isinstance(artifact, dict) else None
        if not isinstance(key, str) or not key or Path(key).name != key:
            raise MeasuringError(
                UNKNOWN, f"the data of {one.stamp} does not name its artifact: imported, or added by hand"
            )
        return key

    def _values(self, one: Round, key: str) -> dict[str, float]:
        """The values of the series that were asked for."""
        artifact, lease = self._take(key)
        with lease:
            found = self.runner.measure(one.experiment, artifact, one.points)
        values = {point.key.id: point.value for point in found if one.asks_for(point.key.labels)}
        if not values:
            raise MeasuringError(FAILED, "analyze: it left no value of these points")
        return values

    def _take(self, key: str) -> tuple[Artifact, Lock]:
        """The artifact from the shelf, which nobody removes before the lease ends. The network is left alone."""
        path = self.runner.workspace.plan.config.artifacts / key
        if not path.exists():
            raise MeasuringError(GONE, f"its artifact {key} is gone")
        try:
            artifact = read_artifact(path)
            lease = artifact_store.use(artifact, Deadline(_LEASE_S))
        except ArtifactError as error:
            raise MeasuringError(GONE, f"its artifact {key} does not count any more: {error}") from error
        if lease is None:
            raise MeasuringError(GONE, f"its artifact {key} has just been removed")
        return artifact, lease


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
