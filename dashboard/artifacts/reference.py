"""The TVM that tonight's is measured against where nobody names one: the release before, or the build before.

A nightly wheel counts as a build: the night before is what it is to be told from.

A wheel's reference stays the same as long as the wheel's version does, and a build's as long as no commit comes. While
a regression is open, what was measured before it goes first: a bad build as the reference would hide it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import Artifact, ArtifactError, ArtifactSpec, runs_here
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.provide import Provided, list_here, provide, take
from dashboard.artifacts.spec import GIT, LATEST, WHEEL, source_of
from dashboard.artifacts.wheel import package_index, wheel_provider
from dashboard.artifacts.wheel.source import PYPI
from tvmdash.dashboard_info import Night, Reference, ReferenceChoice

MOST_TRIES = 3
_BUILT_ALIKE = ("remote", "options", "toolchain", "source", "python", "machine")
"""The facts that two builds share where only their commits differ."""


@dataclass(frozen=True)
class TonightsBuild:
    """One of tonight's TVMs, got for `spec`; `others`: what else is got tonight. `nights`: earlier ones, newest first.

    The reference is looked for in `folder`, and in the package index where `rebuild` allows the network. bad_since: the
    first night of the oldest open regression; empty where none is open.
    """

    artifact: Artifact
    spec: ArtifactSpec
    others: Collection[ArtifactSpec]
    nights: Sequence[Night]
    folder: Path
    log_folder: Path
    rebuild: bool
    timeout_s: float
    bad_since: str = ""

    @property
    def good_first(self) -> list[Night]:
        """The nights, those before the open regression first."""
        return sorted(self.nights, key=self._is_bad)

    def put_good_first(self, versions: Sequence[str]) -> list[str]:
        """Sort the versions: those measured only since the regression began come last."""
        bad, good = set[str](), set[str]()
        for night in self.nights:
            (bad if self._is_bad(night) else good).update(str(entry.get("version")) for entry in night.artifacts)
        return sorted(versions, key=(bad - good).__contains__)

    def _is_bad(self, night: Night) -> bool:
        return bool(self.bad_since) and night.stamp >= self.bad_since


@dataclass(frozen=True)
class FoundReference:
    """The reference, None where there is none, and what people should know of how it was found."""

    provided: Provided | None
    notes: tuple[str, ...] = ()


def find(tonight: TonightsBuild) -> FoundReference:
    """Find the reference of one of tonight's TVMs; where it cannot be had, a note says so and nothing is raised."""
    if tonight.artifact.provider == GIT:
        return _find_build(tonight)
    found = _find_build(tonight) if source_of(tonight.spec).pre else FoundReference(None)
    return found if found.provided else _find_release(tonight)


def _find_build(tonight: TonightsBuild) -> FoundReference:
    """Find an earlier build at hand. Nothing is built for it, so one that was removed is passed over."""
    there = {artifact.key: artifact for artifact in artifact_store.artifacts_in(tonight.folder)}
    for key in list_builds_before(tonight.artifact, tonight.spec, tonight.others, tonight.good_first):
        if key in there and runs_here(there[key]):
            with contextlib.suppress(ArtifactError):  # it was removed just now
                return FoundReference(take(there[key].path))
    return FoundReference(None)


def list_builds_before(
    artifact: Artifact, spec: ArtifactSpec, others: Collection[ArtifactSpec], nights: Sequence[Night]
) -> Iterator[str]:
    """Yield the keys of earlier builds of the same TVM, newest first; of a night on `artifact` its reference's.

    A build of an earlier night is of the same TVM where it was built alike and taken for the same branch, or for one
    that is not asked for any more.
    """
    for night in nights:
        for entry in night.artifacts:
            if not _is_same_tvm(entry, artifact, spec, others):
                continue
            if entry.get("key") != artifact.key:
                yield str(entry.get("key"))
            else:
                yield from (kept.key for kept in _list_chosen(night, artifact.key) if kept.key != artifact.key)


