"""Artifacts as people name them: `pypi:0.26.0`, `wheel:0.26.dev203`, `git:main`, `REMOTE@REVISION`, a key."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.artifacts.artifact import MANIFEST, ArtifactError, ArtifactSpec
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import PROVIDERS, GuestRule, Provided, list_here, provide, take, trust_all
from dashboard.artifacts.runtimes.runtimes import RuntimeRequest, provide_runtimes
from dashboard.artifacts.spec import GIT, LATEST, WHEEL, parse, provider_of, source_of
from dashboard.artifacts.wheel.source import PYPI
from dashboard.plan.settings import HomeConfig
from tvmdash.errors import DashboardError
from tvmdash.redaction import redact

_FORMS = "Use pypi:0.26.0, pypi:latest, wheel:PACKAGE@VERSION, git:REVISION, REMOTE@REVISION, or an artifact key."


def spec_of(name: str, config: HomeConfig) -> ArtifactSpec | None:
    """Return the TVM that `name` asks for; None for the key of an artifact at hand. DashboardError where it names none.

    A git revision is built with the home's `tvm_options`; `git:` and `wheel:VERSION` mean the home's `tvm_remote`.
    """
    if "/" not in name and (config.artifacts / name / MANIFEST).is_file():
        return None
    try:
        spec = parse(name, config.tvm)
    except DashboardError as error:
        raise DashboardError(f"{error} {_FORMS}") from error
    if spec is not None and provider_of(spec) == WHEEL and spec.remote not in {config.tvm.remote, spec.shown}:
        raise DashboardError(
            f"{redact(name)}: contains a secret, which results would keep. Put it into the home's tvm_remote, and use "
            f"wheel:{spec.branch}."
        )
    if spec is None:
        raise DashboardError(
            f"{name}: not an artifact name, and {config.artifacts} contains no artifact with that key. {_FORMS}"
        )
    return spec


@dataclass(frozen=True)
class ArtifactFinder:
    """Settings for getting artifacts: without `rebuild` from the store alone; logs go to `logs`.

    guest_of: how what is not trusted is built.
    """

    config: HomeConfig
    logs: Path
    rebuild: bool = True
    guest_of: GuestRule = trust_all

    def find(self, name: str) -> Provided:
        """Provide the artifact of that name, leased; DashboardError where it cannot be had."""
        spec = spec_of(name, self.config)
        return self.provide(spec) if spec else self.take(name)

    def provide(self, spec: ArtifactSpec, at_most_s: float = math.inf) -> Provided:
        """Provide the artifact that `spec` asks for, with the runtimes of the home's devices."""
        allowed_s = min(self.config.getting_s(spec), at_most_s)
        provided = provide(
            spec,
            self.config.artifacts,
            rebuild=self.rebuild,
            log_folder=self.logs,
            timeout_s=allowed_s,
            guest_of=self.guest_of,
        )
        return replace(provided, note=" ".join(filter(None, [provided.note, *self._provide_runtimes(provided)])))

    def _provide_runtimes(self, provided: Provided) -> list[str]:
        """Build what drives the home's devices where the artifact lacks it; a sentence for each that cannot be had."""
        devices = self.config.devices.values()
        kinds = tuple(dict.fromkeys(device.kind for device in devices if device.tracker is None))
        if not self.rebuild or not kinds:
            return []
        return list(provide_runtimes(provided.artifact, RuntimeRequest(kinds, self.config.tvm_source, self.logs)))

    def resolve(self, spec: ArtifactSpec) -> ArtifactSpec:
        """Make `spec` exact as of now; without `rebuild` as far as is known here."""
        self.logs.mkdir(parents=True, exist_ok=True)
        if not self.rebuild and provider_of(spec) == GIT:
            commit = Mirror.of(self.config.artifacts, spec.remote).resolve(spec.branch)
            if commit is None:
                raise ArtifactError(f"{spec.branch} of {spec.shown} has not been fetched to this machine.")
            return replace(spec, branch=commit)
        if not self.rebuild and spec.branch == LATEST:
            here = list_here(spec, self.config.artifacts)
            if not here:
                raise ArtifactError(f"{self.config.artifacts}: contains no wheel of {spec.shown}.")
            return replace(spec, branch=here[0].version)
        context = BuildContext(self.config.artifacts, self.logs, LockDeadline(self.config.getting_s(spec)))
        return PROVIDERS[provider_of(spec)].resolve(spec, context)

    def spec_of_wheel(self, version: str, source: str) -> ArtifactSpec:
        """Make the spec that gets the wheel of that version again; source: as its facts name it, empty for PyPI's."""
        own = (self.config.tvm, *self.config.tvms.values())
        known = (spec.remote for spec in own if provider_of(spec) == WHEEL and source_of(spec).id == (source or PYPI))
        return ArtifactSpec(next(known, source or PYPI), version)

    def take(self, key: str) -> Provided:
        """Lease the artifact of that key from the store; the network is left alone."""
        return take(self.config.artifacts / key)
