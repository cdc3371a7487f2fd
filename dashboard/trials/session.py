"""A session of measuring outside a night: the home held, TVMs kept from removal, rounds measured one by one."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.provide import Provided, trust_all
from dashboard.artifacts.spec import GIT, provider_of
from dashboard.plan.artifact_names import ArtifactFinder
from dashboard.plan.job import CodeFolders
from dashboard.plan.settings import HomeConfig, Isolation
from dashboard.process import sandbox
from dashboard.process.sandbox import Guest
from dashboard.trials.experiment_runner import LEAST_S, TRUSTED, ExperimentRunner, Hosting, MeasuringBudget
from dashboard.trials.rounds import (
    MeasuredRun,
    MeasuringError,
    MeasuringRequest,
    Round,
    RoundOutcome,
    RoundState,
    Tvm,
    TvmOfNight,
)
from dashboard.trials.workspace import MeasuringWorkspace, open_workspace
from tvmdash import common
from tvmdash.dashboard_info import Home
from tvmdash.errors import DashboardError

_log = logging.getLogger("measuring")
_Source = Artifact | ArtifactSpec | str
"""An artifact, what asks for one, or the key of one in the store."""


@contextlib.contextmanager
def open_session(home: Home, request: MeasuringRequest, code: CodeFolders) -> Iterator[MeasuringSession]:
    """A session in the home, or in the night that this process is a part of; HeldError where another night holds it."""
    with (
        open_workspace(home, code, seed=request.seed) as workspace,
        MeasuringSession(workspace, request) as session,
    ):
        yield session


@dataclass
class _Progress:
    """The progress of a round."""

    at: int = 0
    artifact: str | None = None
    built_s: float = 0.0


@dataclass
class MeasuringSession:
    """Where and with what a request is measured. Its budget begins with it; `budget.restart()` begins it anew.

    What failed once on an artifact is not run on it again.
    """

    workspace: MeasuringWorkspace
    request: MeasuringRequest
    budget: MeasuringBudget = field(init=False)
    runner: ExperimentRunner = field(init=False)
    finder: ArtifactFinder = field(init=False)
    door: Door | None = field(init=False)
    _leases: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _obtained: dict[ArtifactSpec | str, Provided] = field(default_factory=dict)
    _failures: dict[tuple[str, str | None], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        config = self.workspace.plan.config
        self.budget = MeasuringBudget(self.request.budget_s)
        self.runner = ExperimentRunner(self.workspace, self.budget)
        self.door = Door(config) if self.request.isolates else None
        guest_of = self.door.find_guest if self.door else trust_all
        logs = config.tmp_data / "logs" / self.workspace.stamp
        self.finder = ArtifactFinder(config, logs, self.request.rebuild, guest_of)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._release_all_but(())
        self._leases.close()

    def lease(self, provided: Provided) -> Provided:
        """Keep the artifact from removal until the session ends."""
        return self._leases.enter_context(provided)

    def receive(self, *artifacts: Artifact) -> Hosting:
        """Admit these to be run together; DashboardError where one of them must be isolated and cannot be."""
        return self.door.receive(artifacts) if self.door else TRUSTED

    def measure(self, asked: Round) -> RoundOutcome:
        """Measure one round. Whatever goes wrong in it is in the outcome."""
        began, progress = time.monotonic(), _Progress()
        runs: tuple[MeasuredRun, ...] = ()
        state, text = RoundState.MEASURED, ""
        try:
            runs = self._measure(asked, progress)
        except (DashboardError, OSError) as error:
            state = error.state if isinstance(error, MeasuringError) else RoundState.FAILED
            text = str(error)
            if state is RoundState.FAILED:
                self._failures[asked.experiment, progress.artifact] = text
        return RoundOutcome(
            asked, state, runs, text, progress.at, progress.artifact,
            built_s=progress.built_s,
            elapsed_s=time.monotonic() - began - progress.built_s,
        )  # fmt: skip

    def _measure(self, asked: Round, progress: _Progress) -> tuple[MeasuredRun, ...]:
        self.runner.job(asked.experiment)
        sources = []
        # `progress` tells the outcome how far it came, whatever is raised.
        for progress.at, tvm in enumerate(asked.tvms):
            sources.append(self._source_of(asked.experiment, tvm))
            progress.artifact = _key_of(sources[-1])
            self._check_failures(asked.experiment, progress.artifact)
        self.runner.check_budget(asked.experiment, runs=len(sources))
        self._release_all_but(sources)
        artifacts = []
        for progress.at, source in enumerate(sources):
            progress.artifact = _key_of(source)
            artifacts.append(self._obtain(source, progress))
            progress.artifact = artifacts[-1].key
        beside = self._obtain(self._source_of(asked.experiment, asked.beside), progress) if asked.beside else None
        # Builds take from the budget too.
        self.runner.check_budget(asked.experiment, runs=len(sources))
        hosting = self.receive(*artifacts, *([beside] if beside else []))
        runs = {}
        for progress.at in asked.order:
            progress.artifact = artifacts[progress.at].key
            runs[progress.at] = self.runner.measure(asked, artifacts[progress.at], beside, hosting)
        return tuple(runs[at] for at in range(len(artifacts)))

    def _source_of(self, experiment: str, tvm: Tvm) -> _Source:
        return key_of_night(self.workspace.home, experiment, tvm.stamp) if isinstance(tvm, TvmOfNight) else tvm

    def _check_failures(self, experiment: str, key: str | None) -> None:
        if key and (experiment, key) in self._failures:
            raise MeasuringError(RoundState.FAILED, self._failures[experiment, key])

    def _obtain(self, source: _Source, progress: _Progress) -> Artifact:
        """The artifact, kept from removal until a round asks for others."""
        if isinstance(source, Artifact):
            return source
        if source not in self._obtained:
            self._obtained[source] = (
                self._build(source, progress) if isinstance(source, ArtifactSpec) else self._take_stored(source)
            )
        return self._obtained[source].artifact

    def _build(self, spec: ArtifactSpec, progress: _Progress) -> Provided:
        """Provide the artifact of the spec, built where it is not at hand."""
        began = time.monotonic()
        try:
            provided = self.finder.provide(spec, self.budget.left_s)
        except ArtifactError as error:
            if self.budget.left_s <= LEAST_S:
                text = f"the time budget of {self.budget.total_s:.0f} s ran out during a build"
                raise MeasuringError(RoundState.BUDGET, text) from error
            raise MeasuringError(RoundState.UNBUILT, str(error)) from error
        if provided.is_new:
            progress.built_s += time.monotonic() - began
            # Without a night nobody else prunes, and a search builds many TVMs.
            artifact_store.prune(self.finder.config.artifacts, self.finder.config.max_artifacts_bytes, ())
        return provided

    def _take_stored(self, key: str) -> Provided:
        if not (self.finder.config.artifacts / key).exists():
            raise MeasuringError(RoundState.GONE, f"its artifact {key} no longer exists")
        try:
            return self.finder.take(key)
        except ArtifactError as error:
            raise MeasuringError(RoundState.GONE, f"its artifact {key} is no longer usable: {error}") from error

    def _release_all_but(self, sources: Collection[_Source]) -> None:
        for source in [source for source in self._obtained if source not in sources]:
            self._obtained.pop(source).lease.release()


def _key_of(source: _Source) -> str | None:
    """The artifact's key, where it is known before the artifact is at hand."""
    if isinstance(source, Artifact):
        return source.key
    return source if isinstance(source, str) else None