def _is_same_tvm(
    entry: Mapping[str, Any], artifact: Artifact, spec: ArtifactSpec, others: Collection[ArtifactSpec]
) -> bool:
    facts = entry.get("facts") or {}
    if entry.get("provider") != artifact.provider or any(
        facts.get(name) != artifact.facts.get(name) for name in _BUILT_ALIKE
    ):
        return False
    asked = {(question.get("remote"), question.get("branch")) for question in entry.get("asked") or ()}
    return (spec.shown, spec.branch) in asked or not asked & {(other.shown, other.branch) for other in others}


def _list_chosen(night: Night, key: str) -> Iterator[Reference]:
    """Yield the references that the dashboard chose that night for the artifact with this key."""
    return (
        reference
        for reference in night.references
        if reference.artifact == key and reference.choice is ReferenceChoice.AUTO
    )


def find_kept_release(version: str, tvm: ArtifactSpec, nights: Sequence[Night]) -> Reference | None:
    """Find the release that the newest of these nights chose for that version, of the source of `tvm`."""
    source = source_of(tvm).id
    for night in nights:
        for entry in night.artifacts:
            its_source = (entry.get("facts") or {}).get("source", PYPI)
            if (entry.get("provider"), entry.get("version"), its_source) == (WHEEL, version, source):
                for reference in _list_chosen(night, str(entry.get("key"))):
                    return reference
    return None


def _find_release(tonight: TonightsBuild) -> FoundReference:
    # One deadline for all releases that are tried.
    deadline = LockDeadline(tonight.timeout_s)
    kept = find_kept_release(tonight.artifact.version, tonight.spec, tonight.nights)
    if kept is not None:
        return _provide_first([kept.version], tonight, deadline)
    source = source_of(tonight.spec)
    releases = {artifact.version for artifact in list_here(replace(tonight.spec, branch=LATEST), tonight.folder)}
    here = wheel_provider.list_before(tonight.artifact.version, releases, nightly=source.pre)
    if not tonight.rebuild:
        return _provide_first(here, tonight, deadline)
    log = tonight.log_folder / f"pip-index-{source.package}-reference.log"
    try:
        listed = package_index.list_versions(source, log=log, deadline=deadline)
    except ArtifactError as error:
        return _find_without_index(here, tonight, deadline, error)
    before = wheel_provider.list_before(tonight.artifact.version, listed, nightly=source.pre)
    return _provide_first(before, tonight, deadline)


def _find_without_index(
    here: Sequence[str], tonight: TonightsBuild, deadline: LockDeadline, error: ArtifactError
) -> FoundReference:
    unknown = f"Could not determine the release before TVM {tonight.artifact.version}"
    if not here:
        return FoundReference(None, (f"{unknown}, so TVM is measured without a reference: {error}",))
    found = _provide_first(here, tonight, deadline)
    return FoundReference(
        found.provided,
        (f"{unknown}, so the newest older release on this machine is the reference: {error}", *found.notes),
    )


def _provide_first(versions: Sequence[str], tonight: TonightsBuild, deadline: LockDeadline) -> FoundReference:
    """Provide the first of these releases that can be had and is healthy."""
    faults: dict[str, ArtifactError] = {}
    for version in tonight.put_good_first(versions)[:MOST_TRIES]:
        try:
            provided = provide(
                replace(tonight.spec, branch=version),
                tonight.folder,
                rebuild=tonight.rebuild,
                log_folder=tonight.log_folder,
                timeout_s=deadline.left_s(),
            )
        except ArtifactError as error:
            faults[version] = error
            continue
        return FoundReference(provided, _describe_faults(faults, f"TVM {version} is used instead"))
    return FoundReference(
        None, _describe_faults(faults, f"TVM {tonight.artifact.version} is measured without a reference")
    )


def _describe_faults(faults: Mapping[str, ArtifactError], consequence: str) -> tuple[str, ...]:
    return tuple(describe_fault(f"TVM {version}", error, consequence) for version, error in faults.items())


def describe_fault(reference: str, error: object, consequence: str) -> str:
    """Describe why a reference cannot be had, and what comes of it."""
    return f"Could not obtain the reference {reference}, so {consequence}: {error}"
