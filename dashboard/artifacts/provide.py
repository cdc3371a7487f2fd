"""Gives a night the TVM that it asks for: what is at hand where that will do, else built and proved.

A provider is a row of `PROVIDERS`; nothing outside this package knows which one built an artifact.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self

from dashboard.artifacts import artifact_store
from dashboard.artifacts.artifact import (
    LAST_USED,
    Artifact,
    ArtifactError,
    ArtifactSpec,
    read_artifact,
    write_manifest,
)
from dashboard.artifacts.build_context import BuildContext
from dashboard.artifacts.git import git_provider
from dashboard.artifacts.git.mirror import Mirror
from dashboard.artifacts.locks import LockDeadline
from dashboard.artifacts.spec import GIT, LATEST, WHEEL, Fallback, check_spec, provider_of, source_of
from dashboard.artifacts.wheel import package_index, wheel_provider
from dashboard.process.sandbox import Guest
from tvmdash.common.files.lock import Lock

_LEASE_S = 5.0


class Provider(Protocol):
    """One way to come by a TVM build; a module with these is one."""

    def satisfies(self, artifact: Artifact, spec: ArtifactSpec) -> bool:
        """Return True where this provider built `artifact`, it is what `spec` asks for, and it runs here."""

    def rank(self, artifact: Artifact) -> Any:
        """Sorts the artifacts that satisfy one spec from old to new."""

    def is_exact(self, spec: ArtifactSpec) -> bool:
        """Return True where `spec` means the same TVM every night."""

    def resolve(self, spec: ArtifactSpec, context: BuildContext) -> ArtifactSpec:
        """Make `spec` exact; without network where it is exact already."""

    def base_of(self, exact: ArtifactSpec) -> str:
        """Name the thing to build for `exact`: one night at a time builds it."""

    def build(self, exact: ArtifactSpec, folder: Path, context: BuildContext) -> Artifact:
        """Build and prove the artifact in the empty `folder`."""


GuestRule = Callable[[ArtifactSpec], Guest | None]
"""A rule that gives the sandbox for building an exact spec; None where its code is trusted."""

PROVIDERS: Mapping[str, Provider] = MappingProxyType({WHEEL: wheel_provider, GIT: git_provider})


@dataclass(frozen=True)
class Provided:
    """An artifact that nobody removes until the block ends (`with`) or `lease` is released.

    `note` says in a sentence where it is not quite what was asked for; else it is empty. is_new: it was built just now.
    """

    artifact: Artifact
    note: str
    lease: Lock
    is_new: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lease.release()


@dataclass(frozen=True)
class _Request:
    spec: ArtifactSpec
    provider: Provider
    context: BuildContext
    guest_of: GuestRule
    fallback: Fallback


def trust_all(exact: ArtifactSpec) -> Guest | None:
    """Trust the TVMs that configs and the operator name: their code runs as this user."""
    return None


def provide(
    spec: ArtifactSpec,
    folder: Path,
    *,
    rebuild: bool,
    log_folder: Path,
    timeout_s: float,
    guest_of: GuestRule = trust_all,
    fallback: Fallback = Fallback.UNREACHABLE,
) -> Provided:
    """Return the artifact in `folder` that `spec` asks for, built if it is missing; ArtifactError where it cannot be.

    fallback: when the newest at hand is given instead of what a name that moves on means now. Without `rebuild`, the
    newest at hand, and the network is left alone. Logs of pip and of the health check go to `log_folder`. Everything
    together, waiting for another night included, takes at most about `timeout_s`.
    """
    provider = PROVIDERS[provider_of(spec)]
    check_spec(spec)
    if os.pathsep in str(folder.absolute()):
        raise ArtifactError(
            f"{folder}: a path that contains {os.pathsep!r} cannot be on PYTHONPATH. Choose another folder."
        )
    context = BuildContext(folder.absolute(), log_folder.absolute(), LockDeadline(timeout_s))
    request = _Request(spec, provider, context, guest_of, fallback)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log_folder.mkdir(parents=True, exist_ok=True)
        artifact_store.sweep(request.context.folder)
        return _resolve_and_build(request) if rebuild else _take_without_building(request)
    except OSError as error:
        path = error.filename or folder
        raise ArtifactError(
            f"{path}: {error.strerror or error}. Artifacts need free space and write permission there."
        ) from error


def take(path: Path) -> Provided:
    """Lease the artifact in the folder `path`, without network; ArtifactError where it is not there."""
    artifact = read_artifact(path)
    lease = artifact_store.use(artifact, LockDeadline(_LEASE_S))
    if lease is None:
        raise ArtifactError(f"{path.name}: was removed from {path.parent} by another process.")
    return Provided(artifact, "", lease)


def list_here(spec: ArtifactSpec, folder: Path) -> list[Artifact]:
    """List the artifacts in `folder` that satisfy `spec`, newest first."""
    provider: Provider = PROVIDERS[provider_of(spec)]
    fitting = [artifact for artifact in artifact_store.artifacts_in(folder) if provider.satisfies(artifact, spec)]
    return sorted(fitting, key=provider.rank, reverse=True)


def _take(request: _Request, spec: ArtifactSpec, note: str = "") -> Provided | None:
    """Lease the newest artifact at hand that satisfies `spec`."""
    for artifact in list_here(spec, request.context.folder):
        lease = artifact_store.use(artifact, request.context.deadline)
        if lease is not None:
            return Provided(artifact, note, lease)
    return None


def _take_without_building(request: _Request) -> Provided:
    taken = _take(request, request.spec)
    if taken is None:
        raise ArtifactError(
            f"{request.context.folder}: no tested TVM for {_format_spec(request.spec)}. Run once without "
            "--no-rebuild-tvm."
        )
    return taken


def _resolve_and_build(request: _Request) -> Provided:
    if request.provider.is_exact(request.spec) and (taken := _take(request, request.spec)):
        return taken
    try:
        exact = request.provider.resolve(request.spec, request.context)
    except ArtifactError as error:
        if request.fallback is Fallback.NEVER:
            raise
        return _take_instead(request, f"Could not look up {_format_spec(request.spec)} tonight", error)
    try:
        done = _take(request, exact) or _build(request, exact)
    except ArtifactError as error:
        if request.fallback is not Fallback.ALWAYS or request.provider.is_exact(request.spec):
            raise
        return _take_instead(request, f"TVM {exact.branch} of {exact.shown} cannot be used", error)
    return replace(done, note=_describe_older(request, done.artifact))


def _take_instead(request: _Request, what: str, error: ArtifactError) -> Provided:
    taken = _take(request, request.spec)
    if taken is None:
        raise ArtifactError(f"{error} {request.context.folder} has no earlier TVM to measure instead.") from error
    return replace(taken, note=f"{what}; measured {taken.artifact.version} instead: {error}")


def _describe_older(request: _Request, artifact: Artifact) -> str:
    """Describe an offer that is older than what was offered before; else return ""."""
    rank = request.provider.rank
    newest = next(iter(list_here(request.spec, request.context.folder)), artifact)
    if rank(newest) <= rank(artifact) or newest.version == artifact.version:
        return ""
    return (
        f"{_format_spec(request.spec)} is now TVM {artifact.version}: {newest.version}, which was obtained before, is "
        "no longer offered."
    )


def _build(request: _Request, exact: ArtifactSpec) -> Provided:
    """Build `exact`, unless another night has done so while this one waited for it."""
    provider, folder, deadline = request.provider, request.context.folder, request.context.deadline
    base = provider.base_of(exact)
    with artifact_store.claim(folder, base, deadline):
        taken = _take(request, exact)
        if taken is None:
            with artifact_store.workplace(folder, base) as workplace:
                context = replace(request.context, guest=request.guest_of(exact))
                artifact = provider.build(exact, workplace, context)
                # Without it, the next prune would take it for the longest unused.
                (workplace / LAST_USED).touch()
                write_manifest(artifact)
                artifact_store.put(workplace, folder, artifact.key, deadline)
            built = _take(request, exact)
            taken = built and replace(built, is_new=True)
    if taken is None:
        raise ArtifactError(f"{folder}: {base} was removed as soon as it was built. Raise max_artifacts_gb.")
    return taken


def _format_spec(spec: ArtifactSpec) -> str:
    return f"{spec.branch} of {spec.shown}"


@dataclass(frozen=True)
class Lookup:
    """The version that a night which began now would take, and whether it is at hand.

    version: empty where there is none; of a git remote the name that is asked for. is_asked: whether the source was
    asked; fault: why it did not say what it has now, or has not got it.
    """

    version: str
    is_at_hand: bool = False
    fault: str = ""
    is_asked: bool = False


def look_up(
    spec: ArtifactSpec,
    folder: Path,
    deadline: LockDeadline,
    *,
    rebuild: bool,
    fallback: Fallback = Fallback.UNREACHABLE,
) -> Lookup:
    """Choose as `provide` would, among the artifacts in `folder` and, where `rebuild` allows it, what is offered."""
    here = [artifact.version for artifact in list_here(spec, folder)]
    newest = here[0] if here else ""
    if newest and (PROVIDERS[provider_of(spec)].is_exact(spec) or not rebuild):
        return Lookup(newest, is_at_hand=True)
    if not rebuild:
        return Lookup("")
    try:
        version = _ask_source(spec, folder, deadline)
    except ArtifactError as error:
        instead = "" if fallback is Fallback.NEVER else newest
        return Lookup(instead, bool(instead), str(error), is_asked=True)
    return Lookup(version, version in here, is_asked=True)


def _ask_source(spec: ArtifactSpec, folder: Path, deadline: LockDeadline) -> str:
    """Ask the source for its version of `spec` now; ArtifactError where it has none, or does not answer."""
    if provider_of(spec) == GIT:
        Mirror.of(folder, spec.remote).check_offered(spec.branch, deadline)
    elif spec.branch == LATEST:
        return package_index.list_versions(source_of(spec), log=None, deadline=deadline)[0]
    else:
        package_index.check_offered(source_of(spec), spec.branch, deadline=deadline)
    return spec.branch