def key_of_night(home: Home, experiment: str, stamp: str) -> str:
    """The key of the artifact, as the data of that night names it; MeasuringError where it names none."""
    value = common.read_json(home.data_file(experiment, stamp))
    night: Any = value.get("night") if isinstance(value, dict) else None
    artifact = night.get("artifact") if isinstance(night, dict) else None
    key = artifact.get("key") if isinstance(artifact, dict) else None
    if not isinstance(key, str) or not key or Path(key).name != key:
        text = f"the data of {stamp} names no artifact; it was imported, added by hand, or measured without TVM"
        raise MeasuringError(RoundState.UNKNOWN, text)
    return key


@dataclass(frozen=True)
class Door:
    """Tells guests from the home's own, in a home with this config.

    Each method raises DashboardError where there is a guest that must be isolated and cannot be.
    """

    config: HomeConfig

    @functools.cached_property
    def guest(self) -> Guest:
        """The isolation of guests, for builds and runs."""
        if self.config.isolation is Isolation.NEVER:
            return Guest(is_sealed=False)
        obstacle = sandbox.find_obstacle()
        if obstacle and self.config.isolation is Isolation.REQUIRE:
            why = "strangers may ask (github_may_ask)" if self.config.github.may_ask else "the config says 'require'"
            raise DashboardError(f"isolate_candidates: {obstacle}, but {why}.")
        if obstacle:
            _log.warning("Code from outside the home's branch is built and run without a sandbox: %s.", obstacle)
        return Guest(not obstacle, self.config.candidates_may_read)

    def find_guest(self, exact: ArtifactSpec) -> Guest | None:
        """Return the guest that builds the spec; None where it is a wheel, or a commit of the home's branch."""
        if provider_of(exact) != GIT:
            return None
        own = self.config.tvm
        if provider_of(own) != GIT:
            return self.guest
        mirror = Mirror.of(self.config.artifacts, own.remote)
        tip = mirror.resolve(own.branch)
        return None if tip and mirror.contains(tip, exact.branch) else self.guest

    def is_trusted(self, artifact: Artifact) -> bool:
        """Return True where its code is the home's own."""
        if artifact.provider != GIT:
            return True
        return self.find_guest(ArtifactSpec(artifact.facts["remote"], str(artifact.commit))) is None

    def receive(self, artifacts: Sequence[Artifact]) -> Hosting:
        """Choose the isolation to run these together."""
        trusted = [artifact for artifact in artifacts if self.is_trusted(artifact)]
        return Hosting(None if len(trusted) == len(artifacts) else self.guest, trusted[-1] if trusted else None)
