"""The reference of each of tonight's TVMs, as the home's config wants it: named there, found by the dashboard, none."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from dashboard.artifacts import reference as choosing
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec
from dashboard.artifacts.provide import provide, take
from dashboard.artifacts.reference import FoundReference, TonightsBuild
from dashboard.artifacts.spec import GIT, LATEST, provider_of, source_of
from dashboard.plan.job import Job, Plan
from dashboard.plan.settings import HomeConfig, ReferenceRule
from tvmdash.dashboard_info import Night, Reference, ReferenceChoice
from tvmdash.errors import DashboardError

NIGHTS_BACK = 30
"""Nights searched for an earlier TVM of the same remote and branch."""


def list_paired(jobs: Sequence[Job], config: HomeConfig) -> tuple[ArtifactSpec, ...]:
    """List each TVM that one of these jobs measures against a reference, once."""
    if config.reference is ReferenceRule.NONE:
        return ()
    return tuple(dict.fromkeys(job.tvm for job in jobs if job.tvm and job.alone is None))


def find_named(tvm: ArtifactSpec, config: HomeConfig) -> ArtifactSpec | None:
    """Return the reference that the config names; a build from source has the options of `tvm`."""
    if isinstance(config.reference, ReferenceRule):
        return None
    alike = provider_of(config.reference) == GIT and provider_of(tvm) == GIT
    return replace(config.reference, options=tvm.options) if alike else config.reference


class ExpectedReference(enum.Enum):
    """The knowledge of a reference before a night."""

    NAMED = enum.auto()
    """The config names it."""
    ITSELF = enum.auto()
    """The config names the TVM that is measured: an A/A test."""
    KEPT = enum.auto()
    """An earlier night chose a release for the version that was measured last."""
    RELEASE_BEFORE = enum.auto()
    """The release before; which that is, is not known yet."""
    NIGHTLY_BEFORE = enum.auto()
    """The version that the source of nightly wheels has before it; which that is, is not known yet."""
    BUILD_BEFORE = enum.auto()
    """The last build that differs."""
    FIRST_BUILD = enum.auto()
    """There is no earlier build."""


@dataclass(frozen=True)
class Forecast:
    """The expected reference of `tvm`, as `reference`, named as people do.

    last: the version that was measured last, where tonight's may be another.
    """

    tvm: ArtifactSpec
    expected: ExpectedReference
    reference: str = ""
    last: str = ""


def forecast_references(plan: Plan) -> list[Forecast]:
    """Forecast the reference of each TVM that has one; nobody is asked for it."""
    nights = list(plan.home.last_nights(NIGHTS_BACK, jobs=False))
    return [_forecast(tvm, plan.config, nights) for tvm in list_paired((*plan.experiments, *plan.away), plan.config)]


def _forecast(tvm: ArtifactSpec, config: HomeConfig, nights: Sequence[Night]) -> Forecast:
    named = find_named(tvm, config)
    if named is not None:
        return Forecast(tvm, ExpectedReference.ITSELF if named == tvm else ExpectedReference.NAMED, format_spec(named))
    last = next((str(entry["version"]) for night in nights for entry in night.list_taken(tvm.shown, tvm.branch)), "")
    is_build = provider_of(tvm) == GIT
    if last and (is_build or source_of(tvm).pre):
        return Forecast(tvm, ExpectedReference.BUILD_BEFORE, last=last)
    if is_build or source_of(tvm).pre:
        return Forecast(tvm, ExpectedReference.FIRST_BUILD if is_build else ExpectedReference.NIGHTLY_BEFORE)
    kept = choosing.find_kept_release(last if tvm.branch == LATEST else tvm.branch, tvm, nights)
    if kept is None:
        return Forecast(tvm, ExpectedReference.RELEASE_BEFORE, last=last)
    return Forecast(tvm, ExpectedReference.KEPT, kept.version, last if tvm.branch == LATEST else "")


@dataclass(frozen=True)
class References:
    """The references of a night, by the TVM that is measured against each; how they are recorded; notes for people."""

    artifacts: Mapping[ArtifactSpec, Artifact]
    records: tuple[Reference, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class TvmsTonight:
    """The TVMs that a night has got, and those that it could not get, with the reason. `nights`: newest first.

    refused: references that could not be had, which are not tried for another TVM again. bad_since: as in
    `TonightsBuild`.
    """

    config: HomeConfig
    have: Mapping[ArtifactSpec, Artifact]
    lack: Mapping[ArtifactSpec, str]
    nights: Sequence[Night]
    logs: Path
    rebuild: bool
    refused: dict[ArtifactSpec, str] = field(default_factory=dict)
    bad_since: str = ""

    def provide_references(self, wanted: Sequence[ArtifactSpec], leases: ExitStack) -> References:
        """Get the reference of each of the TVMs `wanted`; nobody removes one before `leases` are released."""
        found = {tvm: self._find(tvm) for tvm in wanted if tvm in self.have}
        references = {tvm: item.provided.artifact for tvm, item in found.items() if item.provided}
        for item in found.values():
            if item.provided:
                leases.callback(item.provided.lease.release)
        return References(
            references,
            tuple(dict.fromkeys(self._to_record(tvm, reference) for tvm, reference in references.items())),
            tuple(note for item in found.values() for note in item.notes),
        )

    def _to_record(self, tvm: ArtifactSpec, reference: Artifact) -> Reference:
        choice = ReferenceChoice.AUTO if isinstance(self.config.reference, ReferenceRule) else ReferenceChoice.NAMED
        key = self.have[tvm].key
        return Reference(key, reference.key, reference.provider, reference.version, reference.commit, choice)

    def _find(self, tvm: ArtifactSpec) -> FoundReference:
        named = find_named(tvm, self.config)
        try:
            return self._provide(named) if named else choosing.find(self._describe(tvm))
        except (DashboardError, OSError) as error:  # whatever it is, it costs the night only its reference
            which = f"TVM {format_spec(named)}" if named else f"of TVM {format_spec(tvm)}"
            alone = f"TVM {self.have[tvm].version} is measured without a reference"
            return FoundReference(None, (choosing.describe_fault(which, error, alone),))

    def _describe(self, tvm: ArtifactSpec) -> TonightsBuild:
        return TonightsBuild(
            artifact=self.have[tvm],
            spec=tvm,
            others=[spec for spec in (*self.have, *self.lack) if spec != tvm],
            nights=self.nights,
            folder=self.config.artifacts,
            log_folder=self.logs,
            rebuild=self.rebuild,
            timeout_s=self.config.getting_s(tvm),
            bad_since=self.bad_since,
        )

    def _provide(self, named: ArtifactSpec) -> FoundReference:
        if named in self.have:
            return FoundReference(take(self.have[named].path))
        known = self.lack.get(named) or self.refused.get(named)
        if known:
            raise ArtifactError(known)
        timeout_s, folder = self.config.getting_s(named), self.config.artifacts
        try:
            done = provide(named, folder, rebuild=self.rebuild, log_folder=self.logs, timeout_s=timeout_s)
        except ArtifactError as error:
            self.refused[named] = str(error)
            raise
        return FoundReference(done, (done.note,) if done.note else ())


def format_spec(spec: ArtifactSpec) -> str:
    """Format a TVM as in "0.26.0 from pypi"."""
    return f"{spec.branch} from {spec.shown}"
