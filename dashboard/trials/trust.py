"""Whose code is measured: a TVM that is not of the home's own branch is a guest, and is built and run apart."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.artifacts.artifact import Artifact, ArtifactSpec
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.spec import GIT, provider_of
from dashboard.plan.settings import HomeConfig, Isolation
from dashboard.process import sandbox
from dashboard.process.sandbox import Guest
from tvmdash.errors import DashboardError

_log = logging.getLogger("measuring")


@dataclass(frozen=True)
class Hosting:
    """How a round is run where the code of a TVM in it is not trusted.

    guest: what its stages are run with; None where all is trusted. setup_on: the trusted TVM that a setup is run with,
    because nights take what it leaves; None where there is none.
    """

    guest: Guest | None = None
    setup_on: Artifact | None = None


TRUSTED = Hosting()
"""Where all TVMs are the home's own, or named by its operator."""


@dataclass(frozen=True)
class Door:
    """Tells guests from the home's own, in a home with this config.

    Each method raises DashboardError where there is a guest that must be isolated and cannot be.
    """

    config: HomeConfig

    @functools.cached_property
    def guest(self) -> Guest:
        """How guests are built and run."""
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
        """How what the spec names is built; None where it is a wheel, or a commit of the home's branch."""
        if provider_of(exact) != GIT:
            return None
        own = self.config.tvm
        if provider_of(own) != GIT:
            return self.guest
        mirror = Mirror.of(self.config.artifacts, own.remote)
        tip = mirror.resolve(own.branch)
        return None if tip and mirror.contains(tip, exact.branch) else self.guest

    def is_trusted(self, artifact: Artifact) -> bool:
        """Whether its code is the home's own."""
        if artifact.provider != GIT:
            return True
        return self.find_guest(ArtifactSpec(artifact.facts["remote"], str(artifact.commit))) is None

    def receive(self, artifacts: Sequence[Artifact]) -> Hosting:
        """How these are run together."""
        trusted = [artifact for artifact in artifacts if self.is_trusted(artifact)]
        return Hosting(None if len(trusted) == len(artifacts) else self.guest, trusted[-1] if trusted else None)
